// The emitter: kernel code for one element (or one vector of lanes) of any value that is computed
// element by element, straight from the graph. Pointwise ops become arithmetic, movement ops become
// indices, and where a stored value is reached, a load. What it reads is found out by emitting once
// into a kernel that is thrown away (`trace`), so that buffers and parameters can be declared
// before the loops of the real kernel.
//
// Loops are numbered as in a Domain; lanes run along one of them. A value that does not depend on
// the lanes stays a scalar.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph_data.h"
#include "kir/builder.h"
#include "schedule/index.h"

namespace pantala::schedule {

// What the emitter must know about the graph's values.
struct ValueInfo {
  const ir::GraphData* graph = nullptr;
  std::function<bool(ValueId)> is_stored;  // it has a buffer that can be read now
  std::function<bool(ValueId)> is_host;    // the host computes it
  // Element strides of a stored value, per axis.
  std::function<std::vector<std::int64_t>(ValueId)> strides;
  // Whether the values of an index tensor are known to lie in [0, limit), so that no kernel needs
  // to check them.
  std::function<bool(ValueId index, std::int64_t limit)> in_range;
  // The code under which a kernel reports an index out of [0, limit) that this node reads.
  std::function<std::int64_t(std::uint32_t node, std::int64_t limit)> report_code;
  // An update_slice of which nothing but the update is asked for: its indices are the update's.
  std::optional<ValueId> window = {};
  // Counts the elements that code was asked for: what scheduling takes grows with it.
  std::uint64_t* emitted = nullptr;
};

// A way in which a stored value is read: element at `flat`, plus offset * strides for indices that
// are not affine (their number is `offsets`).
struct Access {
  ValueId value;
  Affine flat;
  std::vector<std::int64_t> offset_strides;
  friend bool operator==(const Access&, const Access&) = default;
};

// A number that belongs to a node and not to the structure of its code: a parameter of the kernel,
// so that layers share it.
struct NodeNumber {
  std::uint32_t node = 0;
  std::int64_t number = 0;
  friend bool operator==(const NodeNumber&, const NodeNumber&) = default;
};

// All that a piece of code reads.
struct Footprint {
  std::vector<Access> accesses;              // distinct, in order of occurrence
  std::vector<double> loads;                 // of each of them, per element
  std::vector<ValueId> uniforms;             // host values, distinct
  std::vector<NodeNumber> numbers;           // distinct
  std::vector<ValueId> provided;             // values that the kernel computes otherwise, distinct
  std::array<bool, kMaxLoops> counted = {};  // loops whose index is used as a number
  std::array<bool, kMaxLoops> leads = {};    // loops along which indices are read from memory
  double cost = 0;                           // per element, in additions
  std::size_t size = 0;                      // values that there is code for
  // Values that are read where only some of the elements need them, once for each such read: their
  // code cannot be shared with that of others.
  std::vector<ValueId> conditional;

  bool reads(ValueId value) const;
};

// Where code is emitted: the index of each loop (invalid: 0), and the lanes.
struct Site {
  std::array<kir::Var, kMaxLoops> loops = {};
  LoopId lane_loop;  // none: no lanes
  int lanes = 1;
  kir::Var mask;  // of the lanes; invalid: all
};

// Buffers and parameters of a kernel for a footprint.
struct DeclaredAccess {
  kir::BufferId buffer;
  kir::Var constant;                       // invalid: 0
  std::array<kir::Var, kMaxLoops> coef{};  // invalid: 0, or 1 where `unit`
  std::array<bool, kMaxLoops> unit{};
  std::vector<kir::Var> offset_strides;
};

// What stands for the entries of a footprint in a kernel, in order.
struct Declared {
  std::vector<DeclaredAccess> accesses = {};
  std::vector<kir::Var> uniforms = {}, numbers = {};
};

class Emitter {
 public:
  // For a real kernel.
  Emitter(kir::Builder& builder, const ValueInfo& info, Domain domain, const Footprint& footprint,
          Declared declared);
  // For a trace: loads give zeros, `footprint` is filled.
  Emitter(kir::Builder& builder, const ValueInfo& info, Domain domain, Footprint* footprint);

  // Moves to another place; what was computed elsewhere is forgotten.
  void enter(const Site& site);
  // Computes the parts of addresses that the lane loop does not change, for use in nested blocks
  // until the next enter() with other loops.
  void hoist_addresses(const Site& site);
  // The value of an element is known here: no code is emitted for it. Asking for another element of
  // it is an InternalError.
  void provide(ValueId value, const Indices& at, kir::Var known);
  void forget_provided() { provided_.clear(); }

  // An element of a value, in the register dtype of its dtype.
  kir::Var value(ValueId id, const Indices& at);
  // An index that `node` reads from memory, an i64 that is reported unless it lies in [0, limit).
  struct MemoryIndex {
    kir::Var number;
    kir::Var inside;  // whether it does; invalid where that is known
  };
  MemoryIndex memory_index(std::uint32_t node, ValueId index, const Indices& at,
                           std::int64_t limit);
  // Where the update of ValueInfo::window begins along its axis, once that value was computed.
  kir::Var window_start() const { return window_start_; }
  kir::Builder& builder() { return b_; }
  const Site& site() const { return site_; }

 private:
  struct Known {
    ValueId id;
    Indices at;
    kir::Value scalar_mask, lane_mask;
    kir::Var value;
  };
  struct Provided {
    Indices at;
    kir::Var value;
  };

  Indices normalised(Indices at) const;
  kir::Var compute(ValueId id, const Indices& at);
  kir::Var pointwise(const ir::Node& node, const Indices& at);
  kir::Var load(ValueId id, const Indices& at);
  // Of memory that is indexed by these strides.
  kir::Var load(ValueId id, const Indices& at, const std::vector<std::int64_t>& strides);
  kir::Var uniform(ValueId id);
  kir::Var node_number(std::uint32_t node, std::int64_t number);
  kir::Var leaf_constant(const ir::Node& node) const;
  // The address but for the lanes' loop.
  kir::Var outer_address(const DeclaredAccess& access);
  // A load from base, the offsets and the lanes' part of the address.
  kir::Var load_at(const DeclaredAccess& access, kir::Var base,
                   const std::vector<kir::Var>& offsets);

  // Ops that choose elements, a row each in the table of emit_movement.cpp.
  enum class Choice : std::uint8_t {
    movement,  // by an affine map
    choosing,  // by more than that
    window,    // over a window of the input
  };
  struct Rule {
    Choice choice;
    kir::Var (Emitter::*emit)(ValueId id, const ir::Node& node, const Indices& at);
  };
  static const Rule* rule_of(const ir::OpDef& op);  // nullptr: there is none
  friend bool is_elemental(const ir::OpDef& op);
  friend bool is_movement(const ir::OpDef& op);
  friend bool is_window(const ir::OpDef& op);
  friend std::int64_t elements_read(const ir::GraphData& graph, const ir::Node& node,
                                    std::size_t operand);

  // Movement (emit_movement.cpp).
  kir::Var reshape(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var apart(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var permute(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var broadcast(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var slice(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var flip(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var iota(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var watched(ValueId id, const ir::Node& node, const Indices& at);
  Indices reshaped(const ir::Node& node, const Indices& at);
  std::optional<ValueId> stored_permuted(ValueId id) const;
  kir::Var pad(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var concat(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var of_empty_axis(ValueId id, ValueId index, const Indices& at);
  kir::Var no_element(DType dtype);
  kir::Var take(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var gather(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var one_hot(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var dynamic_slice(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var update_slice(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var random_bits(ValueId id, const ir::Node& node, const Indices& at);
  // Reports if the condition holds in a lane that counts.
  void report_lanes(kir::Var bad, kir::Var code);
  kir::Var converted(kir::Var n, DType dtype);
  // The same, moved into [0, limit).
  Index checked_index(std::uint32_t node, ValueId index, const Indices& at, std::int64_t limit);
  // The number that all elements of a value have, if that is known.
  std::optional<std::int64_t> known_number(ValueId id) const;

  // Windows (emit_window.cpp).
  struct Pool;
  using WindowCode = std::function<std::vector<kir::Var>(const Index& row, const Index& column,
                                                         const std::vector<kir::Var>& carried)>;
  std::vector<kir::Var> over_window(std::int64_t rows, std::int64_t columns,
                                    std::vector<kir::Var> carried, const WindowCode& code);
  kir::Var window_length(const Index& origin, std::int64_t kernel, std::int64_t size,
                         std::int64_t padding, bool include_padding);
  kir::Var window_count(const Pool& pool, const Index& top, const Index& left, bool include_padding,
                        DType dtype);
  kir::Var max_pool(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var max_pool_grad(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var average_pool(ValueId id, const ir::Node& node, const Indices& at);
  kir::Var average_pool_grad(ValueId id, const ir::Node& node, const Indices& at);

  // Arithmetic on indices.
  kir::Var number(const Index& index);  // as an i64, scalar or one per lane
  Index quotient(const Index& index, std::int64_t divisor, Index* remainder);
  // Whether low <= index < high; invalid if that is always so.
  kir::Var within(const Index& index, std::int64_t low, std::int64_t high);
  kir::Var both(kir::Var a, kir::Var b);  // logical and; an invalid one holds
  kir::Var mask_of_any();                 // of code that all lanes share: whether any lane needs it
  // Emits with a narrower mask.
  kir::Var under(kir::Var condition, const std::function<kir::Var()>& code);
  kir::Var wide(kir::Var x);  // with all lanes

  std::size_t find_access(const Access& access);
  const Known* find_known(ValueId id, const Indices& at) const;
  void remember(ValueId id, const Indices& at, kir::Var value);

  kir::Builder& b_;
  const ValueInfo& info_;
  Domain domain_;
  Footprint* trace_ = nullptr;
  double taps_ = 1;  // of a trace: how often the code at hand runs per element
  Footprint footprint_;
  Declared declared_;
  Site site_;
  std::vector<kir::Var> hoisted_;  // per access; invalid: not yet
  kir::Var scalar_mask_, lane_mask_, window_start_;
  std::unordered_multimap<std::uint64_t, Known> known_;
  std::unordered_map<std::uint64_t, Provided> provided_;
};

// Whether the emitter computes this op element by element.
bool is_elemental(const ir::OpDef& op);
// Ops that only move elements: a load through them costs nothing.
bool is_movement(const ir::OpDef& op);
// Ops whose element is made of a window of their input: pools.
bool is_window(const ir::OpDef& op);
// How many elements of an operand the code of one element of the node may ask for.
std::int64_t elements_read(const ir::GraphData& graph, const ir::Node& node, std::size_t operand);

// What the elements of `values` at `at` read, in `lanes` lanes along `lane_loop`. Values for which
// `provided` holds are not entered.
Footprint trace(const ValueInfo& info, const Domain& domain, const std::vector<ValueId>& values,
                const Indices& at, const std::function<bool(ValueId)>& provided = {});
// What Emitter::memory_index() reads.
Footprint trace_memory_index(const ValueInfo& info, const Domain& domain, std::uint32_t node,
                             ValueId index, const Indices& at, std::int64_t limit);

}  // namespace pantala::schedule
