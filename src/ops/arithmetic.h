// The faces of arithmetic, functions of single numbers, comparisons, logic, choices and casts.
#pragma once

#include <cmath>

#include "ir/face.h"

namespace pantala::op {

struct Add : ir::Face<"add"> {};
struct Sub : ir::Face<"sub"> {};
struct Mul : ir::Face<"mul"> {};
struct Div : ir::Face<"div"> {};
struct Pow : ir::Face<"pow"> {};

struct PowScalar : ir::Face<"pow_scalar"> {
  struct Attrs {
    double exponent = 1;
    static void fields(auto&& f, auto& a) {
      f("exponent", a.exponent, "the power", ir::Field::required);
    }
  };
};

struct Mod : ir::Face<"mod"> {};
struct Maximum : ir::Face<"maximum"> {};
struct Minimum : ir::Face<"minimum"> {};
struct AddN : ir::Face<"add_n"> {};
struct Square : ir::Face<"square"> {};
struct Exp : ir::Face<"exp"> {};
struct Exp2 : ir::Face<"exp2"> {};
struct Expm1 : ir::Face<"expm1"> {};
struct Log : ir::Face<"log"> {};
struct Log2 : ir::Face<"log2"> {};
struct Log1p : ir::Face<"log1p"> {};
struct Sqrt : ir::Face<"sqrt"> {};
struct Rsqrt : ir::Face<"rsqrt"> {};
struct Reciprocal : ir::Face<"reciprocal"> {};
struct Sin : ir::Face<"sin"> {};
struct Cos : ir::Face<"cos"> {};
struct Tanh : ir::Face<"tanh"> {};
struct Erf : ir::Face<"erf"> {};
struct Floor : ir::Face<"floor"> {};
struct Ceil : ir::Face<"ceil"> {};
struct Round : ir::Face<"round"> {};
struct Neg : ir::Face<"neg"> {};
struct Abs : ir::Face<"abs"> {};
struct Sign : ir::Face<"sign"> {};

struct Clamp : ir::Face<"clamp"> {
  struct Attrs {
    double low = -INFINITY, high = INFINITY;
    static void fields(auto&& f, auto& a) {
      f("low", a.low, "lower bound");
      f("high", a.high, "upper bound");
    }
  };
};

struct Lt : ir::Face<"lt"> {};
struct Le : ir::Face<"le"> {};
struct Gt : ir::Face<"gt"> {};
struct Ge : ir::Face<"ge"> {};
struct Eq : ir::Face<"eq"> {};
struct Ne : ir::Face<"ne"> {};
struct LogicalAnd : ir::Face<"logical_and"> {};
struct LogicalOr : ir::Face<"logical_or"> {};
struct LogicalNot : ir::Face<"logical_not"> {};
struct IsFinite : ir::Face<"is_finite"> {};
struct Where : ir::Face<"where"> {};

struct Cast : ir::Face<"cast"> {
  struct Attrs {
    DType dtype = f32;
    static void fields(auto&& f, auto& a) {
      f("dtype", a.dtype, "the new element type", ir::Field::required);
    }
  };
};

struct StopGradient : ir::Face<"stop_gradient"> {};

}  // namespace pantala::op
