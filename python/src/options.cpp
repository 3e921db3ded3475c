#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace pantala::python {

void Given::finish() const {
  for (const auto& [key, value] : values_)
    if (const auto name = nb::cast<std::string>(key); !taken_.contains(name))
      throw TypeError(
          fmt::format("{}: there is no option '{}'{}", what_, name,
                      did_you_mean(name, std::vector<std::string>(taken_.begin(), taken_.end()))));
}

void Given::refuse(const char* name, const std::string& text,
                   const std::vector<std::string>& names) const {
  throw TypeError(fmt::format("{}: {} must be one of {}, got '{}'{}", what_, name,
                              fmt::join(names, ", "), text, did_you_mean(text, names)));
}

namespace {
OptionValue option_value(const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (double number = 0; nb::try_cast(value, number)) return number;
  if (std::vector<double> numbers; nb::try_cast(value, numbers)) return numbers;
  throw TypeError(fmt::format("{} cannot be {}", name, nb::cast<std::string>(nb::repr(value))));
}
}  // namespace

NamedOptions named_options(const nb::dict& values) {
  NamedOptions options;
  for (const auto& [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    options.emplace(name, option_value(name, value));
  }
  return options;
}

nb::object to_python(const OptionValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}

}  // namespace pantala::python
