#include "schedule/common/sizes.h"

#include <bit>

namespace pantala::schedule {

using kir::Builder;
using kir::Var;

std::int64_t scratch_size(std::int64_t elements) {
  const auto step =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(elements))) / 8;
  return step == 0 ? elements : (elements + step - 1) / step * step;
}

Var ceil_div(Var a, Var b) { return (a + b - 1) / b; }
Var ceil_div(Var a, std::int64_t b) { return (a + (b - 1)) / b; }
Var round_up(Var a, std::int64_t b) { return ceil_div(a, b) * b; }

Var first_lanes(Builder& b, Var count, int lanes) {
  const Var fits = b.cast(max(min(count, lanes), 0), DType::i32);
  return lt(b.iota({DType::i32, lanes}), b.splat(fits, lanes));
}

}  // namespace pantala::schedule
