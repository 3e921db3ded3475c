// The text form of kernels: `print` and `parse` are inverse to each other up to the numbering of values, which `parse` redoes in order of definition
// (so kernels whose values are numbered in that order, as the builder and the simplifier make them, come back as the same code).
//
//   kernel "axpy" {
//     buffer x: f32 read
//     buffer y: f32 read_write
//     scratch tile: f32[64]
//     param n: i64
//     item %0
//     %1:i64 = param n
//     %2:f32x8 = constant 0.5
//     %4:f32 = for %3 in %0 to %1 step %5 carry (%6 = %7) {
//       %8:f32x8 = load x[%3] mask %9
//       store y[%3] = %8
//       yield %10
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

// Throws ParseError with file, line and column, InternalError (from the verifier) if the text is a kernel that breaks a rule.
Kernel parse(std::string_view text, std::string_view file = "kernel");

}  // namespace pantala::kir
