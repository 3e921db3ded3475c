#include "base/options.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace pantala {

namespace {
struct OptionText {
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(double number) const { return exact(number); }
  std::string operator()(const std::string& text) const { return in_quotes(text); }
  std::string operator()(const std::vector<double>& list) const {
    std::vector<std::string> texts;
    for (const double number : list) texts.push_back(exact(number));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
};
}  // namespace

std::string option_text(const OptionValue& value) { return std::visit(OptionText{}, value); }

void check_option_names(std::string_view owner, const NamedOptions& options,
                        const std::vector<std::string>& known) {
  for (const auto& [name, value] : options)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw TypeError(
          fmt::format("{} has no option '{}'{}", owner, name, did_you_mean(name, known)));
}

}  // namespace pantala
