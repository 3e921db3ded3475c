// mlp, which takes items of any shape as one row of numbers, and learns numbers too.
#include <algorithm>

#include "pantala/error.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

// In the order of nn::Activation.
const std::vector<std::string> kActivations = {"identity", "relu",      "leaky_relu", "elu",
                                               "gelu",     "gelu_tanh", "silu",       "mish",
                                               "tanh",     "sigmoid"};

nn::Activation activation_of(const std::string& name) {
  const auto found = std::find(kActivations.begin(), kActivations.end(), name);
  if (found == kActivations.end()) throw TypeError("there is no activation '" + name + "'");
  return static_cast<nn::Activation>(found - kActivations.begin());
}

TrainableGraph make_mlp(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                        Phase) {
  zoo::MlpConfig mlp{.batch = batch,
                     .inputs = shape.item.at(0),
                     .hidden = {},
                     .classes = shape.classes,
                     .activation = activation_of(config.model.activation),
                     .task = shape.task,
                     .targets = shape.targets,
                     .target_scale = shape.target_scale};
  std::vector<std::int64_t> hidden;
  for (const double size : config.model.hidden) hidden.push_back(static_cast<std::int64_t>(size));
  mlp.hidden = IntList(hidden);
  return zoo::mlp(mlp);
}

std::vector<std::int64_t> flat_item(const RunConfig&, const Shape& item) {
  if (item.numel() == 0) throw TypeError("the items of the data set are empty");
  return {item.numel()};
}

}  // namespace

const std::vector<std::string>& activation_names() { return kActivations; }

ModelFamily vector_models() {
  return {.about = "",
          .holds = [](const zoo::Preset& preset) { return preset.name == "mlp"; },
          .row =
              [](const zoo::Preset& preset) {
                return ModelRow{
                    .name = preset.name,
                    .item = flat_item,
                    .check_task = [](const RunConfig&, zoo::Task, const std::string&) {},
                    .make = make_mlp};
              }};
}

}  // namespace pantala::run
