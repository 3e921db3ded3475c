#include "pantala/zoo/resnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {

constexpr std::int64_t kStemWidth = 64;

struct Architecture {
  std::string_view name;
  std::array<int, 4> blocks;  // of each layer
  bool bottleneck;
  int all_blocks() const { return blocks[0] + blocks[1] + blocks[2] + blocks[3]; }
};
constexpr Architecture kResnet18 = {"resnet18", {2, 2, 2, 2}, false};
constexpr Architecture kResnet50 = {"resnet50", {3, 4, 6, 3}, true};

struct Convolution {
  std::int64_t out, kernel, stride = 1;
  double gain = 1;  // of its first values
};

// Makes the network's nodes from the image to the logits.
class Builder {
 public:
  Builder(const Architecture& architecture, const ResnetOptions& options, bool training,
          const Where& where)
      : architecture_(architecture), options_(options), training_(training), where_(where) {}

  Tensor logits(const Tensor& image) const {
    Tensor h =
        relu(at(convolve("conv1", "bn1", image, {.out = kStemWidth, .kernel = 7, .stride = 2})));
    h = max_pool2d(at(h), {3}, {.stride = {2}, .padding = {1}});
    std::int64_t width = kStemWidth;
    for (int layer = 0; layer < 4; ++layer, width *= 2)
      for (int number = 0; number < architecture_.blocks[static_cast<std::size_t>(layer)]; ++number)
        h = block(fmt::format("layer{}.{}.", layer + 1, number), h, width,
                  layer > 0 && number == 0 ? 2 : 1);
    return nn::linear("fc", at(global_avg_pool(at(h))), options_.classes);
  }

 private:
  Operand at(const Tensor& value) const { return {value, where_}; }

  Tensor block(const std::string& prefix, const Tensor& x, std::int64_t width,
               std::int64_t stride) const {
    const std::int64_t out = architecture_.bottleneck ? 4 * width : width;
    const auto part = [&](int number, const Tensor& input, const Convolution& convolution) {
      return convolve(fmt::format("{}conv{}", prefix, number),
                      fmt::format("{}bn{}", prefix, number), input, convolution);
    };
    // Nothing but its first values keeps the sum of the branches of a folded network small.
    const double gain =
        options_.form == ResnetForm::folded ? 1 / std::sqrt(architecture_.all_blocks()) : 1;
    Tensor branch;
    if (architecture_.bottleneck) {
      branch = relu(at(part(1, x, {.out = width, .kernel = 1})));
      branch = relu(at(part(2, branch, {.out = width, .kernel = 3, .stride = stride})));
      branch = part(3, branch, {.out = out, .kernel = 1, .gain = gain});
    } else {
      branch = relu(at(part(1, x, {.out = width, .kernel = 3, .stride = stride})));
      branch = part(2, branch, {.out = out, .kernel = 3, .gain = gain});
    }
    const Tensor shortcut = stride == 1 && x.dim(1) == out
                                ? x
                                : convolve(prefix + "downsample.0", prefix + "downsample.1", x,
                                           {.out = out, .kernel = 1, .stride = stride});
    return relu(at(add(at(branch), shortcut)));
  }

  // A convolution that keeps the size (but for its stride), then batch norm or what is left of it.
  Tensor convolve(const std::string& conv, const std::string& norm, const Tensor& x,
                  const Convolution& c) const {
    Graph graph(x.graph());
    // He initialisation by the number of outputs, as torchvision has it.
    const double deviation =
        c.gain * std::sqrt(2.0 / static_cast<double>(c.out * c.kernel * c.kernel));
    const Tensor weight = graph.parameter(conv + ".weight", {c.out, x.dim(1), c.kernel, c.kernel},
                                          init::normal(0, deviation), f32, where_);
    const ConvOptions how{.stride = {c.stride}, .padding = {c.kernel / 2}};
    if (options_.form == ResnetForm::batch_norm)
      return nn::batch_norm(norm, at(conv2d(at(x), weight, {}, how)), {.training = training_});
    return conv2d(at(x), weight,
                  graph.parameter(norm + ".bias", {c.out}, init::zeros(), f32, where_), how);
  }

  const Architecture& architecture_;
  const ResnetOptions& options_;
  const bool training_;
  const Where where_;
};

// Batch norm needs more than one value per channel, also in the last layer, whose maps are 1 / 32
// of the image.
void require_statistics(const Architecture& architecture, std::int64_t batch,
                        const ResnetOptions& options, const Where& where) {
  constexpr std::int64_t kShrinks = 32;
  if (batch > 1 || options.height > kShrinks || options.width > kShrinks) return;
  ir::throw_type_error(
      architecture.name, ir::provenance(where),
      fmt::format("batch norm cannot be trained with one image of {} x {} pixels: height or width "
                  "must be at least {}, or the batch at least 2",
                  options.height, options.width, kShrinks + 1));
}

enum class Outputs : std::uint8_t { logits, loss, both };

Model make(const Architecture& architecture, std::int64_t batch, const ResnetOptions& options,
           bool training, Outputs outputs, const Where& where) {
  require_positive(architecture.name, batch, "batch", where);
  require_positive(architecture.name, options.channels, "channels", where);
  require_positive(architecture.name, options.height, "height", where);
  require_positive(architecture.name, options.width, "width", where);
  require_positive(architecture.name, options.classes, "classes", where);
  if (training && options.form == ResnetForm::batch_norm)
    require_statistics(architecture, batch, options, where);
  Model model;
  model.input = model.graph.input("image", {batch, options.channels, options.height, options.width},
                                  f32, where);
  model.logits = Builder(architecture, options, training, where).logits(model.input);
  if (outputs != Outputs::loss) model.graph.output("logits", model.logits, where);
  if (outputs == Outputs::logits) return model;
  const bool numbers = options.labels == Labels::classes;
  model.labels = numbers ? model.graph.input("labels", {batch}, i64, where)
                         : model.graph.input("labels", {batch, options.classes}, f32, where);
  model.loss = cross_entropy({model.logits, where}, model.labels);
  model.graph.output("loss", model.loss, where);
  return model;
}

// Names are those of the smallest graph there is.
std::vector<std::string> weight_names(const Architecture& architecture, ResnetForm form) {
  const Model model = make(architecture, 1, {.form = form, .channels = 1, .height = 1, .width = 1},
                           false, Outputs::logits, Where::current());
  std::vector<std::string> names;
  for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
  return names;
}

Preset preset_of(const Architecture& architecture, ResnetForm form) {
  const bool folded = form == ResnetForm::folded;
  const Type item{f32, {3, 224, 224}};
  const std::string name = fmt::format("{}{}", architecture.name, folded ? "_folded" : "");
  const auto make_model = [=, &architecture](const Request& request) {
    const Resolved asked = resolve(request, item, 1000, name);
    return make(architecture, asked.batch,
                {.form = form,
                 .channels = asked.item[0],
                 .height = asked.item[1],
                 .width = asked.item[2],
                 .classes = asked.classes},
                asked.training, Outputs::both, Where::current());
  };
  return {
      .name = name,
      .about = fmt::format("a residual network of {} layers, {}", architecture.name.substr(6),
                           folded ? "batch norm folded into the convolutions" : "with batch norm"),
      .item = item,
      .classes = 1000,
      .make = make_model,
      // Said once, for all four.
      .in_help = name == "resnet18" ? "resnet18 and resnet50 are torchvision's (_folded: "
                                      "without batch norm)"
                                    : ""};
}

}  // namespace

Model resnet18(std::int64_t batch, const ResnetOptions& options, Where where) {
  return make(kResnet18, batch, options, false, Outputs::logits, where);
}
Model resnet50(std::int64_t batch, const ResnetOptions& options, Where where) {
  return make(kResnet50, batch, options, false, Outputs::logits, where);
}
Model resnet18_training(std::int64_t batch, const ResnetOptions& options, Where where) {
  return make(kResnet18, batch, options, true, Outputs::loss, where);
}
Model resnet50_training(std::int64_t batch, const ResnetOptions& options, Where where) {
  return make(kResnet50, batch, options, true, Outputs::loss, where);
}

std::vector<std::string> resnet18_weight_names(ResnetForm form) {
  return weight_names(kResnet18, form);
}
std::vector<std::string> resnet50_weight_names(ResnetForm form) {
  return weight_names(kResnet50, form);
}

std::vector<Preset> resnet_presets() {
  std::vector<Preset> presets;
  for (const ResnetForm form : {ResnetForm::batch_norm, ResnetForm::folded})
    for (const Architecture* architecture : {&kResnet18, &kResnet50})
      presets.push_back(preset_of(*architecture, form));
  return presets;
}

}  // namespace pantala::zoo
