// Small arithmetic that writers of kernels share: rounded sizes and the lanes at an end.
#pragma once

#include <cstdint>

#include "kir/builder.h"

namespace pantala::schedule {

// Scratch is sized in eighths of powers of two, so that neighbouring block sizes are the same code.
std::int64_t scratch_size(std::int64_t elements);

kir::Var ceil_div(kir::Var a, kir::Var b);
kir::Var ceil_div(kir::Var a, std::int64_t b);
kir::Var round_up(kir::Var a, std::int64_t b);
// The first `count` of `lanes`; any count is fine.
kir::Var first_lanes(kir::Builder& b, kir::Var count, int lanes);

}  // namespace pantala::schedule
