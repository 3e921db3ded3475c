#include "ops/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pantala::ops {

std::int64_t WindowAxis::outputs(bool round_up) const {
  const std::int64_t room = padded() - extent() + (round_up ? stride - 1 : 0);
  if (room < 0) return 0;
  const std::int64_t count = room / stride + 1;
  const bool starts_behind_input = (count - 1) * stride >= size + padding;
  return round_up && starts_behind_input ? count - 1 : count;
}

Span WindowAxis::outputs_inside(std::int64_t k, std::int64_t count) const {
  const std::int64_t shift = padding - k * dilation;  // the position is output * stride - shift
  const std::int64_t begin = shift <= 0 ? 0 : (shift + stride - 1) / stride;
  const std::int64_t end = size + shift <= 0 ? 0 : (size + shift - 1) / stride + 1;
  return {begin, std::max(begin, std::min(end, count))};
}

ir::Ints per_axis(const ir::InferContext& c, std::string_view name, const ir::Ints& given, int axes,
                  std::int64_t least) {
  const ir::Ints list =
      given.size() == 1 ? ir::Ints(static_cast<std::size_t>(axes), given[0]) : given;
  if (std::ssize(list) != axes)
    c.fail(fmt::format("{} needs one entry or {}, got [{}] ({})", name, axes, fmt::join(given, ","),
                       c.describe_inputs()));
  for (const std::int64_t entry : list)
    if (entry < least || entry > kMostWindow)
      c.fail(fmt::format("{} must be between {} and {}, got [{}]", name, least, kMostWindow,
                         fmt::join(given, ",")));
  return list;
}

std::int64_t checked_outputs(const ir::InferContext& c, int axis, const WindowAxis& window,
                             bool round_up) {
  if (window.kernel < 1)
    c.fail(fmt::format("the kernel is empty along axis {}: {}", axis, c.describe_inputs()));
  if (window.size > kMostWindow || window.kernel > kMostWindow)
    c.fail(fmt::format("axis {} is longer than {}: {}", axis, kMostWindow, c.describe_inputs()));
  const std::int64_t outputs = window.outputs(round_up);
  if (outputs < 1)
    c.fail(fmt::format("a window of {} is larger than the padded input of {} along axis {}: {}",
                       window.extent(), window.padded(), axis, c.describe_inputs()));
  return outputs;
}

}  // namespace pantala::ops
