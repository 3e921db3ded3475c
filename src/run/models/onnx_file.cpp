// Models that come from an ONNX file (model.from): the file's graph with labels and a loss, and its
// weights as the first ones.
#include <fmt/format.h>

#include <algorithm>

#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

// The one input that takes a batch of items.
onnx::Summary::Value items_input(const RunConfig& config) {
  const onnx::Summary summary = onnx::summarize(config.model.from);
  if (summary.inputs.size() != 1)
    throw TypeError(fmt::format("model.from: {} has {} inputs; one that takes the items is needed",
                                config.model.from, summary.inputs.size()));
  const onnx::Summary::Value& input = summary.inputs[0];
  if (!input.axes || input.axes->empty())
    throw TypeError(
        fmt::format("model.from: the input '{}' of {} is {}; a batch of items is needed",
                    input.name, config.model.from, input.str()));
  if (input.name == "labels")
    throw TypeError(
        fmt::format("model.from: the input of {} must not be called 'labels'", config.model.from));
  return input;
}

onnx::Model read(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                 Phase phase) {
  std::vector<std::int64_t> sizes = {batch};
  sizes.insert(sizes.end(), shape.item.begin(), shape.item.end());
  return onnx::import_model(config.model.from, {.shapes = {{items_input(config).name, sizes}},
                                                .any_batch = true,
                                                .training = phase == Phase::training});
}

// The output that is learnt: by its usual name, or the first one.
std::string learnt_output(const Graph& graph, const std::string& usual) {
  const auto outputs = graph.outputs();
  for (const auto& [name, value] : outputs)
    if (name == usual) return name;
  return outputs.at(0).first;
}

[[noreturn]] void refuse_output(const RunConfig& config, const std::string& name,
                                const Tensor& output, const std::string& needed) {
  throw TypeError(fmt::format("model.from: the output '{}' of {} is {}; {} is needed", name,
                              config.model.from, output.type().str(), needed));
}

// In units of the labels' deviation, as the zoo's mlp learns.
Tensor number_loss(Graph& graph, const Tensor& prediction, const Tensor& labels,
                   const zoo::TargetScale& scale) {
  Tensor error = prediction - labels;
  if (!scale.deviation.empty()) {
    const Shape row{static_cast<std::int64_t>(scale.deviation.size())};
    error = error / graph.constant(Literal::floats(row, scale.deviation));
  }
  return mean(error * error);
}

std::vector<std::int64_t> file_model_item(const RunConfig& config, const Shape& item) {
  const onnx::Summary::Value input = items_input(config);
  const std::vector<onnx::Summary::Axis> axes(input.axes->begin() + 1, input.axes->end());
  const bool fixed =
      std::all_of(axes.begin(), axes.end(), [](const auto& a) { return a.size >= 0; });
  std::vector<std::int64_t> sizes;
  if (fixed) {
    for (const auto& axis : axes) sizes.push_back(axis.size);
    if (sizes.size() <= Shape::kMaxRank && Shape(sizes).numel() == item.numel()) return sizes;
  } else {
    // Images of one channel have no axis for it in the data.
    sizes = item.vec();
    if (sizes.size() + 1 == axes.size()) sizes.insert(sizes.begin(), 1);
    bool fits = sizes.size() == axes.size();
    for (std::size_t k = 0; fits && k < sizes.size(); ++k)
      fits = axes[k].size < 0 || axes[k].size == sizes[k];
    if (fits) return sizes;
  }
  throw TypeError(fmt::format("model.from: {} takes '{}' {}; the items of the data set are {}",
                              config.model.from, input.name, input.str(), item.str()));
}

void check_file_model_task(const RunConfig& config, zoo::Task task, const std::string& data) {
  const bool numbers = task == zoo::Task::regression;
  const std::string fitting = numbers ? "mse" : "cross_entropy";
  if (config.model.loss != "auto" && config.model.loss != fitting)
    throw TypeError(fmt::format("model.loss is {}, but the labels of {} are {}; take {}, or set {}",
                                config.model.loss, data, numbers ? "numbers" : "classes", fitting,
                                numbers ? "model.task=classification" : "model.task=regression"));
}

// Labels and loss are added; what is learnt has the name that the zoo's models have for it.
TrainableGraph make_file_model(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                               Phase phase) {
  Graph graph = read(config, shape, batch, phase).graph;
  const Tensor input = graph.leaves(LeafKind::input).at(0).value;
  const bool numbers = shape.task == zoo::Task::regression;
  const std::string usual = numbers ? "prediction" : "logits", name = learnt_output(graph, usual);
  const Tensor output = graph.output(name);
  if (numbers && output.shape() != Shape{batch, shape.targets})
    refuse_output(config, name, output, Type{f32, {batch, shape.targets}}.str());
  if (!numbers && (output.rank() != 2 || output.dim(0) != batch || output.dim(1) < shape.classes))
    refuse_output(
        config, name, output,
        fmt::format("[{}, {} or more], a number per class of the data,", batch, shape.classes));
  const Tensor labels =
      numbers ? graph.input("labels", output.shape()) : graph.input("labels", {batch}, i64);
  const Tensor loss = numbers ? number_loss(graph, output, labels, shape.target_scale)
                              : cross_entropy(output, labels);
  return {std::move(graph).with_outputs({{usual, output}, {"loss", loss}}), input, labels, loss,
          output};
}

}  // namespace

Weights file_model_weights(const RunConfig& config, const ModelShape& shape) {
  return read(config, shape, config.batch_size, Phase::training).weights;
}

ModelRow onnx_file_model() {
  return {.name = "",
          .item = file_model_item,
          .check_task = check_file_model_task,
          .make = make_file_model};
}

}  // namespace pantala::run
