// Every instruction that computes, as machine code, against the kernel-IR interpreter: the same
// bits on any input.
#include "unit/codegen/llvm_case.h"

namespace pantala::codegen::llvm_arithmetic_test {
namespace {

using kir::Builder;
using kir::Op;
using kir::Var;

constexpr int kLanes[] = {1, 2, 4, 8, 16, 32};

void add_comparisons(Cases& cases, Var a, Var b) {
  for (const Op op : {Op::lt, Op::le, Op::eq, Op::ne}) {
    const Var holds = cases.builder.binary(op, a, b);
    cases.result(std::string(kir::op_name(op)), holds);
    cases.result(std::string(kir::op_name(op)) + "_select", cases.builder.select(holds, a, b));
  }
  for (const Op op : {Op::min, Op::max})
    cases.result(std::string(kir::op_name(op)), cases.builder.binary(op, a, b));
}

TEST(LlvmArithmetic, floats_match_the_interpreter) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int lanes : kLanes) {
      Cases cases(title("floats", dtype, lanes), lanes);
      Builder& b = cases.builder;
      const Var x = cases.input("x", dtype), y = cases.input("y", dtype),
                z = cases.input("z", dtype);
      for (const Op op : {Op::add, Op::sub, Op::mul, Op::div})
        cases.result(std::string(kir::op_name(op)), b.binary(op, x, y));
      for (const Op op : {Op::neg, Op::abs, Op::sqrt, Op::floor, Op::ceil, Op::round})
        cases.result(std::string(kir::op_name(op)), b.unary(op, x));
      cases.result("fma", b.fma(x, y, z));
      cases.result("unfused", x * y + z);
      cases.result("negated", b.fma(-x, y, -z));
      cases.result("constant", x * 0.1 + 3.0);
      cases.result("reciprocal", 1.0 / x);
      cases.result("halved", x / 2.0);
      cases.result("minus_zero", b.constant(x.type(), 0.0) - x);
      cases.result("bits", b.bitcast(x, dtype == DType::f32 ? DType::i32 : DType::i64));
      add_comparisons(cases, x, y);
      cases.expect_same_on_all_targets();
    }
  }
}

TEST(LlvmArithmetic, integers_match_the_interpreter) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    for (const int lanes : kLanes) {
      Cases cases(title("integers", dtype, lanes), lanes);
      Builder& b = cases.builder;
      const Var x = cases.input("x", dtype), y = cases.input("y", dtype);
      for (const Op op : {Op::add, Op::sub, Op::mul, Op::bit_and, Op::bit_or, Op::bit_xor, Op::shl,
                          Op::shr, Op::mulhi})
        cases.result(std::string(kir::op_name(op)), b.binary(op, x, y));
      for (const Op op : {Op::neg, Op::abs})
        cases.result(std::string(kir::op_name(op)), b.unary(op, x));
      // A divisor that is neither 0 nor -1.
      const Var divisor =
          b.binary(Op::bit_or, b.binary(Op::bit_and, y, kir::like(y, 0xFFFF)), kir::like(y, 2));
      cases.result("div", x / divisor);
      cases.result("rem", x % divisor);
      cases.result("div_7", x / 7);
      cases.result("rem_minus_3", x % -3);
      cases.result("bits", b.bitcast(x, dtype == DType::i32 ? DType::f32 : DType::f64));
      cases.result("iota", b.iota(x.type()) + x);
      add_comparisons(cases, x, y);
      cases.expect_same_on_all_targets();
    }
  }
}

TEST(LlvmArithmetic, bools_match_the_interpreter) {
  for (const int lanes : kLanes) {
    Cases cases(title("bools", DType::boolean, lanes), lanes);
    Builder& b = cases.builder;
    const Var x = cases.input("x", DType::boolean), y = cases.input("y", DType::boolean),
              z = cases.input("z", DType::boolean);
    for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq, Op::ne})
      cases.result(std::string(kir::op_name(op)), b.binary(op, x, y));
    cases.result("select", b.select(x, y, z));
    cases.result("any", b.reduce(Op::reduce_max, x));
    cases.result("all",
                 b.reduce(Op::reduce_min, b.binary(Op::bit_or, x, b.binary(Op::bit_or, y, z))));
    for (const DType to : {DType::f32, DType::f64, DType::i32, DType::i64})
      cases.result(std::string(dtype_name(to)), b.cast(x, to));
    cases.expect_same_on_all_targets();
  }
}

TEST(LlvmArithmetic, casts_match_the_interpreter) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean};
  for (const int lanes : kLanes) {
    for (const DType from : kTypes) {
      Cases cases(title("casts", from, lanes), lanes);
      const Var x = cases.input("x", from);
      for (const DType to : kTypes)
        if (to != from) cases.result(std::string(dtype_name(to)), cases.builder.cast(x, to));
      cases.expect_same_on_all_targets();
    }
  }
}

TEST(LlvmArithmetic, lanes_match_the_interpreter) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const int lanes : kLanes) {
      if (lanes == 1) continue;
      Cases cases(title("lanes", dtype, lanes), lanes);
      Builder& b = cases.builder;
      const Var x = cases.input("x", dtype);
      // Beside any numbers: sums that neither overflow nor end in NaN, and zeros of both signs,
      // where the order of the operands shows.
      const Var small = b.binary(Op::bit_and, cases.input("i", DType::i32),
                                 b.constant({DType::i32, lanes}, std::int64_t{0xFFFFF}));
      const Var tame = is_float(dtype) ? b.cast(small, dtype) * 0.001 : b.cast(small, dtype);
      const Var zeros =
          is_float(dtype) ? b.select(lt(x, kir::like(x, 0)), kir::like(x, -0.0), kir::like(x, 0.0))
                          : tame;
      for (const Op op : {Op::reduce_add, Op::reduce_max, Op::reduce_min}) {
        const std::string name(kir::op_name(op));
        cases.result(name, b.reduce(op, x));
        cases.result(name + "_tame", b.reduce(op, tame));
        cases.result(name + "_zeros", b.reduce(op, zeros));
      }
      for (int lane = 0; lane < lanes; lane += lane == 0 ? lanes - 1 : 1) {
        const Var one = b.extract(x, lane);
        cases.result("extract_" + std::to_string(lane), one);
        cases.result("splat_" + std::to_string(lane), b.splat(one, lanes));
      }
      cases.expect_same_on_all_targets();
    }
  }
}

TEST(LlvmArithmetic, transposes_match_the_interpreter) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean}) {
    for (const int lanes : {2, 4, 8, 16}) {
      Cases cases(title("transpose", dtype, lanes), lanes);
      std::vector<Var> rows;
      for (int r = 0; r < lanes; ++r)
        rows.push_back(cases.input("row_" + std::to_string(r), dtype));
      const std::vector<Var> columns = cases.builder.transpose(rows);
      for (int c = 0; c < lanes; ++c)
        cases.result("column_" + std::to_string(c), columns[static_cast<std::size_t>(c)]);
      cases.expect_same_on_all_targets();
    }
  }
}

}  // namespace
}  // namespace pantala::codegen::llvm_arithmetic_test
