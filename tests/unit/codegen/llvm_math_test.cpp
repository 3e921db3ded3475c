// The functions of kir/math.h as machine code against the interpreter: they are kernel code like
// any other, so every target gives the same bits.
#include "kir/math.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::codegen::llvm_math_test {
namespace {

using kir::Var;

TEST(LlvmMath, functions_match_the_interpreter) {
  namespace math = kir::math;
  const std::pair<const char*, Var (*)(Var)> functions[] = {
      {"exp", math::exp},         {"exp2", math::exp2}, {"expm1", math::expm1},
      {"sigmoid", math::sigmoid}, {"tanh", math::tanh}, {"erf", math::erf},
      {"log", math::log},         {"log2", math::log2}, {"log1p", math::log1p},
      {"sin", math::sin},         {"cos", math::cos},   {"rsqrt", math::rsqrt},
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int lanes : {1, 8, 16}) {
      Cases cases(title("math", dtype, lanes), lanes);
      const Var x = cases.input("x", dtype);
      const Var y = cases.input("y", dtype);
      // Numbers of every size, and the range where all of these functions have something to say.
      const Var small = cases.builder.cast(cases.input("i", DType::i32), dtype) * 0x1p-27;
      for (const auto& [name, function] : functions) {
        cases.result(name, function(x));
        cases.result(std::string(name) + "_small", function(small));
      }
      cases.result("pow", math::pow(x, y));
      cases.result("pow_small", math::pow(cases.builder.unary(kir::Op::abs, small), y));
      cases.expect_same_on_all_targets();
    }
  }
}

}  // namespace
}  // namespace pantala::codegen::llvm_math_test
