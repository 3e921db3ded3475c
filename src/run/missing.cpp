#include "run/missing.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "pantala/error.h"

namespace pantala::run {

namespace {

// The values of a table, which are always f32.
const std::vector<float>& table_of(const data::Dataset& set) {
  const auto* values = set.data ? std::get_if<std::vector<float>>(&set.data->values) : nullptr;
  if (!values || set.data->shape.rank() != 2)
    throw TypeError(fmt::format("{}: the items are {}; values can only be missing in rows of f32",
                                set.name, set.item_form().str()));
  return *values;
}

}  // namespace

std::vector<double> column_means(const data::Dataset& train) {
  const std::vector<float>& values = table_of(train);
  const auto width = static_cast<std::size_t>(train.data->shape[1]);
  std::vector<double> means(width);
  std::vector<std::int64_t> counts(width);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(values[k])) continue;
    means[k % width] += static_cast<double>(values[k]);
    ++counts[k % width];
  }
  for (std::size_t k = 0; k < width; ++k) {
    if (counts[k] == 0)
      throw ValueError(
          fmt::format("{}: column {} of the data (from 0) has no value in the training set, so it "
                      "has no mean (data.missing)",
                      train.name, k));
    means[k] /= static_cast<double>(counts[k]);
  }
  return means;
}

data::Dataset with_means(const data::Dataset& set, const std::vector<double>& means) {
  if (!set.data || set.data->shape.rank() != 2 ||
      set.data->shape[1] != static_cast<std::int64_t>(means.size()))
    throw TypeError(fmt::format("{}: the items are {}; the model was made for rows of {}", set.name,
                                set.item_form().str(), means.size()));
  data::Array filled = *set.data;
  std::visit(
      [&]<class T>(std::vector<T>& values) {
        if constexpr (std::is_floating_point_v<T>)  // in others nothing can be missing
          for (std::size_t k = 0; k < values.size(); ++k)
            if (std::isnan(values[k])) values[k] = static_cast<T>(means[k % means.size()]);
      },
      filled.values);
  data::Dataset result = set;
  result.data = std::make_shared<const data::Array>(std::move(filled));
  return result;
}

}  // namespace pantala::run
