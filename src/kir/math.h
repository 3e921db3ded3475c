// The functions of mathematics as kernel code, for f32 and f64 of any lanes: argument reduction,
// polynomials (src/kir/fit_math.py) and selects, so that every target computes the same bits. The
// largest errors found, in units in the last place: erf, log, log2 below 1 (either dtype); exp,
// exp2 1.03; pow 1.2; log1p, tanh 1.4; rsqrt 1.5; cos, sin 1.6; expm1 1.8; sigmoid 2.3.
//
// All are right at NaN, infinities, zeros of either sign, subnormals, and where results overflow or
// underflow (gradually). Only sin and cos contain a branch: the reduction of arguments beyond 2^17
// (f64: 2^30) runs if some lane has one.
#pragma once

#include "kir/builder.h"

namespace pantala::kir::math {

Var exp(Var x);
Var exp2(Var x);
Var expm1(Var x);
Var sigmoid(Var x);
Var tanh(Var x);
Var erf(Var x);

Var log(Var x);  // below 0: NaN; 0: -infinity
Var log2(Var x);
Var log1p(Var x);
Var pow(Var x, Var y);  // as C's pow at all special values

Var sin(Var x);
Var cos(Var x);

Var rsqrt(Var x);  // 1 / sqrt(x)

}  // namespace pantala::kir::math
