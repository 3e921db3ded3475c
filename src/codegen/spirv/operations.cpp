// What instructions compute from their operands, lane by lane.
#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>
#include <bit>

#include "codegen/spirv/emitter.h"
#include "codegen/spirv/rounding.h"
#include "pantala/error.h"

namespace pantala::codegen::spirv {

namespace {

using kir::Op;

struct IntegerRow {
  Op op;
  spv::Op code;
  bool low_bits;  // the low half of the result depends on the low halves of the operands alone
  spv::Op unsigned_code;  // where no operand is negative: GPUs do it faster
};
constexpr IntegerRow kIntegers[] = {
    {Op::add, spv::Op::OpIAdd, true, spv::Op::OpIAdd},
    {Op::sub, spv::Op::OpISub, true, spv::Op::OpISub},
    {Op::mul, spv::Op::OpIMul, true, spv::Op::OpIMul},
    {Op::bit_and, spv::Op::OpBitwiseAnd, true, spv::Op::OpBitwiseAnd},
    {Op::bit_or, spv::Op::OpBitwiseOr, true, spv::Op::OpBitwiseOr},
    {Op::bit_xor, spv::Op::OpBitwiseXor, true, spv::Op::OpBitwiseXor},
    {Op::div, spv::Op::OpSDiv, false, spv::Op::OpUDiv},
    {Op::rem, spv::Op::OpSRem, false, spv::Op::OpUMod},
};

struct FloatRow {
  Op op;
  spv::Op code;
};
constexpr FloatRow kFloats[] = {
    {Op::add, spv::Op::OpFAdd},
    {Op::sub, spv::Op::OpFSub},
    {Op::mul, spv::Op::OpFMul},
    {Op::div, spv::Op::OpFDiv},
};
struct ExtendedRow {
  Op op;
  GLSLstd450 code;
};
constexpr ExtendedRow kExtended[] = {
    {Op::abs, GLSLstd450FAbs},  {Op::sqrt, GLSLstd450Sqrt},       {Op::floor, GLSLstd450Floor},
    {Op::ceil, GLSLstd450Ceil}, {Op::round, GLSLstd450RoundEven},
};

struct CompareRow {
  Op op;
  spv::Op real, integer, boolean;
};
constexpr CompareRow kCompares[] = {
    {Op::lt, spv::Op::OpFOrdLessThan, spv::Op::OpSLessThan, spv::Op::OpNop},
    {Op::le, spv::Op::OpFOrdLessThanEqual, spv::Op::OpSLessThanEqual, spv::Op::OpNop},
    {Op::eq, spv::Op::OpFOrdEqual, spv::Op::OpIEqual, spv::Op::OpLogicalEqual},
    {Op::ne, spv::Op::OpFUnordNotEqual, spv::Op::OpINotEqual, spv::Op::OpLogicalNotEqual},
};

template <class Rows>
auto* find(const Rows& rows, Op op) {
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.op == op; });
  return found == std::end(rows) ? nullptr : &*found;
}

}  // namespace

Id Emitter::exact(spv::Op op, Id a, Id b, DType dtype) {
  const Id id = m_.emit(op, id_type(dtype, false), {a, b});
  m_.decorate(id, spv::Decoration::NoContraction);
  return id;
}

bool Emitter::is_constant(Id id) const {
  return std::ranges::find(constants_, id) != constants_.end();
}

void Emitter::operation(const kir::Inst& inst) {
  const kir::VType result = type(inst.results.at(0));
  const kir::VType operand = inst.args.empty() ? result : type(inst.args.back());
  switch (inst.op) {
    case Op::constant:
    case Op::iota:
      return constant(inst);
    case Op::transpose:
      return transpose(inst);
    case Op::reduce_add:
    case Op::reduce_max:
    case Op::reduce_min:
      return reduce(inst);
    case Op::splat:
    case Op::extract:
    case Op::select:
    case Op::bitcast:
      return move(inst);
    default:
      break;
  }
  Ids lanes;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(result.lanes); ++lane) {
    if (inst.op == Op::cast)
      lanes.push_back(cast(inst, lane));
    else if (find(kCompares, inst.op))
      lanes.push_back(compare(inst, lane));
    else if (operand.dtype == DType::boolean)
      lanes.push_back(logic(inst, lane));
    else
      lanes.push_back(is_float(operand.dtype) ? real(inst, lane) : integer(inst, lane));
  }
  ids(inst.results[0]) = std::move(lanes);
}

void Emitter::constant(const kir::Inst& inst) {
  const kir::Value result = inst.results[0];
  const kir::VType vtype = type(result);
  Ids lanes;
  for (int lane = 0; lane < vtype.lanes; ++lane) {
    const bool counts = inst.op == Op::iota;
    const std::int64_t integer = counts ? lane : inst.index;
    if (vtype.dtype == DType::boolean) {
      lanes.push_back(m_.constant_bool(integer != 0));
    } else if (is_float(vtype.dtype)) {
      const double number = counts ? lane : inst.imm;
      lanes.push_back(real_constant(vtype.dtype, number));
      if (number == number && !is_constant(lanes.back())) constants_.push_back(lanes.back());
    } else {
      lanes.push_back(is_wide(result) ? u64(static_cast<std::uint64_t>(integer))
                                      : u32(static_cast<std::uint32_t>(integer)));
    }
  }
  ids(result) = std::move(lanes);
}

void Emitter::transpose(const kir::Inst& inst) {
  for (std::size_t column = 0; column < inst.results.size(); ++column) {
    Ids lanes;
    for (const kir::Value row : inst.args)
      lanes.push_back(fitted(row, column, inst.results[column]));
    ids(inst.results[column]) = std::move(lanes);
  }
}

void Emitter::move(const kir::Inst& inst) {
  const kir::Value result = inst.results[0];
  Ids lanes;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(type(result).lanes); ++lane) {
    switch (inst.op) {
      case Op::splat:
        lanes.push_back(fitted(inst.args[0], 0, result));
        break;
      case Op::extract:
        lanes.push_back(fitted(inst.args[0], static_cast<std::size_t>(inst.index), result));
        break;
      case Op::select:
        lanes.push_back(select(ids(inst.args[0])[lane], id_type(result),
                               fitted(inst.args[1], lane, result),
                               fitted(inst.args[2], lane, result)));
        break;
      default:
        lanes.push_back(
            m_.emit(spv::Op::OpBitcast, id_type(result),
                    {type(inst.args[0]).dtype == DType::i64 ? wide(inst.args[0], lane)
                                                            : ids(inst.args[0])[lane]}));
    }
  }
  ids(result) = std::move(lanes);
}

// Halves: the order of a reduction is part of its result.
void Emitter::reduce(const kir::Inst& inst) {
  const kir::Value from = inst.args[0], result = inst.results[0];
  const bool is_long = is_wide(result) || is_wide(from);
  Ids lanes;
  for (std::size_t lane = 0; lane < ids(from).size(); ++lane)
    lanes.push_back(type(from).dtype == DType::i64 ? sized(from, lane, is_long) : ids(from)[lane]);
  for (std::size_t half = lanes.size() / 2; half >= 1; half /= 2)
    for (std::size_t k = 0; k < half; ++k)
      lanes[k] = combine(inst.op, type(from).dtype, is_long, lanes[k], lanes[k + half]);
  Id last = lanes[0];
  if (is_long && !is_wide(result)) last = m_.emit(spv::Op::OpUConvert, bits32(), {last});
  ids(result) = {last};
}

Id Emitter::combine(Op op, DType dtype, bool wide, Id a, Id b) {
  if (op == Op::reduce_add || op == Op::group_add)
    return is_float(dtype) ? exact(spv::Op::OpFAdd, a, b, dtype)
                           : m_.emit(spv::Op::OpIAdd, id_type(dtype, wide), {a, b});
  return extreme(op == Op::reduce_max || op == Op::group_max, dtype, wide, a, b);
}

// min(a, b) = a < b or a is NaN ? a : b.
Id Emitter::extreme(bool maximum, DType dtype, bool wide, Id a, Id b) {
  const Id type = id_type(dtype, wide);
  if (dtype == DType::boolean)
    return m_.emit(maximum ? spv::Op::OpLogicalOr : spv::Op::OpLogicalAnd, type, {a, b});
  if (!is_float(dtype)) return m_.extended(maximum ? GLSLstd450SMax : GLSLstd450SMin, type, {a, b});
  // Beside a number, one comparison that also holds for a NaN says both.
  if (is_constant(b))
    return select(m_.emit(maximum ? spv::Op::OpFUnordGreaterThan : spv::Op::OpFUnordLessThan,
                          m_.type_bool(), {a, b}),
                  type, a, b);
  const Id better = m_.emit(maximum ? spv::Op::OpFOrdGreaterThan : spv::Op::OpFOrdLessThan,
                            m_.type_bool(), {a, b});
  const Id best = select(better, type, a, b);
  return is_constant(a) ? best
                        : select(m_.emit(spv::Op::OpIsNan, m_.type_bool(), {a}), type, a, best);
}

Id Emitter::integer(const kir::Inst& inst, std::size_t lane) {
  const kir::Value result = inst.results[0], first = inst.args[0];
  const bool all_narrow =
      !is_wide(result) && std::ranges::none_of(inst.args, [&](kir::Value v) { return is_wide(v); });
  if (inst.op == Op::shl || inst.op == Op::shr) return shift(inst, lane);
  const IntegerRow* row = find(kIntegers, inst.op);
  const bool low_bits = (row && row->low_bits) || inst.op == Op::neg;
  const bool is_long =
      type(result).dtype == DType::i64 && (low_bits ? is_wide(result) : !all_narrow);
  // A number of fewer bits than it is computed in, or the other way round.
  const auto operand = [&](std::size_t k) {
    return type(first).dtype == DType::i64 ? sized(inst.args[k], lane, is_long)
                                           : ids(inst.args[k])[lane];
  };
  const Id number = is_long ? bits64() : bits32();
  Id id = 0;
  if (row) {
    const bool positive =
        std::ranges::all_of(inst.args, [&](kir::Value v) { return ranges_[v.id].low >= 0; });
    id = m_.emit(positive ? row->unsigned_code : row->code, number, {operand(0), operand(1)});
  } else if (inst.op == Op::neg) {
    id = m_.emit(spv::Op::OpSNegate, number, {operand(0)});
  } else if (inst.op == Op::abs) {
    id = m_.extended(GLSLstd450SAbs, number, {operand(0)});
  } else if (inst.op == Op::min || inst.op == Op::max) {
    id = extreme(inst.op == Op::max, type(first).dtype, is_long, operand(0), operand(1));
  } else if (inst.op == Op::mulhi) {
    // Of 64 bits whatever the range: the upper half of the whole product.
    if (type(first).dtype == DType::i32) return multiply_high(operand(0), operand(1), false);
    id = multiply_high(wide(inst.args[0], lane), wide(inst.args[1], lane), true);
    return is_wide(result) ? id : m_.emit(spv::Op::OpUConvert, bits32(), {id});
  } else {
    throw InternalError("SPIR-V: an integer instruction without a row");
  }
  return is_long && !is_wide(result) ? m_.emit(spv::Op::OpUConvert, bits32(), {id}) : id;
}

Id Emitter::shift(const kir::Inst& inst, std::size_t lane) {
  const kir::Value result = inst.results[0], by = inst.args[1];
  const bool is_i64 = type(result).dtype == DType::i64;
  const Range& amount = ranges_[by.id];
  const bool few = amount.low >= 0 && amount.high <= 31;
  const bool is_long =
      is_i64 && (is_wide(result) || !few || (inst.op == Op::shr && is_wide(inst.args[0])));
  const Id number = is_long ? bits64() : bits32();
  const Id a = is_i64 ? sized(inst.args[0], lane, is_long) : ids(inst.args[0])[lane];
  Id b = is_i64 ? sized(by, lane, is_long) : ids(by)[lane];
  if (!few) b = m_.emit(spv::Op::OpBitwiseAnd, number, {b, is_long ? u64(63) : u32(31)});
  const Id id =
      m_.emit(inst.op == Op::shl ? spv::Op::OpShiftLeftLogical : spv::Op::OpShiftRightArithmetic,
              number, {a, b});
  return is_long && !is_wide(result) ? m_.emit(spv::Op::OpUConvert, bits32(), {id}) : id;
}

Id Emitter::multiply_high(Id a, Id b, bool wide) {
  if (!wide) {
    const Id pair = m_.type(spv::Op::OpTypeStruct, {bits32(), bits32()});
    return m_.emit(spv::Op::OpCompositeExtract, bits32(),
                   {m_.emit(spv::Op::OpUMulExtended, pair, {a, b}), 1});
  }
  // By halves, since few devices have the product of 64 bits.
  const auto low = [&](Id x) {
    return m_.emit(spv::Op::OpBitwiseAnd, bits64(), {x, u64(0xFFFFFFFFU)});
  };
  const auto high = [&](Id x) {
    return m_.emit(spv::Op::OpShiftRightLogical, bits64(), {x, u64(32)});
  };
  const auto times = [&](Id x, Id y) { return m_.emit(spv::Op::OpIMul, bits64(), {x, y}); };
  const auto plus = [&](Id x, Id y) { return m_.emit(spv::Op::OpIAdd, bits64(), {x, y}); };
  const Id al = low(a), ah = high(a), bl = low(b), bh = high(b);
  const Id middle = plus(times(ah, bl), high(times(al, bl)));
  const Id rest = plus(times(al, bh), low(middle));
  return plus(plus(times(ah, bh), high(middle)), high(rest));
}

Id Emitter::real(const kir::Inst& inst, std::size_t lane) {
  const auto operand = [&](std::size_t k) { return ids(inst.args[k])[lane]; };
  const DType dtype = type(inst.args[0]).dtype;
  const Id number = id_type(dtype, false);
  if (dtype == DType::f32) {
    if (inst.op == Op::div && !target_.divides) return Rounding(m_).divide(operand(0), operand(1));
    if (inst.op == Op::sqrt && !target_.takes_roots) return Rounding(m_).square_root(operand(0));
    if (inst.op == Op::fma && !target_.fuses) return multiply_add(inst, lane);
  }
  if (const FloatRow* row = find(kFloats, inst.op))
    return exact(row->code, operand(0), operand(1), dtype);
  if (const ExtendedRow* row = find(kExtended, inst.op))
    return m_.extended(row->code, number, {operand(0)});
  switch (inst.op) {
    case Op::neg:
      return m_.emit(spv::Op::OpFNegate, number, {operand(0)});
    case Op::fma: {
      const Id id = m_.extended(GLSLstd450Fma, number, {operand(0), operand(1), operand(2)});
      m_.decorate(id, spv::Decoration::NoContraction);
      return id;
    }
    case Op::min:
    case Op::max:
      return extreme(inst.op == Op::max, dtype, false, operand(0), operand(1));
    default:
      throw InternalError("SPIR-V: a float instruction without a row");
  }
}

// Without an instruction that rounds once. What a loop adds up depends on the order anyway, so
// there a product and a sum will do; elsewhere the difference may be what is wanted.
Id Emitter::multiply_add(const kir::Inst& inst, std::size_t lane) {
  const Id x = ids(inst.args[0])[lane], y = ids(inst.args[1])[lane], z = ids(inst.args[2])[lane];
  if (sums_[inst.args[2].id]) {
    sums_[inst.results[0].id] = true;
    return exact(spv::Op::OpFAdd, exact(spv::Op::OpFMul, x, y), z);
  }
  if (!target_.float64) return Rounding(m_).multiply_add(x, y, z);
  double_type();
  return Rounding(m_).multiply_add_in_double(x, y, z);
}

Id Emitter::logic(const kir::Inst& inst, std::size_t lane) {
  const spv::Op code = inst.op == Op::bit_and  ? spv::Op::OpLogicalAnd
                       : inst.op == Op::bit_or ? spv::Op::OpLogicalOr
                                               : spv::Op::OpLogicalNotEqual;
  return m_.emit(code, m_.type_bool(), {ids(inst.args[0])[lane], ids(inst.args[1])[lane]});
}

Id Emitter::compare(const kir::Inst& inst, std::size_t lane) {
  const CompareRow& row = *find(kCompares, inst.op);
  const kir::Value a = inst.args[0], b = inst.args[1];
  const DType dtype = type(a).dtype;
  const spv::Op code = is_float(dtype)           ? row.real
                       : dtype == DType::boolean ? row.boolean
                                                 : row.integer;
  const bool is_long = is_wide(a) || is_wide(b);
  const auto side = [&](kir::Value v) {
    return dtype == DType::i64 ? sized(v, lane, is_long) : ids(v)[lane];
  };
  return m_.emit(code, m_.type_bool(), {side(a), side(b)});
}

Id Emitter::cast(const kir::Inst& inst, std::size_t lane) {
  const kir::Value from = inst.args[0], to = inst.results[0];
  const DType source = type(from).dtype, target = type(to).dtype;
  const Id x = ids(from)[lane];
  if (target == DType::boolean) {
    if (is_float(source))
      return m_.emit(spv::Op::OpFUnordNotEqual, m_.type_bool(), {x, real_constant(source, 0)});
    return m_.emit(spv::Op::OpINotEqual, m_.type_bool(), {x, is_wide(from) ? u64(0) : u32(0)});
  }
  if (source == DType::boolean) {
    if (is_float(target))
      return select(x, id_type(target, false), real_constant(target, 1), real_constant(target, 0));
    return select(x, bits32(), u32(1), u32(0));
  }
  if (is_float(source) && is_float(target))
    return m_.emit(spv::Op::OpFConvert, id_type(target, false), {x});
  if (is_float(source)) return to_integer(x, source, target == DType::i64);
  if (is_float(target)) return m_.emit(spv::Op::OpConvertSToF, id_type(target, false), {x});
  return sized(from, lane, is_wide(to));
}

// Truncates and saturates; NaN gives 0. What does not fit is kept away from the conversion.
Id Emitter::to_integer(Id x, DType from, bool wide) {
  const Id number = wide ? bits64() : bits32(), boolean = m_.type_bool();
  const Id limit = real_constant(from, wide ? 0x1p63 : 0x1p31),
           least = real_constant(from, wide ? -0x1p63 : -0x1p31);
  const Id above = m_.emit(spv::Op::OpFOrdGreaterThanEqual, boolean, {x, limit});
  const Id below = m_.emit(spv::Op::OpFOrdLessThan, boolean, {x, least});
  const Id outside = m_.emit(spv::Op::OpLogicalOr, boolean,
                             {m_.emit(spv::Op::OpLogicalOr, boolean, {above, below}),
                              m_.emit(spv::Op::OpIsNan, boolean, {x})});
  const Id inside = select(outside, id_type(from, false), real_constant(from, 0), x);
  const Id converted = m_.emit(spv::Op::OpConvertFToS, number, {inside});
  const Id most = wide ? u64(INT64_MAX) : u32(INT32_MAX);
  const Id fewest = wide ? u64(std::uint64_t{1} << 63) : u32(std::uint32_t{1} << 31);
  return select(above, number, most, select(below, number, fewest, converted));
}

}  // namespace pantala::codegen::spirv
