// Conditions that several families of rules ask for.
#include <cmath>
#include <utility>

#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

Condition is_number(std::string variable) {
  std::string name = variable + " is a number";
  return {std::move(name),
          [variable = std::move(variable)](Fit& f) { return f.is_number(variable); }};
}

Condition number_is(std::string name, std::string variable, bool (*holds)(double)) {
  return {std::move(name), [variable = std::move(variable), holds](Fit& f) {
            return !f.is_number(variable) || holds(f.number(variable));
          }};
}

Condition is_per_channel(std::string variable) {
  std::string name = variable + " has a number per channel";
  return {std::move(name), [variable = std::move(variable)](Fit& f) {
            const Shape &shape = f.type(variable).shape, &all = f.type().shape;
            const int channels = 1 - (all.rank() - shape.rank());
            if (all.rank() < 2 || channels < 0) return false;
            return shape[channels] == all[1] && shape.with(channels, 1).numel() == 1;
          }};
}

Condition is_epsilon(std::string variable) {
  return number_is(variable + " is finite and not negative", variable,
                   [](double value) { return value >= 0 && std::isfinite(value); });
}

bool is_ordinary(double value, DType dtype) {
  constexpr double kLeastF16 = 0x1p-14, kLeastF32 = 0x1p-126, kLeastF64 = 0x1p-1022;
  if (!is_float(dtype)) return can_hold(dtype, value);
  const double least = dtype == f16 ? kLeastF16 : dtype == f64 ? kLeastF64 : kLeastF32;
  const double held = std::abs(round_to(dtype, value));
  return held >= least && std::isfinite(held);
}

}  // namespace pantala::rewrite
