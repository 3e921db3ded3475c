#include "tools/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <vector>

namespace pantala::tools {

namespace {

constexpr char kMark = '\f';  // between the two texts of a description; no text has one

}  // namespace

std::string described(std::string_view shortly, std::string_view fully) {
  return fmt::format("{}{}{}", shortly, kMark, fully);
}

std::string short_text(const std::string& description) {
  return description.substr(0, description.find(kMark));
}

std::string full_text(const std::string& description) {
  const std::size_t mark = description.find(kMark);
  return mark == std::string::npos ? description : description.substr(mark + 1);
}

Option* Option::required() { return option_.required(), this; }
Option* Option::capture_default_str() { return option_.capture_default_str(), this; }
Option* Option::between(int least, int most) {
  return option_.check(CLI::Range(least, most)), this;
}
Option* Option::between(std::int64_t least, std::int64_t most) {
  return option_.check(CLI::Range(least, most)), this;
}
Option* Option::between(double least, double most) {
  return option_.check(CLI::Range(least, most)), this;
}
Option* Option::excludes(Option* other) { return option_.excludes(&other->option_), this; }
Option* Option::repeatable() {
  return option_.expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll), this;
}
Option* Option::type_name(const std::string& name) { return option_.type_name(name), this; }
Option* Option::group(const std::string& title) { return option_.group(title), this; }
Option* Option::envname(const std::string& variable) { return option_.envname(variable), this; }

template <class T>
Option* VerbOptions::add_option(const std::string& name, T& variable, const std::string& help) {
  return keep(verb_.add_option(name, variable, help));
}

template <class T>
Option* VerbOptions::add_option_function(const std::string& name,
                                         const std::function<void(const T&)>& take,
                                         const std::string& help) {
  return keep(verb_.add_option_function<T>(name, take, help));
}

Option* VerbOptions::add_flag(const std::string& name, bool& variable, const std::string& help) {
  return keep(verb_.add_flag(name, variable, help));
}

void VerbOptions::footer(const std::string& text) { verb_.footer(text); }

using Text = std::string;
using Texts = std::vector<std::string>;
template Option* VerbOptions::add_option(const Text&, Text&, const Text&);
template Option* VerbOptions::add_option(const Text&, Texts&, const Text&);
template Option* VerbOptions::add_option(const Text&, int&, const Text&);
template Option* VerbOptions::add_option(const Text&, std::int64_t&, const Text&);
template Option* VerbOptions::add_option(const Text&, std::uint64_t&, const Text&);
template Option* VerbOptions::add_option(const Text&, double&, const Text&);
template Option* VerbOptions::add_option(const Text&, std::optional<std::int64_t>&, const Text&);
template Option* VerbOptions::add_option_function(const Text&,
                                                  const std::function<void(const Text&)>&,
                                                  const Text&);
template Option* VerbOptions::add_option_function(const Text&,
                                                  const std::function<void(const Texts&)>&,
                                                  const Text&);

}  // namespace pantala::tools
