// The emitter of one kernel, in parts: emit.cpp has arguments and structure, operations.cpp what is
// computed from operands alone, memory.cpp loads and stores, group.cpp what threads do together.
//
// A value is one id per lane. An integer of 64 bits whose range fits is held in 32 (`is_wide`).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/spirv/module.h"
#include "codegen/spirv/ranges.h"
#include "codegen/spirv/spirv.h"

namespace pantala::codegen::spirv {

using Ids = std::vector<Id>;

class Emitter {
 public:
  Emitter(const kir::Kernel& kernel, const Target& target, const Facts& facts);
  Code run();

 private:
  // emit.cpp: arguments and structure.
  void check() const;
  [[noreturn]] void refuse(const std::string& what) const;
  void head();
  Id row_slot(int slot);  // both halves
  Id row_slot64(int slot);
  Id linear_group();
  Id item_count();
  Id uniform_block(std::uint32_t binding, Id member);
  void item_per_group();
  void item_per_invocation();
  void items_per_invocation();
  void body(Id item);
  void block(const kir::Block& block);
  void instruction(const kir::Inst& inst);
  Id parameter(const kir::Inst& inst);
  void loop(const kir::Inst& inst);
  void branch(const kir::Inst& inst);
  // A selection whose body runs where the condition holds.
  template <class Body>
  void when(Id condition, const Body& body) {
    const Id then = m_.fresh(), after = m_.fresh();
    m_.emit(spv::Op::OpSelectionMerge, {after, 0});
    m_.emit(spv::Op::OpBranchConditional, {condition, then, after});
    start(then);
    body();
    m_.emit(spv::Op::OpBranch, {after});
    start(after);
  }
  void start(Id label) {
    m_.label(label);
    current_ = label;
  }

  // Values.
  Ids& ids(kir::Value v) { return values_[v.id]; }
  const kir::VType& type(kir::Value v) const { return kernel_.type(v); }
  bool is_wide(kir::Value v) const {
    return type(v).dtype == DType::i64 && !ranges_[v.id].fits32();
  }
  Id id_type(DType dtype, bool wide);
  Id id_type(kir::Value v) { return id_type(type(v).dtype, is_wide(v)); }
  Id double_type();
  Id real_constant(DType dtype, double value);
  // A lane of an integer with so many bits.
  Id narrow(kir::Value v, std::size_t lane);
  Id wide(kir::Value v, std::size_t lane);
  Id sized(kir::Value v, std::size_t lane, bool is_wide) {
    return is_wide ? wide(v, lane) : narrow(v, lane);
  }
  // An integer of 64 bits as the value that it becomes holds it.
  Id fitted(kir::Value from, std::size_t lane, kir::Value to);

  // operations.cpp
  void operation(const kir::Inst& inst);
  void constant(const kir::Inst& inst);
  void transpose(const kir::Inst& inst);
  void reduce(const kir::Inst& inst);
  void move(const kir::Inst& inst);
  Id integer(const kir::Inst& inst, std::size_t lane);
  Id shift(const kir::Inst& inst, std::size_t lane);
  Id real(const kir::Inst& inst, std::size_t lane);
  Id logic(const kir::Inst& inst, std::size_t lane);
  Id compare(const kir::Inst& inst, std::size_t lane);
  Id cast(const kir::Inst& inst, std::size_t lane);
  Id to_integer(Id x, DType from, bool wide);
  Id multiply_high(Id a, Id b, bool wide);
  // A float operation that must not be contracted.
  Id exact(spv::Op op, Id a, Id b, DType dtype = DType::f32);
  Id multiply_add(const kir::Inst& inst, std::size_t lane);
  Id extreme(bool maximum, DType dtype, bool wide, Id a, Id b);
  Id combine(kir::Op op, DType dtype, bool wide, Id a, Id b);  // of reduce_* and group_*
  bool is_constant(Id id) const;
  Id select(Id condition, Id type, Id a, Id b) {
    return m_.emit(spv::Op::OpSelect, type, {condition, a, b});
  }

  // The rounds of the loop whose header is open, if they are counted. It is closed where the rounds
  // have their end, and looked at behind the loop.
  struct Rounds {
    Id count = 0;
    std::size_t place = 0;
  };
  Rounds open_rounds(Id before, Id next);
  void close_rounds(const Rounds& rounds);
  void check_rounds(const Rounds& rounds, Id begin, Id end, Id step);

  // memory.cpp
  struct Place {
    Id address = 0;  // of device memory, 64 bits
    Id pointer = 0;  // of shared memory
  };
  void load(const kir::Inst& inst);
  void store(const kir::Inst& inst);
  void report(const kir::Inst& inst);
  Place place(const kir::Inst& inst, std::size_t lane, Id mask);
  Id index(const kir::Inst& inst, std::size_t lane, bool wide);
  Id load_element(const kir::Buffer& buffer, const Place& place);
  void store_element(const kir::Buffer& buffer, const Place& place, Id value);
  Id load_part(const Place& place, std::uint32_t bits);
  void store_part(const Place& place, std::uint32_t bits, Id value);
  Id pointer_to(Id address, Id type);
  Id load_from(Id pointer, Id type, std::uint32_t bytes, bool shared);
  void store_to(Id pointer, Id value, std::uint32_t bytes, bool shared);
  bool has_storage(std::uint32_t bits) const {
    return bits == 8 ? target_.storage8 : target_.storage16;
  }
  bool is_shared(const kir::Buffer& buffer) const {
    return buffer.space == kir::Space::scratch && kernel_.threads > 1;
  }
  Id decode_half(Id bits);
  Id encode_half(Id value);
  Id encode_bfloat(Id value);
  void declare_scratch();
  // Four neighbours at once: of shared memory, whose place is a multiple of four, or of device
  // memory.
  bool is_quad(const kir::Inst& inst, kir::Value value) const;
  Id quad_pointer(const kir::Inst& inst);
  Ids load_quad(const kir::Inst& inst);
  void store_quad(const kir::Inst& inst, kir::Value value);

  // group.cpp
  void barrier();
  void group(const kir::Inst& inst);
  // A word per thread.
  struct Shared {
    Id variable, element;
  };
  Id group_shared(DType dtype, bool wide);
  void put(const Shared& memory, Id index, Id value, DType dtype);
  Id take(const Shared& memory, Id index, DType dtype);
  Id packed(Id value, DType dtype);
  Id unpacked(Id word, DType dtype);
  Id combine_tree(kir::Op op, DType dtype, bool is_long, const Shared& memory);
  Id combine_subgroups(kir::Op op, DType dtype, const Shared& memory);

  Id u32(std::uint32_t value) { return m_.constant32(value); }
  Id u64(std::uint64_t value) { return m_.constant64(value); }
  Id bits32() { return m_.type_int(32); }
  Id bits64() { return m_.type_int(64); }

  const kir::Kernel& kernel_;
  const Target& target_;
  const Facts& facts_;
  Module m_;
  Code code_;
  std::vector<Range> ranges_;
  std::vector<Ids> values_;    // by kir::Value::id
  std::vector<bool> sums_;     // by kir::Value::id: what loops add up
  std::vector<Id> bases_;      // of buffers: an address, or a variable in shared memory
  std::vector<Id> constants_;  // floats that are constants and numbers
  Id row_ = 0, goes_on_ = 0, group_ = 0, groups_ = 0, local_ = 0, lane_ = 0;  // variables
  Id thread_ = 0;
  Id status_ = 0, scratch_ = 0;
  Id current_ = 0;                                          // the open block
  std::vector<std::pair<std::uint32_t, Id>> group_memory_;  // by kind of number
  bool has_barriers_ = false;
  bool counts_rounds_ = false;
  std::vector<bool> quads_;  // of buffers in shared memory: whether they are arrays of vectors of 4
};

}  // namespace pantala::codegen::spirv
