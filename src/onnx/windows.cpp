#include "onnx/windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace pantala::onnx {

namespace {
constexpr std::int64_t kMost = std::int64_t{1} << 30;
}

bool Windows::dilated() const {
  return std::any_of(dilation.begin(), dilation.end(), [](std::int64_t d) { return d != 1; });
}

IntList spatial_sizes(const Node& node, const Shape& shape) {
  if (shape.rank() < 3)
    node.fail(fmt::format("x needs spatial axes behind batch and channels, got {}", shape.str()));
  return {shape.begin() + 2, shape.end()};
}

IntList window_list(const Node& node, std::string_view name, std::size_t axes,
                    std::int64_t otherwise, std::int64_t least) {
  const IntList list = node.integers(name, IntList(axes, otherwise));
  if (list.size() != axes)
    node.fail(fmt::format("{} has {} entries, {} are needed", name, list.size(), axes));
  for (const std::int64_t entry : list) {
    if (entry < least || entry > kMost) node.fail(fmt::format("{} cannot be {}", name, entry));
  }
  return list;
}

Windows read_windows(const Node& node, const IntList& kernel, const IntList& sizes) {
  const std::size_t axes = sizes.size();
  if (kernel.size() != axes)
    node.fail(fmt::format("the kernel has {} axes, x has {}", kernel.size(), axes));
  for (std::size_t k = 0; k < axes; ++k)
    if (kernel[k] < 1 || kernel[k] > kMost || sizes[k] > kMost)
      node.fail(fmt::format("a kernel of {} on an axis of {}", kernel[k], sizes[k]));
  Windows w{kernel, window_list(node, "strides", axes, 1, 1),
            window_list(node, "dilations", axes, 1, 1), IntList(axes, 0), IntList(axes, 0)};
  const std::string rule = node.attribute("auto_pad", std::string("NOTSET"));
  if (rule == "NOTSET" || rule.empty()) {
    const IntList pads = window_list(node, "pads", 2 * axes, 0, 0);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
    w.before.assign(pads.begin(), middle);
    w.after.assign(middle, pads.end());
  } else if (rule == "SAME_UPPER" || rule == "SAME_LOWER") {
    for (std::size_t k = 0; k < axes; ++k) {
      const std::int64_t outputs = (sizes[k] + w.stride[k] - 1) / w.stride[k];
      const std::int64_t total =
          std::max<std::int64_t>(0, (outputs - 1) * w.stride[k] + w.extent(k) - sizes[k]);
      w.before[k] = rule == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[k] = total - w.before[k];
    }
  } else if (rule != "VALID") {
    node.fail(fmt::format("auto_pad '{}'", rule));
  }
  return w;
}

}  // namespace pantala::onnx
