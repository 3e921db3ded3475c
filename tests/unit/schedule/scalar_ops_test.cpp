// Every pointwise primitive of the op table as kernel code: against the op's own meaning through
// the kernel interpreter, for every dtype that the op takes, and as machine code against the
// interpreter.
#include "schedule/scalar_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kir/simplify.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::schedule::scalar_ops_test {
namespace {

using ir::AttrValues;
using ir::Number;
using ir::OpDef;
using kir::Var;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DType kDTypes[] = {f32, f64, f16, bf16, i32, i64, u8, boolean};

// Primitives with a meaning on whole tensors that is one element by element.
const std::set<std::string> kEvaluated = {"add_n", "cast", "stop_gradient"};

bool is_pointwise_primitive(const OpDef& op) {
  return (op.scalar != nullptr && op.expand == nullptr) || kEvaluated.contains(op.name);
}

std::vector<const OpDef*> primitives() {
  std::vector<const OpDef*> found;
  for (const OpDef* op : ops::table().all())
    if (is_pointwise_primitive(*op)) found.push_back(op);
  return found;
}

// An op with the dtypes of its inputs and its attributes.
struct Case {
  const OpDef* op;
  std::vector<DType> inputs;
  AttrValues attrs;
  DType result;
};

std::string describe(const Case& c) {
  std::string text = c.op->name + "(";
  for (const DType t : c.inputs) text += std::string(dtype_name(t)) + " ";
  for (const ir::AttrValue& a : c.attrs) text += ir::to_text(a) + " ";
  return text + ") -> " + std::string(dtype_name(c.result));
}

std::vector<AttrValues> attributes_of(const OpDef& op) {
  std::vector<AttrValues> all;
  if (op.name == "pow_scalar") {
    for (const double e : {0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -0.5, -2.0, -3.0, 4.0, 7.0, 0.25,
                           1.5, -2.5, 1e3, kInfinity, -kInfinity, std::nan("")})
      all.push_back({e});
  } else if (op.find_attr("dtype")) {
    for (const DType t : kDTypes) all.push_back({t});
  } else {
    all.emplace_back();
  }
  return all;
}

// Every use that the op's shape rule accepts: inputs of one dtype, perhaps behind a condition.
std::vector<Case> cases_of(const OpDef& op) {
  std::vector<Case> found;
  const auto count = static_cast<std::size_t>(op.max_inputs().value_or(3));
  for (const AttrValues& attrs : attributes_of(op))
    for (const DType dtype : kDTypes)
      for (const DType first : {dtype, boolean}) {
        if (first != dtype && count < 2) continue;
        std::vector<DType> dtypes(count, dtype);
        dtypes[0] = first;
        std::vector<Type> types;
        for (const DType t : dtypes) types.push_back({t, {1}});
        ir::InferContext context(op, types, attrs);
        try {
          op.infer(context);
        } catch (const TypeError&) { continue; }
        const Case c{&op, dtypes, context.attrs(), context.results()[0].dtype};
        if (found.empty() || describe(found.back()) != describe(c)) found.push_back(c);
      }
  return found;
}

// --- numbers

std::vector<double> special_reals(DType dtype) {
  std::vector<double> v;
  for (const double x : {0.0,
                         1.0,
                         2.0,
                         3.0,
                         0.5,
                         1.5,
                         2.5,
                         0.3,
                         7.25,
                         1e-20,
                         88.5,
                         300.0,
                         740.0,
                         16777217.0,
                         2147483647.0,
                         2147483648.0,
                         4294967297.0,
                         1e15,
                         9.3e18,
                         0x1p-24,
                         0x1.8p-25,
                         65519.0,
                         65520.0,
                         0x1p-149,
                         0x1.234p-130,
                         0x1p-1074,
                         0x1.fp-1030,
                         0x1.fffffep127,
                         0x1.fffffffffffffp1023,
                         kInfinity})
    v.push_back(round_to(dtype, x)), v.push_back(round_to(dtype, -x));
  v.push_back(std::nan(""));
  return v;
}

std::vector<std::int64_t> special_integers(DType dtype) {
  std::vector<std::int64_t> v;
  for (const std::int64_t x :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, std::int64_t{127},
        std::int64_t{255}, std::int64_t{256}, std::int64_t{46341}, std::int64_t{INT32_MAX},
        std::int64_t{INT32_MIN}, std::int64_t{1} << 32, INT64_MAX, INT64_MIN})
    v.push_back(wrap_to(dtype, x)), v.push_back(wrap_to(dtype, x == INT64_MIN ? x + 1 : -x));
  return v;
}

Number random_number(DType dtype, codegen::Draw& draw) {
  if (!is_float(dtype))
    return Number::of(wrap_to(dtype, static_cast<std::int64_t>(draw.bits()) >> draw.bits() % 60));
  const double unit = std::ldexp(static_cast<double>(draw.bits()), -63) - 1;
  switch (draw.bits() % 4) {
    case 0:
      return round_to(dtype, unit);
    case 1:
      return round_to(dtype, unit * 100);
    case 2:
      return round_to(dtype, draw.real(f64));
    default:
      return round_to(dtype, draw.real(f32));
  }
}

// Operands of every pair of special values (the third input repeats), then random ones.
std::vector<std::vector<Number>> operands_of(const Case& c) {
  std::vector<std::vector<Number>> special;
  for (const DType t : c.inputs) {
    special.emplace_back();
    if (is_float(t))
      for (const double x : special_reals(t)) special.back().emplace_back(x);
    else
      for (const std::int64_t x : special_integers(t)) special.back().push_back(Number::of(x));
  }
  std::vector<std::vector<Number>> columns(c.inputs.size());
  const auto& second = special[special.size() > 1 ? 1 : 0];
  const std::size_t pairs = special.size() > 1 ? second.size() : 1;
  for (std::size_t i = 0; i < special[0].size(); ++i)
    for (std::size_t j = 0; j < pairs; ++j) {
      columns[0].push_back(special[0][i]);
      if (special.size() > 1) columns[1].push_back(second[j]);
      if (special.size() > 2) columns[2].push_back(special[2][(i * 7 + j) % special[2].size()]);
    }
  codegen::Draw draw(11);
  for (int k = 0; k < 400; ++k)
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i].push_back(random_number(c.inputs[i], draw));
  return columns;
}

// --- the meaning

Literal literal_of(DType dtype, const std::vector<Number>& values) {
  Literal literal(Type{dtype, {std::ssize(values)}});
  for (std::size_t k = 0; k < values.size(); ++k)
    if (is_float(dtype))
      literal.f()[k] = values[k].f;
    else
      literal.i()[k] = values[k].i;
  return literal;
}

std::vector<Number> meaning(const Case& c, const std::vector<std::vector<Number>>& columns) {
  const std::size_t count = columns[0].size();
  std::vector<Number> results(count);
  const auto wrapped = [&](Number n) {
    return is_float(c.result) ? Number(n.real()) : Number::of(wrap_to(c.result, n.i));
  };
  if (c.op->eval != nullptr) {
    std::vector<Literal> inputs;
    std::vector<const Literal*> pointers;
    for (std::size_t i = 0; i < columns.size(); ++i)
      inputs.push_back(literal_of(c.inputs[i], columns[i]));
    for (const Literal& l : inputs) pointers.push_back(&l);
    const Type type{c.result, {static_cast<std::int64_t>(count)}};
    const Literal out = c.op->eval(ir::EvalContext(pointers, {&type, 1}), c.attrs)[0];
    for (std::size_t k = 0; k < count; ++k)
      results[k] = out.is_float() ? Number(out.f()[k]) : Number::of(out.i()[k]);
    return results;
  }
  const ir::ScalarFn function = c.op->scalar(c.attrs);
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<Number> x;
    for (const std::vector<Number>& column : columns) x.push_back(column[k]);
    const bool by_zero = c.op->name == "mod" && !is_float(c.inputs[0]) && x[1].i == 0;
    results[k] = by_zero ? Number::of(0) : wrapped(function(x.data()));
  }
  return results;
}

// --- the kernel

constexpr std::int64_t kPerItem = 32;

// Item i makes the elements 32 i to 32 i + 31. The result is kept as it stands in the register.
kir::Kernel kernel_of(const Case& c, int lanes) {
  kir::Builder b("scalar_op");
  std::vector<kir::BufferId> inputs;
  for (const DType t : c.inputs)
    inputs.push_back(b.buffer("x" + std::to_string(inputs.size()), t, kir::Access::read));
  const kir::BufferId out = b.buffer("y", kir::register_dtype(c.result), kir::Access::write);
  b.loop(b.item() * kPerItem, b.item() * kPerItem + kPerItem, b.i64(lanes), [&](Var at) {
    std::vector<Var> x;
    for (const kir::BufferId& id : inputs) x.push_back(b.load(id, at, lanes));
    b.store(out, at, emit_scalar_op(b, *c.op, c.attrs, x, c.inputs, c.result));
  });
  return kir::simplify(b.finish());
}

// Numbers in memory of their dtype.
codegen::Array memory_of(DType dtype, const std::vector<Number>& values) {
  codegen::Array a = codegen::zeros(dtype, std::ssize(values));
  const auto size = static_cast<std::size_t>(dtype_bytes(dtype));
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto single = static_cast<float>(values[k].f);
    const auto narrow = static_cast<std::int32_t>(values[k].i);
    const void* lane = dtype == f64                       ? static_cast<const void*>(&values[k].f)
                       : is_float(dtype)                  ? &single
                       : dtype == i64 || dtype == boolean ? static_cast<const void*>(&values[k].i)
                                                          : &narrow;
    kir::store_element(dtype, static_cast<const std::byte*>(lane), a.bytes.data() + k * size);
  }
  return a;
}

Number number_at(const codegen::Array& a, std::size_t k) {
  const std::byte* p = a.bytes.data() + k * static_cast<std::size_t>(dtype_bytes(a.dtype));
  const auto read = [&](auto value) { return std::memcpy(&value, p, sizeof(value)), value; };
  switch (a.dtype) {
    case DType::f32:
      return static_cast<double>(read(float{}));
    case DType::f64:
      return read(double{});
    case DType::i32:
      return Number::of(read(std::int32_t{}));
    case DType::i64:
      return Number::of(read(std::int64_t{}));
    default:
      return Number::of(read(std::uint8_t{}));
  }
}

codegen::Array interpreted(const Case& c, const std::vector<std::vector<Number>>& columns,
                           int lanes) {
  const std::size_t items = (columns[0].size() + kPerItem - 1) / kPerItem;
  std::vector<codegen::Array> arrays;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<Number> padded = columns[i];
    padded.resize(items * kPerItem, is_float(c.inputs[i]) ? Number(0.0) : Number::of(0));
    arrays.push_back(memory_of(c.inputs[i], padded));
  }
  arrays.push_back(
      codegen::zeros(kir::register_dtype(c.result), static_cast<std::int64_t>(items) * kPerItem));
  kir::Arguments arguments;
  for (codegen::Array& a : arrays)
    arguments.buffers.push_back({a.dtype, a.bytes.data(), a.elements()});
  kir::interpret(kernel_of(c, lanes), arguments, 0, static_cast<std::int64_t>(items));
  return arrays.back();
}

// --- how close

// Ops whose f32 and f64 results are not the correctly rounded ones.
double allowed_units(const Case& c) {
  static const std::set<std::string> rounded_often = {
      "exp", "exp2", "expm1", "log", "log2",  "log1p",   "rsqrt",     "sin",
      "cos", "tanh", "erf",   "pow", "add_n", "sigmoid", "pow_scalar"};
  // f16 and bf16 are rounded by way of f32.
  if (c.result == f16 || c.result == bf16) return 1;
  // The powers with code of their own; the double truth is itself within a unit.
  if (c.op->name == "pow_scalar") {
    static const std::set<double> exact = {0.0, 1.0, 2.0, 3.0, 0.5, -1.0};
    if (exact.contains(std::get<double>(c.attrs[0]))) return c.result == f64 ? 1 : 0.51;
  }
  return rounded_often.contains(c.op->name) ? 3 : 0;
}

// In units in the last place of the dtype at the truth.
double distance(DType dtype, double got, double truth) {
  const double rounded = round_to(dtype, truth);
  if (got == rounded || (got != got && truth != truth)) return 0;
  if (!std::isfinite(got) || !std::isfinite(truth)) return kInfinity;
  const int digits = dtype == f64 ? 53 : dtype == f32 ? 24 : dtype == f16 ? 11 : 8;
  const int least = dtype == f64 ? -1022 : dtype == f16 ? -14 : -126;
  const int exponent = truth == 0 ? least : std::max(std::ilogb(truth), least);
  return std::fabs(got - truth) / std::ldexp(1.0, exponent + 1 - digits);
}

// What of a result is wrong, or "". A sum may cancel, so add_n is measured at its greatest term.
std::string wrong(const Case& c, Number got, Number truth, double greatest) {
  if (!is_float(c.result)) return got.i == truth.i ? "" : "another number";
  if (got.f == got.f && round_to(c.result, got.f) != got.f) return "not a number of the dtype";
  if (truth.f == truth.f && std::signbit(got.f) != std::signbit(truth.f) && c.op->name != "add_n")
    return "another sign";
  if (c.op->name == "add_n" && std::isfinite(got.f) && std::isfinite(truth.f)) {
    const double slack = std::nextafter(greatest, kInfinity) - greatest;
    const double unit = c.result == f64   ? slack
                        : c.result == f32 ? slack * 0x1p29
                        : c.result == f16 ? std::max(slack * 0x1p42, 0x1p-24)
                                          : slack * 0x1p45;
    return std::fabs(got.f - truth.f) <= 3 * unit ? "" : "too far off";
  }
  return distance(c.result, got.f, truth.f) <= allowed_units(c) ? "" : "too far off";
}

class ScalarOps : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(ScalarOps, means_what_the_op_means_in_every_d_type) {
  const std::vector<Case> cases = cases_of(*GetParam());
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases) {
    const auto columns = operands_of(c);
    const std::vector<Number> truth = meaning(c, columns);
    const codegen::Array wide = interpreted(c, columns, 16);
    int shown = 0;
    for (std::size_t k = 0; k < truth.size() && shown < 3; ++k) {
      const Number got = number_at(wide, k);
      double greatest = 0;
      std::string operands;
      for (const auto& column : columns) {
        greatest = std::max(greatest, std::fabs(column[k].real()));
        operands +=
            (column[k].integral ? std::to_string(column[k].i) : std::to_string(column[k].f)) + " ";
      }
      const std::string what = wrong(c, got, truth[k], greatest);
      if (what.empty()) continue;
      ++shown;
      ADD_FAILURE() << describe(c) << " at " << operands << ": " << what << ": " << got.real()
                    << ", the truth is " << truth[k].real();
    }
    // The bits of an element do not depend on its neighbours.
    for (const int lanes : {1, 8}) {
      const codegen::Array narrow = interpreted(c, columns, lanes);
      const std::int64_t size = dtype_bytes(wide.dtype);
      for (std::int64_t k = 0; k < wide.elements(); ++k)
        ASSERT_TRUE(codegen::same_element(wide.dtype, wide.bytes.data() + k * size,
                                          narrow.bytes.data() + k * size))
            << describe(c) << " with " << lanes << " lanes, element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ScalarOps, ::testing::ValuesIn(primitives()),
                         [](const auto& p) { return p.param->name; });

TEST(ScalarOpTable, has_every_pointwise_primitive_and_nothing_else) {
  for (const OpDef* op : ops::table().all()) {
    EXPECT_EQ(is_scalar_op(*op), is_pointwise_primitive(*op)) << op->name;
    if (is_scalar_op(*op)) {
      EXPECT_GE(scalar_op_cost(*op), 0) << op->name;
      EXPECT_LE(scalar_op_cost(*op), 100) << op->name;
    }
  }
  const auto cost = [](const char* op) { return scalar_op_cost(ops::table().get(op)); };
  EXPECT_EQ(cost("add"), 1);
  EXPECT_GT(cost("div"), cost("mul"));
  EXPECT_GT(cost("exp"), cost("div"));
  EXPECT_GT(cost("random_bits"), cost("exp"));
  EXPECT_THROW(cost("reshape"), InternalError);
}

// The truth of pow_scalar knows the exponent as a double; a kernel has it in the dtype.
TEST(ScalarOpTable, rounds_attributes_to_the_d_type) {
  const OpDef& op = ops::table().get("pow_scalar");
  const Case c{&op, {f32}, {1.0 / 3}, f32};
  const codegen::Array got = interpreted(c, {{Number(27.0), Number(0.125)}}, 8);
  const double exponent = round_to(f32, 1.0 / 3);
  EXPECT_LE(distance(f32, number_at(got, 0).f, std::pow(27.0, exponent)), 2);
  EXPECT_LE(distance(f32, number_at(got, 1).f, std::pow(0.125, exponent)), 2);
}

TEST(ScalarOpTable, splats_scalars_beside_vectors) {
  const OpDef& where = ops::table().get("where");
  const DType dtypes[] = {boolean, f32, f32};
  for (int vectors = 0; vectors < 8; ++vectors) {
    kir::Builder b("mixed");
    const auto input = [&](int k, Var x) { return vectors >> k & 1 ? b.splat(x, 8) : x; };
    const Var operands[] = {input(0, b.constant({boolean, 1}, std::int64_t{1})),
                            input(1, b.constant({f32, 1}, 2.0)),
                            input(2, b.constant({f32, 1}, 3.0))};
    const Var y = emit_scalar_op(b, where, {}, operands, dtypes, f32);
    EXPECT_EQ(y.type(), (kir::VType{f32, vectors == 0 ? 1 : 8}));
  }
}

TEST(ScalarOpTable, refuses_what_it_cannot_emit) {
  kir::Builder b("refused");
  const Var x = b.constant({f32, 8}, 1.0), i = b.constant({i32, 8}, std::int64_t{1});
  const auto emit = [&](const char* op, std::vector<Var> operands, std::vector<DType> dtypes,
                        DType result) {
    return emit_scalar_op(b, ops::table().get(op), {}, operands, dtypes, result);
  };
  EXPECT_THROW(emit("relu", {x}, {f32}, f32), InternalError);  // to be expanded first
  EXPECT_THROW(emit("random_bits", {x, x}, {f32, f32}, f32), InternalError);
  EXPECT_THROW(emit("add", {x}, {f32}, f32), InternalError);
  EXPECT_THROW(emit("exp", {x, x}, {f32, f32}, f32), InternalError);
  EXPECT_THROW(emit("add_n", {}, {}, f32), InternalError);
  EXPECT_THROW(emit("add", {x, x}, {f32}, f32), InternalError);
  EXPECT_THROW(emit("add", {x, i}, {f32, f32}, f32), InternalError);
  EXPECT_THROW(emit("add", {i, i}, {i32, i32}, i64), InternalError);
  EXPECT_EQ(emit("add", {i, i}, {u8, u8}, u8).type(), (kir::VType{i32, 8}));
}

// All uses of one dtype in one kernel, as machine code.
class ScalarOpCode : public ::testing::TestWithParam<DType> {};

TEST_P(ScalarOpCode, matches_the_interpreter_on_every_target) {
  const DType dtype = GetParam();
  for (const int lanes : {1, 8}) {
    codegen::Cases cases(codegen::title("scalar_ops", dtype, lanes), lanes);
    std::vector<Var> x;
    for (const char* name : {"a", "b", "c"}) x.push_back(cases.input(name, dtype));
    const Var condition = cases.input("condition", boolean);
    int uses = 0;
    for (const OpDef* op : primitives())
      for (const Case& c : cases_of(*op)) {
        if (c.inputs.back() != dtype) continue;
        if (op->name == "pow_scalar" && std::fabs(std::get<double>(c.attrs[0])) > 5) continue;
        std::vector<Var> operands(x.begin(), x.begin() + std::ssize(c.inputs));
        if (c.inputs[0] != dtype) operands[0] = condition;
        // Buffers have plain names: the use is told by its number.
        cases.result(op->name + "_" + std::to_string(uses++),
                     emit_scalar_op(cases.builder, *op, c.attrs, operands, c.inputs, c.result));
      }
    EXPECT_GT(uses, 5);
    cases.expect_same_on_all_targets();
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, ScalarOpCode, ::testing::ValuesIn(kDTypes),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

}  // namespace
}  // namespace pantala::schedule::scalar_ops_test
