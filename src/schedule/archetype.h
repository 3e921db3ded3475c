// An archetype: one way in which kernels compute things, as a row of a device's table. The row is
// all that the scheduler knows of it: which ops it anchors, what it asks of their operands, what
// may join it, in which order it sums, and how its kernels are built. Whoever adds one writes a
// folder of the device (schedule/cpu/..., schedule/gpu/...) and its row in the device's table
// (archetypes.cpp there).
//
// A function that a row leaves out has the default that stands beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph_data.h"
#include "schedule/emitter.h"

namespace pantala::schedule {

class Building;
class Company;
class Context;
struct Effort;
struct EffortSite;
struct Group;
struct KernelDraft;
struct Work;

// What the code of a node reads, and the loops of that code.
struct Reads {
  Domain domain;
  std::vector<Access> accesses;
  std::size_t size = 0;                   // of the code: values that are computed or loaded
  std::vector<ValueId> conditional = {};  // as in a Footprint
};

// The elements of a value, by loops over its axes.
Reads reads_of(const ValueInfo& info, ValueId value, const Shape& shape);
// Those of a node's first operand: for what walks it.
Reads reads_of_operand(const Context& context, const ValueInfo& info, std::uint32_t node);
// Whole values, in no order that is known.
Reads reads_whole(const Shape& domain, const std::vector<ValueId>& values);

// Whether a value lies (or will lie) in memory.
using IsStored = std::function<bool(ValueId)>;

// In which order a node sums. Of two nodes that add up the same numbers, those with equal orders
// have equal bits.
struct ReductionOrder {
  std::string_view archetype;
  std::vector<std::int64_t> numbers;
  friend bool operator==(const ReductionOrder&, const ReductionOrder&) = default;
};

struct Archetype {
  std::string_view name;
  std::vector<const ir::OpDef*> ops = {};  // that it anchors; of the map, none

  // Lowering. Appends a node with its operands as the kernels want them; default: as they are.
  std::vector<Tensor> (*append)(ir::GraphData& target, const ir::Node& node,
                                std::vector<Tensor> inputs) = nullptr;

  // Whether an operand must be stored for this node; default: none, operands are computed element
  // by element where they are read.
  bool (*must_store)(const Context& context, std::uint32_t node, std::size_t operand,
                     const IsStored& is_stored) = nullptr;
  // What a node reads of values that are stored by `info`.
  Reads (*reads)(const Context& context, const ValueInfo& info, std::uint32_t node) = nullptr;
  // Whether one kernel can compute the company, of which this archetype is the anchor; default: an
  // anchor stays alone.
  bool (*can_join)(const Company& company) = nullptr;
  // Whether it reads operands where what they are moved from lies, so that this is stored instead
  // of them if it serves.
  bool reads_moved = false;
  // Whether anchors that read the same values may share a kernel.
  bool shares_kernel = false;

  // Whether a kernel leaves each result in one place only.
  bool stores_once = false;
  // Whether a value is made in one pass over what the group reads, so that it may be written over
  // it; default: it is.
  bool (*makes_in_one_pass)(const Context& context, const Group& group, ValueId value) = nullptr;
  // Values that it wants with channels last; default: none.
  std::vector<ValueId> (*channels_last)(const Context& context, std::uint32_t node) = nullptr;
  // The order of axes in which it leaves a temporary whose readers want it so, outermost first, by
  // `readers`; default, and where it returns none: row-major.
  std::vector<int> (*order_for)(const ir::Node& node, std::uint32_t result,
                                const std::vector<const ir::Node*>& readers) = nullptr;
  // Whether it needs what its group reads and writes row-major.
  bool row_major = false;

  // The bits of a node; default: nothing is summed in an order that the archetype chooses. Nobody
  // decides by it: it is what tests hold decisions to that must not change bits.
  ReductionOrder (*reduction_order)(const Context& context, std::uint32_t node) = nullptr;

  // What a group computes and moves (schedule/work.h); default: what `reads` says of its anchors,
  // and all of its outputs.
  Work (*work)(const Context& context, const Group& group) = nullptr;
  // How much each kernel of a group does (schedule/estimate.h); default: one kernel that computes
  // element by element.
  std::vector<Effort> (*efforts)(const EffortSite& at) = nullptr;

  std::vector<KernelDraft> (*build)(Building& building, const Group& group) = nullptr;
};

// The archetypes of a device: the map, which computes all that is made element by element, and the
// anchored ones.
class ArchetypeTable {
 public:
  ArchetypeTable(const Archetype& map, const std::vector<const Archetype*>& anchored);

  const Archetype& map() const { return map_; }
  // The archetype that computes an op; nullptr: there is none, its definition is taken (or it is a
  // leaf, with nothing to compute).
  const Archetype* find(const ir::OpDef& op) const;
  // Whether the op is left in a lowered graph.
  bool keeps(const ir::OpDef& op) const;

 private:
  const Archetype& map_;
  std::unordered_map<const ir::OpDef*, const Archetype*> anchors_;
};

// Inputs, parameters, states, scalars and constants.
bool is_leaf(const ir::OpDef& op);

}  // namespace pantala::schedule
