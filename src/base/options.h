// Options by name, read into the fields of a struct: shared by rate schedules and optimizers.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/options.h"

namespace pantala {

// Names a value of an option in messages.
std::string option_text(const OptionValue& value);

[[noreturn]] inline void bad_option(std::string_view owner, std::string_view name,
                                    std::string_view rule, const std::string& got) {
  throw TypeError(fmt::format("{}: {} must be {}, got {}", owner, name, rule, got));
}

template <class T>
T option_as(std::string_view owner, std::string_view name, std::string_view kind,
            const OptionValue& value) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  bad_option(owner, name, kind, option_text(value));
}

inline std::int64_t whole_number(std::string_view owner, std::string_view name, double value) {
  if (value != std::floor(value) || std::fabs(value) > 0x1p53)
    bad_option(owner, name, "a whole number", exact(value));
  return static_cast<std::int64_t>(value);
}

inline void read_option(std::string_view owner, std::string_view name, const OptionValue& value,
                        double& field) {
  field = option_as<double>(owner, name, "a number", value);
}
inline void read_option(std::string_view owner, std::string_view name, const OptionValue& value,
                        bool& field) {
  field = option_as<bool>(owner, name, "true or false", value);
}
inline void read_option(std::string_view owner, std::string_view name, const OptionValue& value,
                        std::string& field) {
  field = option_as<std::string>(owner, name, "a text", value);
}
inline void read_option(std::string_view owner, std::string_view name, const OptionValue& value,
                        std::int64_t& field) {
  field = whole_number(owner, name, option_as<double>(owner, name, "a whole number", value));
}
inline void read_option(std::string_view owner, std::string_view name, const OptionValue& value,
                        std::vector<std::int64_t>& field) {
  field.clear();
  for (const double number :
       option_as<std::vector<double>>(owner, name, "a list of whole numbers", value))
    field.push_back(whole_number(owner, name, number));
}

// TypeError with the nearest of the known names for an option that nobody reads.
void check_option_names(std::string_view owner, const NamedOptions& options,
                        const std::vector<std::string>& known);

}  // namespace pantala
