// mlp, which takes items of any shape as one row of numbers, and learns numbers too.
#include "pantala/error.h"
#include "pantala/nn.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

TrainableGraph make_mlp(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                        Phase) {
  zoo::MlpConfig mlp{.batch = batch,
                     .inputs = shape.item.at(0),
                     .hidden = {},
                     .classes = shape.classes,
                     .activation = nn::activation_of(config.model.activation),
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
