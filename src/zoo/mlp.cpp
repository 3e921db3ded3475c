#include <fmt/format.h>

#include <cmath>

#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {

void check_scale(const MlpConfig& config, const Where& where) {
  const TargetScale& scale = config.target_scale;
  if (scale.mean.empty() && scale.deviation.empty()) return;
  const auto targets = static_cast<std::size_t>(config.targets);
  if (scale.mean.size() != targets || scale.deviation.size() != targets)
    ir::throw_type_error("mlp", ir::provenance(where),
                         fmt::format("target_scale has {} means and {} deviations for {} targets",
                                     scale.mean.size(), scale.deviation.size(), targets));
  for (std::size_t k = 0; k < targets; ++k)
    if (!(std::isfinite(scale.mean[k]) && std::isfinite(scale.deviation[k]) &&
          scale.deviation[k] > 0))
      ir::throw_type_error(
          "mlp", ir::provenance(where),
          fmt::format("target_scale must be finite, and deviations above 0; of target {} the mean "
                      "is {} and the deviation {}",
                      k, scale.mean[k], scale.deviation[k]));
}

// Closes a regressor whose last layer gives `scaled`: labels and predictions are in the labels'
// units, only the loss is of scaled numbers.
void add_regression_loss(Model& model, const Tensor& scaled, const TargetScale& scale,
                         const Where& where) {
  model.labels = model.graph.input("labels", scaled.shape(), f32, where);
  model.prediction = scaled;
  Tensor target = model.labels;
  if (!scale.mean.empty()) {
    const Shape row = {scaled.dim(1)};
    const Tensor mean = model.graph.constant(Literal::floats(row, scale.mean), where);
    const Tensor deviation = model.graph.constant(Literal::floats(row, scale.deviation), where);
    target = div({sub({model.labels, where}, mean), where}, deviation);
    model.prediction = add({mul({scaled, where}, deviation), where}, mean);
  }
  model.loss = mse_loss({scaled, where}, target);
  model.graph.output("prediction", model.prediction, where);
  model.graph.output("loss", model.loss, where);
}

}  // namespace

Model mlp(const MlpConfig& config, Where where) {
  require_positive("mlp", config.batch, "batch", where);
  require_positive("mlp", config.inputs, "inputs", where);
  for (const std::int64_t size : config.hidden)
    require_positive("mlp", size, "every hidden size", where);
  const bool regression = config.task == Task::regression;
  const std::int64_t outputs = regression ? config.targets : config.classes;
  require_positive("mlp", outputs, regression ? "targets" : "classes", where);
  if (regression) check_scale(config, where);
  Model model;
  model.input = model.graph.input("x", {config.batch, config.inputs}, f32, where);
  Tensor h = model.input;
  int number = 1;
  for (const std::int64_t size : config.hidden)
    h = nn::activate({nn::linear(fmt::format("fc{}", number++), {h, where}, size), where},
                     config.activation);
  const Tensor last = nn::linear(fmt::format("fc{}", number), {h, where}, outputs);
  if (regression)
    add_regression_loss(model, last, config.target_scale, where);
  else
    add_classifier_loss(model, last, where);
  return model;
}

std::vector<Preset> mlp_presets() {
  const Type item{f32, {784}};
  const auto make = [item](const Request& request) {
    const Resolved asked = resolve(request, item, 10, "mlp");
    return mlp({.batch = asked.batch, .inputs = asked.item[0], .classes = asked.classes});
  };
  return {{.name = "mlp",
           .about = "linear layers, one hidden one of 128",
           .item = item,
           .classes = 10,
           .make = make,
           .in_help = "mlp takes anything but tokens"}};
}

}  // namespace pantala::zoo
