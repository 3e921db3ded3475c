// The text form of kernels: `parse` gives back exactly the code that `print` wrote, numbers of
// values included. A constant's NaN is "nan"; an empty else is left out. A kernel of several
// threads says `threads 64` before `item %0, %1`, whose second value is the thread.
//
//   kernel "scale_rows" {
//     buffer x: f32 read
//     buffer y: f32 write
//     scratch tile: f32[64]
//     param n: i64
//     item %0
//     %1:i64 = param n
//     %2:i64 = constant 8
//     %3:f32 = constant 0.5
//     %9:f32 = for %4 in %0 to %1 step %2 carry (%5 = %3) {
//       %6:bool = lt %4, %1
//       %7:f32 = load x[%4] mask %6
//       %8:f32 = fma %7, %5, %3
//       store y[%4] = %8 mask %6 stream
//       yield %8
//     }
//   }
#pragma once

#include <string>
#include <string_view>

#include "kir/kernel.h"

namespace pantala::kir {

std::string print(const Kernel& kernel);
// One instruction; of a loop or an if only the first line.
std::string print(const Kernel& kernel, const Inst& inst);

// Throws ParseError with file, line and column, InternalError (from the verifier) if the text is a
// kernel that breaks a rule.
Kernel parse(std::string_view text, std::string_view file = "kernel");

}  // namespace pantala::kir
