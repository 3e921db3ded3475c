// Gradients between the two halves of a split update: what was accumulated, as a mean or as it is.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "pantala/error.h"
#include "plan/step_names.h"
#include "runtime/convert.h"
#include "runtime/session_data.h"

namespace pantala::runtime {

const Store::Entry& SessionData::accumulator_of(std::string_view parameter) const {
  store_.get(parameter, LeafKind::parameter, "parameter");
  const Store::Entry* sum = store_.find(plan::accumulated_gradient(parameter));
  if (!sum) throw TypeError(fmt::format("'{}' is not trained: it has no gradient", parameter));
  return *sum;
}

double SessionData::accumulated_weight() const {
  if (!main_data_->normalize) return 1;
  return store_.read(store_.get(plan::kAccumulatedWeight, LeafKind::state, "state")).at(0);
}

Literal SessionData::gradient(std::string_view parameter) {
  const DType dtype = store_.get(parameter, LeafKind::parameter, "parameter").leaf.type.dtype;
  if (accumulated_ > 0) {
    const Store::Entry& entry = accumulator_of(parameter);
    const Literal sum = store_.read(entry);
    // The numbers that `apply` computes: the weight and the quotient in the type of the sums, then
    // the type of the parameter. The quotient of two floats is the same from doubles.
    const double weight = round_to(sum.dtype(), accumulated_weight());
    Literal mean({dtype, sum.shape()});
    for (std::size_t k = 0; k < mean.f().size(); ++k)
      mean.f()[k] = round_to(dtype, round_to(sum.dtype(), sum.f()[k] / weight));
    return mean;
  }
  const std::string output = fmt::format("grad.{}", parameter);
  const BoundPlan& plan = step_with(output);
  if (!plan.has_output(output))
    throw TypeError(fmt::format(
        "the gradient of '{}' was not kept: {}build the session with observe_gradients = true",
        parameter, splits_update() ? "read it before apply(), or " : ""));
  return plan.output(output);
}

void SessionData::set_gradient(std::string_view parameter, const Literal& value) {
  need_split("set_gradient");
  if (accumulated_ == 0)
    throw TypeError("set_gradient: nothing was accumulated since the last update");
  const Type& type = store_.get(parameter, LeafKind::parameter, "parameter").leaf.type;
  const Store::Entry& entry = accumulator_of(parameter);
  // What the host computes with gradients (GradientAccumulator) is f64: any float is rounded.
  const bool other_float = value.is_float() && value.dtype() != type.dtype;
  if (!other_float || value.shape() != type.shape)
    check_literal({"gradient of", parameter}, value, type);
  Literal sum(entry.leaf.type);
  const double weight = round_to(sum.dtype(), accumulated_weight());
  if (!std::isfinite(weight) || weight == 0)
    throw ValueError(fmt::format(
        "set_gradient: the accumulated items have the weight {}, so there is no mean to set",
        exact(weight)));
  for (std::int64_t k = 0; k < sum.numel(); ++k) {
    const double mean = other_float ? round_to(type.dtype, value.at(k)) : value.at(k);
    sum.f()[static_cast<std::size_t>(k)] = round_to(sum.dtype(), mean * weight);
  }
  store_.write(entry, sum);
}

}  // namespace pantala::runtime
