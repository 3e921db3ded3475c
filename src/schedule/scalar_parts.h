// The larger pieces of schedule/scalar_ops.h: float code that is no function of kir/math.h because
// its result is exact, so that how it is computed cannot be seen.
#pragma once

#include "kir/builder.h"

namespace pantala::schedule {

// C's fmod for f32 and f64 of equal lanes: the remainder of a / b with the sign of a, exact. It
// contains a loop, one round per bit of the quotient; of lanes, the longest.
kir::Var emit_remainder(kir::Var a, kir::Var b);

// An f32 rounded to the nearest number of f16 or bf16 (halves to even, overflow to infinity).
kir::Var emit_round_to_f16(kir::Var x);
kir::Var emit_round_to_bf16(kir::Var x);

}  // namespace pantala::schedule
