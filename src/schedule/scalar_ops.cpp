#include "schedule/scalar_ops.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>
#include <vector>

#include "kir/math.h"
#include "ops/face.h"
#include "ops/random.h"
#include "pantala/error.h"
#include "schedule/scalar_parts.h"

namespace pantala::schedule {

using kir::Builder;
using kir::Op;
using kir::Var;
namespace math = kir::math;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One use of an op: operands of equal lanes.
struct Use {
  Builder& b;
  const ir::OpDef& op;
  const ir::AttrValues& attrs;
  std::span<const Var> x;
  std::span<const DType> dtypes;
  DType result;

  bool real() const { return is_float(dtypes[0]); }
  template <class T>
  const T& attr(std::string_view name) const {
    return std::get<T>(attrs.at(static_cast<std::size_t>(op.attr_index(name))));
  }
};

Var select(Var condition, Var a, Var b) { return condition.builder().select(condition, a, b); }

// --- arithmetic

// Dividing by -1 may overflow, but leaves nothing, as dividing by 1 does.
Var integer_remainder(Var a, Var b) {
  const Var one = like(b, 1);
  const Var avoided = b.builder().binary(Op::bit_or, eq(b, like(b, 0)), eq(b, like(b, -1)));
  return a % select(avoided, one, b);
}
Var mod(const Use& u) {
  return u.real() ? emit_remainder(u.x[0], u.x[1]) : integer_remainder(u.x[0], u.x[1]);
}

Var add_n(const Use& u) {
  Var sum = u.x[0];
  for (const Var& x : u.x.subspan(1)) sum = sum + x;
  return sum;
}

Var sign(const Use& u) {
  const Var x = u.x[0], zero = like(x, 0);
  return select(lt(zero, x), like(x, 1), select(lt(x, zero), like(x, -1), zero));
}

// --- powers

// A few instructions where they are at least as exact as pow, which is not quite correctly rounded.

// pow knows no negative zero and takes -infinity for a number.
Var square_root(Var x) {
  const Var root = x.builder().unary(Op::sqrt, x + 0.0);
  return select(eq(x, like(x, -kInfinity)), like(x, kInfinity), root);
}

// The square as a sum of two floats, so that only the last step rounds. Where the cube is out of
// range, the product of the lower part may be so too, with the other sign.
Var cube(Var x) {
  Builder& b = x.builder();
  const Var square = x * x, plain = square * x;
  const Var exact = b.fma(square, x, b.fma(x, x, -square) * x);
  return select(lt(b.unary(Op::abs, plain), like(x, kInfinity)), exact, plain);
}

Var pow_scalar(const Use& u) {
  const Var x = u.x[0];
  const double exponent = round_to(x.dtype(), u.attr<double>("exponent"));
  if (exponent == 0) return like(x, 1.0);
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return cube(x);
  if (exponent == 0.5) return square_root(x);
  if (exponent == -1) return 1.0 / x;
  return math::pow(x, like(x, exponent));
}

// --- tests and conversions

Var is_finite(const Use& u) {
  const Var size = u.b.unary(Op::abs, u.x[0]);
  return lt(size, like(size, kInfinity));
}

Var logical_not(const Use& u) { return u.b.binary(Op::bit_xor, u.x[0], like(u.x[0], 1)); }

Var cast(const Use& u) {
  const DType to = kir::register_dtype(u.result);
  // By way of i64: what does not fit the narrower dtypes wraps.
  const Var x = u.real() && is_integer(u.result) ? u.b.cast(u.x[0], DType::i64) : u.x[0];
  return u.b.cast(x, to);
}

// The top 24 bits, which both dtypes hold exactly.
Var bits_to_unit(const Use& u) {
  const Var top = u.b.binary(Op::shr, u.x[0], like(u.x[0], 8));
  const Var bits = u.b.binary(Op::bit_and, top, like(top, 0xFFFFFF));
  return u.b.cast(bits, u.result) * 0x1p-24;
}

// --- the table

// How the value of the code relates to the result's dtype.
enum class Range {
  computed,  // to be rounded to f16 and bf16, wrapped to u8
  kept,      // a number of the dtype already, or one of the operands
};

struct Entry {
  Var (*emit)(const Use&);
  double cost;
  Range range = Range::computed;
};

template <Op op>
Var unary(const Use& u) {
  return u.b.unary(op, u.x[0]);
}
template <Op op>
Var binary(const Use& u) {
  return u.b.binary(op, u.x[0], u.x[1]);
}
template <Op op>
Var reversed(const Use& u) {
  return u.b.binary(op, u.x[1], u.x[0]);
}
template <Var (*function)(Var)>
Var of_one(const Use& u) {
  return function(u.x[0]);
}

const std::unordered_map<std::string_view, Entry>& entries() {
  static const std::unordered_map<std::string_view, Entry> table = {
      {"add", {binary<Op::add>, 1}},
      {"sub", {binary<Op::sub>, 1}},
      {"mul", {binary<Op::mul>, 1}},
      {"div", {binary<Op::div>, 8}},
      {"pow", {[](const Use& u) { return math::pow(u.x[0], u.x[1]); }, 50}},
      {"pow_scalar", {pow_scalar, 30}},
      {"mod", {mod, 40}},
      {"maximum", {binary<Op::max>, 1, Range::kept}},
      {"minimum", {binary<Op::min>, 1, Range::kept}},
      {"add_n", {add_n, 2}},
      {"exp", {of_one<math::exp>, 15}},
      {"exp2", {of_one<math::exp2>, 15}},
      {"expm1", {of_one<math::expm1>, 18}},
      {"log", {of_one<math::log>, 25}},
      {"log2", {of_one<math::log2>, 25}},
      {"log1p", {of_one<math::log1p>, 30}},
      {"sqrt", {unary<Op::sqrt>, 8}},
      {"rsqrt", {of_one<math::rsqrt>, 16}},
      {"reciprocal", {[](const Use& u) { return 1.0 / u.x[0]; }, 8}},
      {"sin", {of_one<math::sin>, 25}},
      {"cos", {of_one<math::cos>, 25}},
      {"tanh", {of_one<math::tanh>, 30}},
      {"erf", {of_one<math::erf>, 30}},
      {"sigmoid", {of_one<math::sigmoid>, 25}},
      {"floor", {unary<Op::floor>, 1, Range::kept}},
      {"ceil", {unary<Op::ceil>, 1, Range::kept}},
      {"round", {unary<Op::round>, 1, Range::kept}},
      {"neg", {unary<Op::neg>, 1}},
      {"abs", {unary<Op::abs>, 1, Range::kept}},
      {"sign", {sign, 3, Range::kept}},
      {"lt", {binary<Op::lt>, 1, Range::kept}},
      {"le", {binary<Op::le>, 1, Range::kept}},
      {"gt", {reversed<Op::lt>, 1, Range::kept}},
      {"ge", {reversed<Op::le>, 1, Range::kept}},
      {"eq", {binary<Op::eq>, 1, Range::kept}},
      {"ne", {binary<Op::ne>, 1, Range::kept}},
      {"logical_and", {binary<Op::bit_and>, 1, Range::kept}},
      {"logical_or", {binary<Op::bit_or>, 1, Range::kept}},
      {"logical_not", {logical_not, 1, Range::kept}},
      {"is_finite", {is_finite, 2, Range::kept}},
      {"where", {[](const Use& u) { return u.b.select(u.x[0], u.x[1], u.x[2]); }, 1, Range::kept}},
      {"cast", {cast, 1}},
      {"stop_gradient", {[](const Use& u) { return u.x[0]; }, 0, Range::kept}},
      {"bits_to_unit", {bits_to_unit, 4}},
  };
  return table;
}

// Ten rounds of two wide products.
constexpr double kRandomBitsCost = 80;

const Entry* find(const ir::OpDef& op) {
  const auto it = entries().find(op.name);
  return it == entries().end() || op.expand != nullptr ? nullptr : &it->second;
}
const Entry& get(const ir::OpDef& op) {
  if (const Entry* entry = find(op)) return *entry;
  throw InternalError(fmt::format("'{}' is not a pointwise primitive with kernel code", op.name));
}

void check(const ir::OpDef& op, std::span<const Var> operands, std::span<const DType> dtypes) {
  const auto fail = [&](const std::string& what) {
    throw InternalError(fmt::format("{} as kernel code: {}", op.name, what));
  };
  const int count = static_cast<int>(operands.size());
  if (count == 0 || count < op.min_inputs() || (op.max_inputs() >= 0 && count > op.max_inputs()))
    fail(fmt::format("{} operands were given for {}", count, op.signature));
  if (operands.size() != dtypes.size())
    fail(fmt::format("{} operands were given with {} dtypes", count, dtypes.size()));
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].dtype() != kir::register_dtype(dtypes[k]))
      fail(fmt::format("operand {} is {}, but a {} is held as {}", k, operands[k].type().str(),
                       dtype_name(dtypes[k]), dtype_name(kir::register_dtype(dtypes[k]))));
}

std::vector<Var> of_equal_lanes(std::span<const Var> operands) {
  Var widest = operands[0];
  for (const Var& x : operands)
    if (x.lanes() > widest.lanes()) widest = x;
  std::vector<Var> splat;
  for (const Var& x : operands) splat.push_back(splat_like(widest, x));
  return splat;
}

}  // namespace

Var emit_fit(Builder& b, Var value, DType dtype) {
  if (dtype == DType::f16) return emit_round_to_f16(value);
  if (dtype == DType::bf16) return emit_round_to_bf16(value);
  if (dtype == DType::u8) return b.binary(Op::bit_and, value, like(value, 255));
  return value;
}

bool is_scalar_op(const ir::OpDef& op) { return find(op) != nullptr; }

Var emit_scalar_op(Builder& b, const ir::OpDef& op, const ir::AttrValues& attrs,
                   std::span<const Var> operands, std::span<const DType> operand_dtypes,
                   DType result) {
  const Entry& entry = get(op);
  check(op, operands, operand_dtypes);
  const std::vector<Var> x = of_equal_lanes(operands);
  const Var value = entry.emit({b, op, attrs, x, operand_dtypes, result});
  if (value.dtype() != kir::register_dtype(result))
    throw InternalError(fmt::format("{} as kernel code gives {}, but its result is {}", op.name,
                                    value.type().str(), dtype_name(result)));
  return entry.range == Range::kept ? value : emit_fit(b, value, result);
}

double scalar_op_cost(const ir::OpDef& op) {
  return ops::is<op::RandomBits>(op) ? kRandomBitsCost : get(op).cost;
}

}  // namespace pantala::schedule
