// The ranges of scalars by their names: those of the optimizers' options, and of what append() adds
// beside them.
#include "base/options.h"
#include "ops/optimizers/table.h"
#include "pantala/optim.h"

namespace pantala::optim {

namespace {

const ops::OptionRange& range_of(std::string_view name) {
  if (name == "clip_norm" || name == "clip_value") return ops::kPositive;
  if (name == "ema_decay") return ops::kUpToOne;
  const ops::OptionRange* option = ops::range_of(name);
  return option ? *option : ops::kNotNegative;
}

}  // namespace

double checked(std::string_view name, double value) {
  const ops::OptionRange& range = range_of(name);
  if (!range.holds(value)) bad_option("optim", name, range.rule, exact(value));
  return value;
}

}  // namespace pantala::optim
