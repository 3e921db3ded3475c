#include "run/statistics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::run {

namespace {

struct Layout {
  std::size_t groups = 1;  // with statistics of their own
  std::size_t run = 1;     // neighbours of one group
};

Layout layout_of(const Shape& item) {
  const auto size = [&](int axis) { return static_cast<std::size_t>(item[axis]); };
  if (item.rank() == 1) return {.groups = size(0), .run = 1};
  if (item.rank() == 3) return {.groups = size(0), .run = size(1) * size(2)};
  return {.groups = 1, .run = static_cast<std::size_t>(item.numel())};
}

// Calls f(group, value) for all values in their order.
template <class T, class F>
void for_each(const std::vector<T>& values, const Layout& layout, F&& f) {
  std::size_t k = 0;
  while (k < values.size())
    for (std::size_t group = 0; group < layout.groups; ++group)
      for (const std::size_t end = k + layout.run; k < end; ++k) f(group, values[k]);
}

template <class T>
void check_finite(const std::vector<T>& values, const Shape& item, const std::string& name) {
  if constexpr (std::is_floating_point_v<T>)
    for (std::size_t k = 0; k < values.size(); ++k)
      if (!std::isfinite(values[k]))
        throw ValueError(fmt::format(
            "{}: item {} has the value {}; normalisation needs finite numbers (data.normalize = "
            "\"none\" leaves them as they are)",
            name, k / static_cast<std::size_t>(item.numel()),
            exact(static_cast<double>(values[k]))));
}

template <class T>
Statistics of_values(const std::vector<T>& values, const Layout& layout) {
  const double count = static_cast<double>(values.size()) / static_cast<double>(layout.groups);
  std::vector<double> mean(layout.groups), squares(layout.groups);
  std::vector<bool> varies(layout.groups);
  for_each(values, layout, [&](std::size_t g, T value) {
    mean[g] += static_cast<double>(value);
    if (value != values[g * layout.run]) varies[g] = true;
  });
  for (double& sum : mean) sum /= count;
  for_each(values, layout, [&](std::size_t g, T value) {
    const double distance = static_cast<double>(value) - mean[g];
    squares[g] += distance * distance;
  });
  // Of equal values the rounding of their mean would be left.
  for (std::size_t g = 0; g < squares.size(); ++g)
    squares[g] = varies[g] ? std::sqrt(squares[g] / count) : 0;
  return {.mean = std::move(mean), .deviation = std::move(squares)};
}

}  // namespace

Statistics statistics_of(const data::Array& items, const std::string& name) {
  const Shape item = items.item_shape();
  if (items.items() == 0 || item.numel() == 0)
    throw TypeError(fmt::format("{}: there is nothing to normalise", name));
  return std::visit(
      [&](const auto& values) {
        check_finite(values, item, name);
        return of_values(values, layout_of(item));
      },
      items.values);
}

}  // namespace pantala::run
