// What the threads of an item do together.
#include "codegen/spirv/emitter.h"

namespace pantala::codegen::spirv {

namespace {
constexpr auto kShared = static_cast<std::uint32_t>(spv::StorageClass::Workgroup);
}

void Emitter::barrier() {
  const Id scope = u32(static_cast<std::uint32_t>(spv::Scope::Workgroup));
  const Id semantics = u32(static_cast<std::uint32_t>(spv::MemorySemanticsMask::AcquireRelease) |
                           static_cast<std::uint32_t>(spv::MemorySemanticsMask::WorkgroupMemory) |
                           static_cast<std::uint32_t>(spv::MemorySemanticsMask::UniformMemory));
  m_.emit(spv::Op::OpControlBarrier, {scope, scope, semantics});
}

// A word per thread, for all sums of one kind.
Id Emitter::group_shared(DType dtype, bool wide) {
  const Id element = dtype == DType::boolean ? bits32() : id_type(dtype, wide);
  for (const auto& [type, variable] : group_memory_)
    if (type == element) return variable;
  const auto threads = static_cast<std::uint32_t>(kernel_.threads);
  const Id array = m_.type(spv::Op::OpTypeArray, {element, u32(threads)});
  const Id variable =
      m_.variable(m_.type(spv::Op::OpTypePointer, {kShared, array}), spv::StorageClass::Workgroup);
  group_memory_.emplace_back(element, variable);
  code_.shared_bytes +=
      static_cast<std::int64_t>(threads) * (element == bits64() || dtype == DType::f64 ? 8 : 4);
  return variable;
}

// Every thread puts its number into shared memory, and two by two they are combined in the order of
// the interpreter. With subgroups every thread combines the numbers that are a multiple of a
// subgroup apart, and the rest is done between the invocations of the subgroup; without, half of
// the threads combine two numbers each until one is left.
void Emitter::group(const kir::Inst& inst) {
  const kir::Value from = inst.args[0], result = inst.results[0];
  const DType dtype = type(from).dtype;
  const bool is_long = dtype == DType::i64 && (is_wide(result) || is_wide(from));
  const Shared memory{group_shared(dtype, is_long),
                      dtype == DType::boolean ? bits32() : id_type(dtype, is_long)};
  const Id own = dtype == DType::i64 ? sized(from, 0, is_long) : ids(from)[0];
  barrier();  // the last sum may still be read
  put(memory, thread_, own, dtype);
  barrier();
  const bool exchanges = target_.subgroup > 1 && kernel_.threads % target_.subgroup == 0 &&
                         kernel_.threads / target_.subgroup <= target_.max_subgroups &&
                         memory.element != bits64() && dtype != DType::f64;
  Id sum = exchanges ? combine_subgroups(inst.op, dtype, memory)
                     : combine_tree(inst.op, dtype, is_long, memory);
  if (is_long && !is_wide(result)) sum = m_.emit(spv::Op::OpUConvert, bits32(), {sum});
  ids(result) = {sum};
}

void Emitter::put(const Shared& memory, Id index, Id value, DType dtype) {
  const Id pointer =
      m_.emit(spv::Op::OpAccessChain, m_.type(spv::Op::OpTypePointer, {kShared, memory.element}),
              {memory.variable, index});
  m_.emit(spv::Op::OpStore, {pointer, packed(value, dtype)});
}

Id Emitter::take(const Shared& memory, Id index, DType dtype) {
  const Id pointer =
      m_.emit(spv::Op::OpAccessChain, m_.type(spv::Op::OpTypePointer, {kShared, memory.element}),
              {memory.variable, index});
  return unpacked(m_.emit(spv::Op::OpLoad, memory.element, {pointer}), dtype);
}

// Shared memory has no bools.
Id Emitter::packed(Id value, DType dtype) {
  return dtype == DType::boolean ? select(value, bits32(), u32(1), u32(0)) : value;
}
Id Emitter::unpacked(Id word, DType dtype) {
  return dtype == DType::boolean ? m_.emit(spv::Op::OpINotEqual, m_.type_bool(), {word, u32(0)})
                                 : word;
}

Id Emitter::combine_tree(kir::Op op, DType dtype, bool is_long, const Shared& memory) {
  for (auto half = static_cast<std::uint32_t>(kernel_.threads / 2); half >= 1; half /= 2) {
    when(m_.emit(spv::Op::OpULessThan, m_.type_bool(), {thread_, u32(half)}), [&] {
      const Id other = m_.emit(spv::Op::OpIAdd, bits32(), {thread_, u32(half)});
      const Id a = take(memory, thread_, dtype), b = take(memory, other, dtype);
      put(memory, thread_, combine(op, dtype, is_long, a, b), dtype);
    });
    barrier();
  }
  return take(memory, u32(0), dtype);
}

Id Emitter::combine_subgroups(kir::Op op, DType dtype, const Shared& memory) {
  m_.capability(spv::Capability::GroupNonUniform);
  m_.capability(spv::Capability::GroupNonUniformShuffle);
  code_.exchanges = true;
  const auto together = static_cast<std::uint32_t>(target_.subgroup);
  // Which threads share a subgroup is the device's choice: every subgroup combines all numbers.
  if (lane_ == 0) lane_ = m_.builtin(bits32(), spv::BuiltIn::SubgroupLocalInvocationId);
  const Id lane = m_.emit(spv::Op::OpLoad, bits32(), {lane_});
  Ids parts;
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(kernel_.threads); k += together)
    parts.push_back(
        take(memory, k == 0 ? lane : m_.emit(spv::Op::OpIAdd, bits32(), {lane, u32(k)}), dtype));
  for (std::size_t half = parts.size() / 2; half >= 1; half /= 2)
    for (std::size_t k = 0; k < half; ++k)
      parts[k] = combine(op, dtype, false, parts[k], parts[k + half]);
  Id sum = parts[0];
  const Id scope = u32(static_cast<std::uint32_t>(spv::Scope::Subgroup));
  for (std::uint32_t half = together / 2; half >= 1; half /= 2) {
    const Id other = unpacked(m_.emit(spv::Op::OpGroupNonUniformShuffleXor, memory.element,
                                      {scope, packed(sum, dtype), u32(half)}),
                              dtype);
    // Of two zeros the second wins: both sides must agree on which that is.
    const Id bit = m_.emit(spv::Op::OpBitwiseAnd, bits32(), {lane, u32(half)});
    const Id upper = m_.emit(spv::Op::OpINotEqual, m_.type_bool(), {bit, u32(0)});
    const Id type = id_type(dtype, false);
    sum =
        combine(op, dtype, false, select(upper, type, other, sum), select(upper, type, sum, other));
  }
  return sum;
}

}  // namespace pantala::codegen::spirv
