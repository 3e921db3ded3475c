// Models that come from an ONNX file (model.from): the file's graph with labels and a loss, and its
// weights as the first ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/log.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "run/models/model.h"

namespace pantala::run {

namespace {

// Inputs that models of text have beside the tokens [batch, sequence], and what they are for a text
// that fills its row.
struct Companion {
  std::string_view name;
  std::int64_t (*value)(std::int64_t position);
};
constexpr Companion kCompanions[] = {
    {"attention_mask", [](std::int64_t) { return std::int64_t{1}; }},
    {"token_type_ids", [](std::int64_t) { return std::int64_t{0}; }},
    {"position_ids", [](std::int64_t position) { return position; }},
};
const Companion* companion_of(const onnx::Summary::Value& input) {
  const auto found = std::find_if(std::begin(kCompanions), std::end(kCompanions),
                                  [&](const Companion& row) { return row.name == input.name; });
  return found != std::end(kCompanions) && input.axes && input.axes->size() == 2 ? &*found
                                                                                 : nullptr;
}

// The values of these inputs for such items.
std::map<std::string, Literal> companions(const onnx::Summary& summary, const Shape& tokens) {
  std::map<std::string, Literal> values;
  for (const onnx::Summary::Value& input : summary.inputs) {
    const Companion* companion = companion_of(input);
    const std::optional<DType> dtype = parse_dtype(input.dtype);
    if (companion == nullptr || !dtype || tokens.rank() != 2) continue;
    Literal value({*dtype, tokens});
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      const auto at = static_cast<std::size_t>(k);
      const std::int64_t number = companion->value(k % tokens[1]);
      if (value.is_float())
        value.f()[at] = static_cast<double>(number);
      else
        value.i()[at] = number;
    }
    values.emplace(input.name, std::move(value));
  }
  return values;
}

// The one input that takes a batch of items.
onnx::Summary::Value items_input(const RunConfig& config, onnx::Summary summary) {
  std::erase_if(summary.inputs, companion_of);
  if (summary.inputs.size() != 1)
    throw TypeError(fmt::format(
        "model.from: {} has {} inputs; one that takes the items is needed (attention_mask, "
        "token_type_ids and position_ids beside it get their usual values)",
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
onnx::Summary::Value items_input(const RunConfig& config) {
  return items_input(config, onnx::summarize(config.model.from));
}

onnx::Model read(const RunConfig& config, const std::vector<std::int64_t>& item, std::int64_t batch,
                 Phase phase) {
  const onnx::Summary summary = onnx::summarize(config.model.from);
  const Shape sizes = Shape(item).insert(0, batch);
  return onnx::import_model(config.model.from,
                            {.shapes = {{items_input(config, summary).name, sizes}},
                             .any_batch = true,
                             .bind = companions(summary, sizes),
                             .training = phase == Phase::training,
                             .evaluation = phase == Phase::evaluation});
}

bool takes_integers(const RunConfig& config) {
  const std::string dtype = items_input(config).dtype;
  return dtype == dtype_name(i64) || dtype == dtype_name(i32) || dtype == dtype_name(u8);
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

// --- classes by position

// How logits tell the classes of an item: [batch, classes, ...] or [batch, ..., classes].
struct ClassLayout {
  bool last = false;
  Shape positions;  // no axes: the item has one class
  std::int64_t classes = 0;
};
// All that the shape can mean, what is usual first: [batch, sequence, classes] of language models,
// [batch, classes, height, width] of images. Rows of positions may have lost the axis of the batch.
std::vector<ClassLayout> class_layouts(const Shape& logits, std::int64_t batch) {
  if (logits.rank() < 2 || logits[0] % batch != 0) return {};
  std::vector<std::int64_t> inner(logits.begin() + 1, logits.end());
  if (logits[0] != batch && logits.rank() == 2) inner.insert(inner.begin(), logits[0] / batch);
  const std::int64_t first = inner.front(), last = inner.back();
  if (inner.size() == 1) return {{.positions = {}, .classes = first}};
  const ClassLayout behind{.last = true,
                           .positions = Shape(std::vector(inner.begin(), inner.end() - 1)),
                           .classes = last};
  if (logits.rank() == 2) return {behind};
  const ClassLayout before{.positions = Shape(std::vector(inner.begin() + 1, inner.end())),
                           .classes = first};
  return inner.size() == 2 ? std::vector{behind, before} : std::vector{before, behind};
}

// The output that would be learnt for such items, in the training's own batch size.
Shape learnt_shape(const RunConfig& config, const std::vector<std::int64_t>& item) {
  const Graph graph = read(config, item, config.batch_size, Phase::training).graph;
  return graph.output(learnt_output(graph, "logits")).shape();
}

Shape file_model_positions(const RunConfig& config, const Shape& item, const Shape& labels) {
  const std::vector<ClassLayout> layouts =
      class_layouts(learnt_shape(config, file_model_item(config, item)), config.batch_size);
  for (const ClassLayout& layout : layouts)
    if (layout.positions == labels) return layout.positions;
  return layouts.empty() ? Shape{} : layouts[0].positions;
}

// As many as there are numbers for each position.
std::int64_t file_model_tokens(const RunConfig& config) {
  const onnx::Summary::Value input = items_input(config);
  if (!takes_integers(config) || input.axes->size() != 2) return 0;
  const std::int64_t length = input.axes->at(1).size;
  if (length >= 0 && length != config.data.sequence)
    throw TypeError(fmt::format("model.from: {} takes '{}' {}, {} tokens; data.sequence is {}",
                                config.model.from, input.name, input.str(), length,
                                config.data.sequence));
  const std::vector<ClassLayout> layouts = class_layouts(
      learnt_shape(config, file_model_item(config, {config.data.sequence})), config.batch_size);
  return layouts.empty() || layouts[0].positions.rank() == 0 ? 0 : layouts[0].classes;
}

// Which of the layouts has the positions of the data's labels: their number alone does not tell
// where height and classes are equal.
ClassLayout layout_of(const RunConfig& config, const ModelShape& shape, const std::string& name,
                      const Tensor& output, std::int64_t batch) {
  for (const ClassLayout& layout : class_layouts(output.shape(), batch))
    if (layout.positions == shape.positions && layout.classes >= shape.classes) return layout;
  const std::string positions = fmt::format("{}", fmt::join(shape.positions.vec(), ", "));
  refuse_output(
      config, name, output,
      positions.empty()
          ? fmt::format("[{}, {} or more], a number per class of the data,", batch, shape.classes)
          : fmt::format("[{}, {}, {} or more] or [{}, {} or more, {}], a number per class "
                        "of the data for each position,",
                        batch, positions, shape.classes, batch, shape.classes, positions));
}

// [batch, positions, classes]
Tensor by_position(const Tensor& output, const ClassLayout& layout, std::int64_t batch) {
  const std::int64_t positions = layout.positions.numel();
  if (layout.last) return reshape(output, {batch, positions, layout.classes});
  return permute(reshape(output, {batch, layout.classes, positions}), {0, 2, 1});
}

// --- graphs

// Labels and loss are added; what is learnt has the name that the zoo's models have for it.
TrainableGraph make_number_model(const RunConfig& config, const ModelShape& shape,
                                 std::int64_t batch, Graph graph) {
  const Tensor input = graph.leaves(LeafKind::input).at(0).value;
  const std::string name = learnt_output(graph, "prediction");
  const Tensor output = graph.output(name);
  if (output.shape() != Shape{batch, shape.targets})
    refuse_output(config, name, output, Type{f32, {batch, shape.targets}}.str());
  const Tensor labels = graph.input("labels", output.shape());
  const Tensor loss = number_loss(graph, output, labels, shape.target_scale);
  return {std::move(graph).with_outputs({{"prediction", output}, {"loss", loss}}), input, labels,
          loss, output};
}

TrainableGraph make_class_model(const RunConfig& config, const ModelShape& shape,
                                std::int64_t batch, Graph graph) {
  const Tensor input = graph.leaves(LeafKind::input).at(0).value;
  const std::string name = learnt_output(graph, "logits");
  const Tensor output = graph.output(name);
  const ClassLayout layout = layout_of(config, shape, name, output, batch);
  if (layout.positions.rank() == 0) {
    const Tensor labels = graph.input("labels", {batch}, i64), loss = cross_entropy(output, labels);
    return {std::move(graph).with_outputs({{"logits", output}, {"loss", loss}}), input, labels,
            loss, output};
  }
  const Tensor rows = by_position(output, layout, batch);
  const std::int64_t positions = layout.positions.numel(), count = batch * positions;
  const Tensor labels = graph.input("labels", {batch, positions}, i64);
  const Tensor loss =
      layout.last ? cross_entropy(reshape(rows, {count, layout.classes}), reshape(labels, {count}))
                  : cross_entropy(reshape(output, {batch, layout.classes, positions}), labels);
  std::vector<std::pair<std::string, Tensor>> outputs{{"logits", output}, {"loss", loss}};
  if (rows.id() != output.id()) outputs.emplace_back(kByPosition, rows);
  return {std::move(graph).with_outputs(outputs), input, labels, loss, rows};
}

TrainableGraph make_file_model(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                               Phase phase) {
  Graph graph = read(config, shape.item, batch, phase).graph;
  return shape.task == zoo::Task::regression
             ? make_number_model(config, shape, batch, std::move(graph))
             : make_class_model(config, shape, batch, std::move(graph));
}

}  // namespace

Weights file_model_weights(const RunConfig& config, const ModelShape& shape) {
  onnx::Model model = read(config, shape.item, config.batch_size, Phase::training);
  for (const std::string& warning : model.warnings)
    logging::warning("{}: {}", config.model.from, warning);
  return std::move(model.weights);
}

ModelRow onnx_file_model() {
  return {.name = "",
          .token_count = file_model_tokens,
          .takes_integers = takes_integers,
          .item = file_model_item,
          .positions = file_model_positions,
          .check_task = check_file_model_task,
          .make = make_file_model};
}

}  // namespace pantala::run
