#include "run/core/key_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "pantala/error.h"
#include "run/core/patterns.h"

namespace pantala::run {

std::string one_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

void refuse(const std::string& name, const std::string& rule, const ConfigValue& got,
            const std::string& hint) {
  throw TypeError(fmt::format("{} must be {}, got {}{}", name, rule, value_text(got), hint));
}

std::string whole_rule(std::int64_t low, std::int64_t high) {
  return high == kMany ? fmt::format("a whole number from {}", low)
                       : fmt::format("a whole number from {} to {}", low, high);
}

std::string number_rule(double low, double high) {
  return high == kAny ? fmt::format("a number from {}", exact(low))
                      : fmt::format("a number from {} to below {}", exact(low), exact(high));
}

void check_entry(const std::string& section, std::size_t entry, std::size_t count) {
  constexpr std::size_t kMost = 1024;
  if (entry > count)
    throw TypeError(fmt::format(
        "{0}.{1} is given, but there is no {0}.{2}: they are numbered from 0 without a gap",
        section, entry, count));
  if (entry >= kMost) throw TypeError(fmt::format("{} has more than {} entries", section, kMost));
}

std::int64_t read_whole(const Given& given, std::int64_t low, std::int64_t high) {
  const auto* real = given.as<double>();  // 1e6 is a whole number too
  const bool in_range = real && std::abs(*real) <= static_cast<double>(kMany);
  const bool integral = in_range && *real == std::floor(*real);
  const std::int64_t converted = integral ? static_cast<std::int64_t>(*real) : 0;
  const auto* number = integral ? &converted : given.as<std::int64_t>();
  if (number && *number > high)
    refuse(given.name, fmt::format("a whole number from {} to {}", low, high), given.value);
  if (!number || *number < low) given.refuse();
  return *number;
}

double read_number(const Given& given, double low, double high) {
  const auto* integer = given.as<std::int64_t>();
  const double found = integer ? static_cast<double>(*integer) : given.must_be<double>();
  if (!(found >= low && found < high)) given.refuse();
  return found;
}

std::string read_choice(const Given& given, const std::vector<std::string>& choices) {
  const auto& chosen = given.must_be<std::string>();
  if (std::find(choices.begin(), choices.end(), chosen) == choices.end())
    given.refuse(did_you_mean(chosen, choices));
  return chosen;
}

std::vector<double> read_sizes(const Given& given) {
  const auto fits = [](double size) {
    return size >= 1 && size <= 1048576 && size == std::floor(size);
  };
  const auto& list = given.must_be<std::vector<double>>();
  if (list.size() > 64 || !std::all_of(list.begin(), list.end(), fits)) given.refuse();
  return list;
}

std::string read_patterns(const Given& given) {
  std::vector<std::string> list;
  if (const auto* texts = given.as<std::vector<std::string>>())
    list = *texts;
  else if (const auto* numbers = given.as<std::vector<double>>(); numbers && numbers->empty())
    return "";
  else
    list = comma_parts(given.must_be<std::string>());
  return join_patterns(comma_parts(join_patterns(list)));
}

}  // namespace pantala::run
