// Loads and stores: device memory by addresses, scratch of several threads in shared memory.
#include <algorithm>
#include <bit>

#include "codegen/spirv/emitter.h"

namespace pantala::codegen::spirv {

namespace {

using kir::Op;
constexpr auto kDevice = static_cast<std::uint32_t>(spv::StorageClass::PhysicalStorageBuffer);
constexpr auto kShared = static_cast<std::uint32_t>(spv::StorageClass::Workgroup);
constexpr std::uint32_t kVolatile = 1, kAligned = 2;
constexpr std::int64_t kSmall = std::int64_t{1} << 32;

std::uint32_t bits_of(DType dtype) { return static_cast<std::uint32_t>(dtype_bytes(dtype)) * 8; }
// Whether code loads vectors of 4 lanes of the buffer.
bool loads_quads(const kir::Kernel& kernel, const kir::Block& block, std::size_t buffer) {
  for (const kir::Inst& inst : block.body) {
    if (inst.op == Op::load && static_cast<std::size_t>(inst.index) == buffer && !inst.masked &&
        kernel.type(inst.results[0]).lanes == 4)
      return true;
    for (const kir::Block& inner : inst.blocks)
      if (loads_quads(kernel, inner, buffer)) return true;
  }
  return false;
}
// Elements of less than a word.
bool is_part(DType dtype) { return dtype_bytes(dtype) < 4; }

}  // namespace

// Of several threads every buffer is an array in shared memory; parts of words have a word each.
void Emitter::declare_scratch() {
  if (kernel_.threads == 1) {
    code_.scratch_bytes = kernel_.scratch_bytes();
    return;
  }
  quads_.resize(kernel_.buffers.size());
  for (std::size_t k = 0; k < kernel_.buffers.size(); ++k) {
    const kir::Buffer& buffer = kernel_.buffers[k];
    if (!is_shared(buffer)) continue;
    quads_[k] = buffer.dtype == DType::f32 && loads_quads(kernel_, kernel_.body, k);
    const Id element = quads_[k] ? m_.type(spv::Op::OpTypeVector, {m_.type_float(), 4})
                       : is_part(buffer.dtype) ? bits32()
                                               : id_type(buffer.dtype, true);
    const std::int64_t size = quads_[k] ? (buffer.size + 3) / 4 : buffer.size;
    const Id array =
        m_.type(spv::Op::OpTypeArray, {element, u32(static_cast<std::uint32_t>(size))});
    bases_.push_back(m_.variable(m_.type(spv::Op::OpTypePointer, {kShared, array}),
                                 spv::StorageClass::Workgroup));
    code_.shared_bytes += buffer.size * std::max<std::int64_t>(dtype_bytes(buffer.dtype), 4);
  }
}

Id Emitter::pointer_to(Id address, Id type) {
  return m_.emit(spv::Op::OpConvertUToPtr, m_.type(spv::Op::OpTypePointer, {kDevice, type}),
                 {address});
}

// What threads of a workgroup hand to each other through device memory must not stay in a register
// or a cache of one of them.
Id Emitter::load_from(Id pointer, Id type, std::uint32_t bytes, bool shared) {
  return m_.emit(spv::Op::OpLoad, type, {pointer, kAligned | (shared ? kVolatile : 0), bytes});
}
void Emitter::store_to(Id pointer, Id value, std::uint32_t bytes, bool shared) {
  m_.emit(spv::Op::OpStore, {pointer, value, kAligned | (shared ? kVolatile : 0), bytes});
}

Id Emitter::index(const kir::Inst& inst, std::size_t lane, bool wide) {
  if (inst.op == Op::gather)
    return type(inst.args[0]).dtype == DType::i64 ? sized(inst.args[0], lane, wide)
           : wide ? m_.emit(spv::Op::OpSConvert, bits64(), {ids(inst.args[0])[lane]})
                  : ids(inst.args[0])[lane];
  const Id first = sized(inst.args[0], 0, wide);
  if (lane == 0) return first;
  const Id number = wide ? bits64() : bits32();
  const auto constant = [&](std::uint64_t k) {
    return wide ? u64(k) : u32(static_cast<std::uint32_t>(k));
  };
  if (inst.op == Op::load || inst.op == Op::store)
    return m_.emit(spv::Op::OpIAdd, number, {first, constant(lane)});
  const Id step = m_.emit(spv::Op::OpIMul, number, {sized(inst.args[1], 0, wide), constant(lane)});
  return m_.emit(spv::Op::OpIAdd, number, {first, step});
}

// Offsets of memory below 4 GiB have 32 bits: of an index that is in bounds the low half says all.
// A lane that is off reads what there is in any case.
Emitter::Place Emitter::place(const kir::Inst& inst, std::size_t lane, Id mask) {
  const auto number = static_cast<std::size_t>(inst.index);
  const kir::Buffer& buffer = kernel_.buffers[number];
  if (is_shared(buffer)) {
    Id at = index(inst, lane, false);
    if (mask != 0) at = select(mask, bits32(), at, u32(0));
    const Id element = is_part(buffer.dtype) ? bits32() : id_type(buffer.dtype, true);
    const Id pointer = m_.type(spv::Op::OpTypePointer, {kShared, element});
    if (!quads_[number]) return {0, m_.emit(spv::Op::OpAccessChain, pointer, {bases_[number], at})};
    const Id quad = m_.emit(spv::Op::OpShiftRightLogical, bits32(), {at, u32(2)}),
             part = m_.emit(spv::Op::OpBitwiseAnd, bits32(), {at, u32(3)});
    return {0, m_.emit(spv::Op::OpAccessChain, pointer, {bases_[number], quad, part})};
  }
  const bool scratch = buffer.space == kir::Space::scratch;
  const std::int64_t elements = scratch                           ? buffer.size
                                : number < facts_.elements.size() ? facts_.elements[number]
                                                                  : kSmall;
  const std::int64_t bytes = dtype_bytes(buffer.dtype);
  const bool is_long = elements > (kSmall - 1) / bytes;
  Id offset = index(inst, lane, is_long);
  const auto shift =
      static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)));
  if (shift > 0)
    offset =
        m_.emit(spv::Op::OpShiftLeftLogical, is_long ? bits64() : bits32(), {offset, u32(shift)});
  if (!is_long) offset = m_.emit(spv::Op::OpUConvert, bits64(), {offset});
  const Id address = m_.emit(spv::Op::OpIAdd, bits64(), {bases_[number], offset});
  return {mask == 0 ? address : select(mask, bits64(), address, status_), 0};
}

bool Emitter::is_quad(const kir::Inst& inst, kir::Value value) const {
  const auto number = static_cast<std::size_t>(inst.index);
  const kir::Buffer& buffer = kernel_.buffers[number];
  const kir::VType vtype = kernel_.type(value);
  if (inst.masked || vtype.lanes != 4 || buffer.dtype != DType::f32) return false;
  if (inst.op != Op::load && inst.op != Op::store) return false;
  if (is_shared(buffer)) return inst.op == Op::load && quads_[number];
  // What is handed from thread to thread goes element by element.
  return !(has_barriers_ && buffer.access == kir::Access::read_write);
}

Id Emitter::quad_pointer(const kir::Inst& inst) {
  const Id vector = m_.type(spv::Op::OpTypeVector, {m_.type_float(), 4});
  const auto number = static_cast<std::size_t>(inst.index);
  if (!is_shared(kernel_.buffers[number])) return pointer_to(place(inst, 0, 0).address, vector);
  const Id at = m_.emit(spv::Op::OpShiftRightLogical, bits32(), {index(inst, 0, false), u32(2)});
  return m_.emit(spv::Op::OpAccessChain, m_.type(spv::Op::OpTypePointer, {kShared, vector}),
                 {bases_[number], at});
}

Ids Emitter::load_quad(const kir::Inst& inst) {
  const Id vector = m_.type(spv::Op::OpTypeVector, {m_.type_float(), 4});
  const bool shared = is_shared(kernel_.buffers[static_cast<std::size_t>(inst.index)]);
  const Id from = quad_pointer(inst);
  const Id all =
      shared ? m_.emit(spv::Op::OpLoad, vector, {from}) : load_from(from, vector, 4, false);
  Ids lanes;
  for (std::uint32_t lane = 0; lane < 4; ++lane)
    lanes.push_back(m_.emit(spv::Op::OpCompositeExtract, m_.type_float(), {all, lane}));
  return lanes;
}

void Emitter::store_quad(const kir::Inst& inst, kir::Value value) {
  const Id vector = m_.type(spv::Op::OpTypeVector, {m_.type_float(), 4});
  const Ids& lanes = ids(value);
  const Id all =
      m_.emit(spv::Op::OpCompositeConstruct, vector, {lanes[0], lanes[1], lanes[2], lanes[3]});
  store_to(quad_pointer(inst), all, 4, false);
}

void Emitter::load(const kir::Inst& inst) {
  const kir::Value result = inst.results[0];
  const kir::VType vtype = type(result);
  const kir::Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(inst.index)];
  if (is_quad(inst, result)) {
    ids(result) = load_quad(inst);
    return;
  }
  Ids lanes;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(vtype.lanes); ++lane) {
    const Id mask = inst.masked ? ids(inst.args.back())[lane] : 0;
    Id value = load_element(buffer, place(inst, lane, mask));
    if (mask != 0) {
      const Id zero = vtype.dtype == DType::boolean ? m_.constant_bool(false)
                      : is_float(vtype.dtype)       ? real_constant(vtype.dtype, 0)
                      : vtype.dtype == DType::i64   ? u64(0)
                                                    : u32(0);
      value = select(mask, id_type(vtype.dtype, true), value, zero);
    }
    if (vtype.dtype == DType::i64 && !is_wide(result))
      value = m_.emit(spv::Op::OpUConvert, bits32(), {value});
    lanes.push_back(value);
  }
  ids(result) = std::move(lanes);
}

void Emitter::store(const kir::Inst& inst) {
  const kir::Value value = inst.args[inst.op == Op::store ? 1 : 2];
  const kir::Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(inst.index)];
  if (is_quad(inst, value)) return store_quad(inst, value);
  for (std::size_t lane = 0; lane < ids(value).size(); ++lane) {
    const auto write = [&] {
      const Id stored = type(value).dtype == DType::i64 ? wide(value, lane) : ids(value)[lane];
      store_element(buffer, place(inst, lane, 0), stored);
    };
    if (inst.masked)
      when(ids(inst.args.back())[lane], write);
    else
      write();
  }
}

Id Emitter::load_element(const kir::Buffer& buffer, const Place& place) {
  const DType dtype = buffer.dtype;
  if (!is_part(dtype)) {
    const Id element = dtype == DType::i32 ? bits32() : id_type(dtype, true);
    if (place.pointer != 0) return m_.emit(spv::Op::OpLoad, element, {place.pointer});
    const bool handed = has_barriers_ && buffer.access == kir::Access::read_write;
    return load_from(pointer_to(place.address, element), element, bits_of(dtype) / 8, handed);
  }
  const Id bits = place.pointer != 0 ? m_.emit(spv::Op::OpLoad, bits32(), {place.pointer})
                                     : load_part(place, bits_of(dtype));
  if (dtype == DType::boolean) return m_.emit(spv::Op::OpINotEqual, m_.type_bool(), {bits, u32(0)});
  if (dtype == DType::u8) return bits;
  if (dtype == DType::f16) return decode_half(bits);
  return m_.emit(spv::Op::OpBitcast, m_.type_float(),
                 {m_.emit(spv::Op::OpShiftLeftLogical, bits32(), {bits, u32(16)})});
}

void Emitter::store_element(const kir::Buffer& buffer, const Place& place, Id value) {
  const DType dtype = buffer.dtype;
  if (!is_part(dtype)) {
    if (place.pointer != 0) return m_.emit(spv::Op::OpStore, {place.pointer, value});
    const Id element = dtype == DType::i32 ? bits32() : id_type(dtype, true);
    const bool handed = has_barriers_ && buffer.access == kir::Access::read_write;
    return store_to(pointer_to(place.address, element), value, bits_of(dtype) / 8, handed);
  }
  Id bits = value;
  if (dtype == DType::boolean) bits = select(value, bits32(), u32(1), u32(0));
  if (dtype == DType::u8) bits = m_.emit(spv::Op::OpBitwiseAnd, bits32(), {value, u32(255)});
  if (dtype == DType::f16) bits = encode_half(value);
  if (dtype == DType::bf16) bits = encode_bfloat(value);
  if (place.pointer != 0) return m_.emit(spv::Op::OpStore, {place.pointer, bits});
  store_part(place, bits_of(dtype), bits);
}

// A byte or half of a word, where the device has no memory of such: through the word around it.
Id Emitter::load_part(const Place& place, std::uint32_t bits) {
  if (has_storage(bits)) {
    m_.capability(bits == 8 ? spv::Capability::StorageBuffer8BitAccess
                            : spv::Capability::StorageBuffer16BitAccess);
    const Id part = m_.type_int(bits);
    return m_.emit(spv::Op::OpUConvert, bits32(),
                   {load_from(pointer_to(place.address, part), part, bits / 8, false)});
  }
  const Id low = m_.emit(spv::Op::OpUConvert, bits32(), {place.address});
  const Id byte = m_.emit(spv::Op::OpBitwiseAnd, bits32(), {low, u32(3)});
  const Id word = m_.emit(spv::Op::OpBitwiseAnd, bits64(), {place.address, u64(~std::uint64_t{3})});
  const Id all = load_from(pointer_to(word, bits32()), bits32(), 4, false);
  const Id shift = m_.emit(spv::Op::OpShiftLeftLogical, bits32(), {byte, u32(3)});
  return m_.emit(
      spv::Op::OpBitwiseAnd, bits32(),
      {m_.emit(spv::Op::OpShiftRightLogical, bits32(), {all, shift}), u32((1U << bits) - 1)});
}

// Others may write the rest of the word at the same time: first our bits are cleared, then set.
void Emitter::store_part(const Place& place, std::uint32_t bits, Id value) {
  if (has_storage(bits)) {
    m_.capability(bits == 8 ? spv::Capability::StorageBuffer8BitAccess
                            : spv::Capability::StorageBuffer16BitAccess);
    const Id part = m_.type_int(bits);
    return store_to(pointer_to(place.address, part), m_.emit(spv::Op::OpUConvert, part, {value}),
                    bits / 8, false);
  }
  constexpr auto kScope = static_cast<std::uint32_t>(spv::Scope::Device);
  const Id low = m_.emit(spv::Op::OpUConvert, bits32(), {place.address});
  const Id byte = m_.emit(spv::Op::OpBitwiseAnd, bits32(), {low, u32(3)});
  const Id shift = m_.emit(spv::Op::OpShiftLeftLogical, bits32(), {byte, u32(3)});
  const Id word = m_.emit(spv::Op::OpBitwiseAnd, bits64(), {place.address, u64(~std::uint64_t{3})});
  const Id pointer = pointer_to(word, bits32());
  const Id ours = m_.emit(spv::Op::OpShiftLeftLogical, bits32(), {u32((1U << bits) - 1), shift});
  m_.emit(spv::Op::OpAtomicAnd, bits32(),
          {pointer, u32(kScope), u32(0), m_.emit(spv::Op::OpNot, bits32(), {ours})});
  m_.emit(spv::Op::OpAtomicOr, bits32(),
          {pointer, u32(kScope), u32(0),
           m_.emit(spv::Op::OpShiftLeftLogical, bits32(), {value, shift})});
}

// By integers: what Vulkan promises of conversions to halves leaves the rounding open.
Id Emitter::decode_half(Id bits) {
  const Id number = bits32(), real = m_.type_float(), boolean = m_.type_bool();
  const Id sign = m_.emit(spv::Op::OpShiftLeftLogical, number,
                          {m_.emit(spv::Op::OpBitwiseAnd, number, {bits, u32(0x8000)}), u32(16)});
  const Id size = m_.emit(spv::Op::OpBitwiseAnd, number, {bits, u32(0x7FFF)});
  const Id moved = m_.emit(spv::Op::OpShiftLeftLogical, number, {size, u32(13)});
  const Id special = m_.emit(spv::Op::OpUGreaterThanEqual, boolean, {size, u32(0x7C00)});
  const Id normal = m_.emit(spv::Op::OpIAdd, number,
                            {moved, select(special, number, u32(0x70000000), u32(0x38000000))});
  const Id tiny = m_.emit(spv::Op::OpULessThan, boolean, {size, u32(0x400)});
  const Id multiple = exact(spv::Op::OpFMul, m_.emit(spv::Op::OpConvertUToF, real, {size}),
                            m_.constant_float(0x1p-24F));
  const Id magnitude =
      select(tiny, number, m_.emit(spv::Op::OpBitcast, number, {multiple}), normal);
  return m_.emit(spv::Op::OpBitcast, real,
                 {m_.emit(spv::Op::OpBitwiseOr, number, {magnitude, sign})});
}

Id Emitter::encode_half(Id value) {
  const Id number = bits32(), real = m_.type_float(), boolean = m_.type_bool();
  const auto shifted = [&](Id x, std::uint32_t by) {
    return m_.emit(spv::Op::OpShiftRightLogical, number, {x, u32(by)});
  };
  const Id bits = m_.emit(spv::Op::OpBitcast, number, {value});
  const Id sign = m_.emit(spv::Op::OpBitwiseAnd, number, {shifted(bits, 16), u32(0x8000)});
  const Id size = m_.emit(spv::Op::OpBitwiseAnd, number, {bits, u32(0x7FFFFFFF)});
  // To nearest even: half of the last place, less one where the last bit is even.
  const Id odd = m_.emit(spv::Op::OpBitwiseAnd, number, {shifted(size, 13), u32(1)});
  const Id rounded =
      m_.emit(spv::Op::OpIAdd, number,
              {m_.emit(spv::Op::OpIAdd, number, {size, u32(0xFFFU - 0x38000000U)}), odd});
  const Id unbounded = shifted(rounded, 13);
  const Id normal = select(m_.emit(spv::Op::OpUGreaterThan, boolean, {unbounded, u32(0x7C00)}),
                           number, u32(0x7C00), unbounded);
  // Added to one half, a multiple of 2^-24 is what is left of a small number.
  const Id sum =
      exact(spv::Op::OpFAdd, m_.emit(spv::Op::OpBitcast, real, {size}), m_.constant_float(0.5F));
  const Id tiny = m_.emit(spv::Op::OpISub, number,
                          {m_.emit(spv::Op::OpBitcast, number, {sum}), u32(0x3F000000)});
  const Id nan = m_.emit(
      spv::Op::OpBitwiseOr, number,
      {m_.emit(spv::Op::OpBitwiseAnd, number, {shifted(size, 13), u32(0x1FF)}), u32(0x7E00)});
  Id result =
      select(m_.emit(spv::Op::OpULessThan, boolean, {size, u32(0x38800000)}), number, tiny, normal);
  result = select(m_.emit(spv::Op::OpUGreaterThan, boolean, {size, u32(0x7F800000)}), number, nan,
                  result);
  return m_.emit(spv::Op::OpBitwiseOr, number, {result, sign});
}

Id Emitter::encode_bfloat(Id value) {
  const Id number = bits32();
  const Id bits = m_.emit(spv::Op::OpBitcast, number, {value});
  const Id upper = m_.emit(spv::Op::OpShiftRightLogical, number, {bits, u32(16)});
  const Id odd = m_.emit(spv::Op::OpBitwiseAnd, number, {upper, u32(1)});
  const Id sum = m_.emit(spv::Op::OpIAdd, number,
                         {m_.emit(spv::Op::OpIAdd, number, {bits, u32(0x7FFF)}), odd});
  const Id rounded = m_.emit(spv::Op::OpShiftRightLogical, number, {sum, u32(16)});
  const Id nan = m_.emit(spv::Op::OpBitwiseOr, number, {upper, u32(0x40)});
  return select(m_.emit(spv::Op::OpIsNan, m_.type_bool(), {value}), number, nan, rounded);
}

void Emitter::report(const kir::Inst& inst) {
  when(ids(inst.args[0])[0], [&] {
    const Id code = inst.args.size() > 1 ? narrow(inst.args[1], 0)
                                         : u32(static_cast<std::uint32_t>(inst.index));
    store_to(pointer_to(status_, bits32()), code, 4, false);
  });
}

}  // namespace pantala::codegen::spirv
