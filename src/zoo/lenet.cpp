#include <fmt/format.h>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {
constexpr std::int64_t kSmallest = 4;  // an image is halved twice
}

Model lenet(const LenetConfig& config, Where where) {
  require_positive("lenet", config.batch, "batch", where);
  require_positive("lenet", config.channels, "channels", where);
  require_at_least("lenet", config.size, kSmallest, "size", where);
  require_positive("lenet", config.classes, "classes", where);
  Model model;
  model.input =
      model.graph.input("x", {config.batch, config.channels, config.size, config.size}, f32, where);
  // One stage halves the image: [batch, channels, size, size] to [batch, out, size / 2, size / 2].
  const auto stage = [&](std::string_view name, const Tensor& x, std::int64_t out) {
    return max_pool2d(
        {relu({nn::conv2d(name, {x, where}, out, {3}, {.padding = {1}}), where}), where}, {2});
  };
  const Tensor features = flatten({stage("conv2", stage("conv1", model.input, 32), 64), where}, 1);
  const Tensor h = relu({nn::linear("fc1", {features, where}, 128), where});
  add_classifier_loss(model, nn::linear("fc2", {h, where}, config.classes), where);
  return model;
}

std::vector<Preset> lenet_presets() {
  const Type item{f32, {1, 28, 28}};
  const auto make = [item](const Request& request) {
    const Resolved asked = resolve(request, item, 10, "lenet");
    if (asked.item[1] != asked.item[2])
      throw TypeError("model lenet takes square images, got " + asked.item.str());
    return lenet({.batch = asked.batch,
                  .channels = asked.item[0],
                  .size = asked.item[1],
                  .classes = asked.classes});
  };
  return {{.name = "lenet",
           .about = "two convolutions and two linear layers",
           .item = item,
           .classes = 10,
           .make = make,
           .in_help = "lenet is two convolutions and two linear layers",
           .takes = fmt::format("square images [size, size] or [channels, size, size] from {0} x "
                                "{0} pixels on",
                                kSmallest),
           .accepts = [](const Shape& image) {
             return image[1] == image[2] && image[1] >= kSmallest;
           }}};
}

}  // namespace pantala::zoo
