#include "ops/optimizers/definition.h"

#include <fmt/format.h>

#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala::ops {

const Tensor& StepScalars::operator[](std::string_view option) const {
  if (const auto found = options_.find(option); found != options_.end()) return found->second;
  throw InternalError(fmt::format("the step of an optimizer has no scalar '{}'", option));
}

Tensor StepScalars::correction(std::string_view beta) const { return 1.0 - pow((*this)[beta], t); }

}  // namespace pantala::ops
