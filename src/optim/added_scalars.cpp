#include "optim/added_scalars.h"

#include <fmt/format.h>

namespace pantala::optim {

std::vector<std::pair<std::string, double>> added_scalars(const AppendOptions& options) {
  std::vector<std::pair<std::string, double>> scalars;
  const auto add = [&](std::string_view prefix, std::string_view name,
                       const std::optional<double>& value) {
    if (value) scalars.emplace_back(fmt::format("{}{}", prefix, name), checked(name, *value));
  };
  add("optim.", "clip_value", options.clip.value);
  add("optim.", "clip_norm", options.clip.norm);
  add("optim.", "ema_decay", options.ema_decay);
  for (std::size_t k = 0; k < options.groups.size(); ++k) {
    const ParameterGroup& group = options.groups[k];
    if (group.frozen) continue;
    const std::string prefix = fmt::format("optim.group{}.", k);
    add(prefix, "lr_factor", group.lr_factor);
    add(prefix, "weight_decay", group.weight_decay);
  }
  return scalars;
}

}  // namespace pantala::optim
