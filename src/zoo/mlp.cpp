#include <fmt/format.h>

#include "pantala/ops.h"
#include "zoo/model.h"

namespace pantala::zoo {

Model mlp(const MlpConfig& config, Where where) {
  require_positive("mlp", config.batch, "batch", where);
  require_positive("mlp", config.inputs, "inputs", where);
  for (const std::int64_t size : config.hidden)
    require_positive("mlp", size, "every hidden size", where);
  require_positive("mlp", config.classes, "classes", where);
  Model model;
  model.input = model.graph.input("x", {config.batch, config.inputs}, f32, where);
  Tensor h = model.input;
  int number = 1;
  for (const std::int64_t size : config.hidden)
    h = nn::activate({nn::linear(fmt::format("fc{}", number++), {h, where}, size), where},
                     config.activation);
  add_classifier_loss(model, nn::linear(fmt::format("fc{}", number), {h, where}, config.classes),
                      where);
  return model;
}

}  // namespace pantala::zoo
