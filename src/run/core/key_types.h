// How a row of the table of keys is made: one function per kind of value. A field is a function
// that gives a member of a config, const or not; RUN_FIELD writes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "run/core/config.h"

// NOLINTNEXTLINE: only a macro can name a member of what is const or not.
#define RUN_FIELD(member) [](auto& config) -> auto& { return config.member; }

namespace pantala::run {

inline constexpr std::int64_t kMany = std::int64_t{1} << 53;  // a double holds all of them exactly
inline constexpr double kAny = std::numeric_limits<double>::infinity();

// "lenet or mlp", "a, b or c"
std::string one_of(const std::vector<std::string>& names);
// TypeError "NAME must be RULE, got VALUE" and the hint.
[[noreturn]] void refuse(const std::string& name, const std::string& rule, const ConfigValue& got,
                         const std::string& hint = "");
// What a key of whole numbers takes; kMany is so large that only who meets it is told.
std::string whole_rule(std::int64_t low, std::int64_t high);
std::string number_rule(double low, double high);

// TypeError unless the list has this entry, or it would be the next one.
void check_entry(const std::string& section, std::size_t entry, std::size_t count);

// A value that was given for a key, and how to refuse it.
struct Given {
  const std::string& name;
  const std::string& rule;
  const ConfigValue& value;
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  template <class T>
  const T& must_be() const {
    if (const T* found = as<T>()) return *found;
    refuse();
  }
  [[noreturn]] void refuse(const std::string& hint = "") const {
    run::refuse(name, rule, value, hint);
  }
};

// The values of each kind; they refuse what is none.
std::int64_t read_whole(const Given& given, std::int64_t low, std::int64_t high);
double read_number(const Given& given, double low, double high);
std::string read_choice(const Given& given, const std::vector<std::string>& choices);
std::vector<double> read_sizes(const Given& given);
std::string read_patterns(const Given& given);  // with commas between them

// The key of a field; `read` makes the field's value from a Given, or refuses it.
Key field_key(std::string name, auto field, std::string rule, std::string help, Effect effect,
              auto read) {
  return {.name = name,
          .rule = rule,
          .help = std::move(help),
          .effect = effect,
          .set = [=](RunConfig& config,
                     const ConfigValue& value) { field(config) = read(Given{name, rule, value}); },
          .get = [=](const RunConfig& config) { return field(config); }};
}

Key whole(std::string name, auto field, std::int64_t low, std::int64_t high, std::string help,
          Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, whole_rule(low, high), std::move(help), effect,
                   [=](const Given& given) { return read_whole(given, low, high); });
}

// A whole number, or "auto": none in the field, an std::optional.
Key whole_or_auto(std::string name, auto field, std::int64_t low, std::string help,
                  Effect effect = Effect::numbers) {
  const std::string rule = whole_rule(low, kMany) + ", or auto";
  return {.name = name,
          .rule = rule,
          .help = std::move(help),
          .effect = effect,
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                field(config).reset();
                if (value != ConfigValue(std::string("auto")))
                  field(config) = read_whole(Given{name, rule, value}, low, kMany);
              },
          .get =
              [=](const RunConfig& config) {
                return field(config) ? ConfigValue(*field(config))
                                     : ConfigValue(std::string("auto"));
              }};
}

Key number(std::string name, auto field, double low, double high, std::string help,
           Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, number_rule(low, high), std::move(help), effect,
                   [=](const Given& given) { return read_number(given, low, high); });
}

Key choice(std::string name, auto field, std::vector<std::string> choices, std::string help,
           Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, one_of(choices), std::move(help), effect,
                   [=](const Given& given) { return read_choice(given, choices); });
}

Key text(std::string name, auto field, std::string rule, std::string help,
         Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, std::move(rule), std::move(help), effect,
                   [](const Given& given) { return given.must_be<std::string>(); });
}

// A name, or a number that is kept as text.
Key name_or_number(std::string name, auto field, std::string help) {
  Key key = text(name, field, "a text or a whole number", std::move(help));
  key.set = [field, set = key.set](RunConfig& config, const ConfigValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      field(config) = std::to_string(*number);
    else
      set(config, value);
  };
  return key;
}

Key yes_no(std::string name, auto field, std::string help, Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, "true or false", std::move(help), effect,
                   [](const Given& given) { return given.must_be<bool>(); });
}

Key sizes(std::string name, auto field, std::string help) {
  return field_key(std::move(name), field, "a list of at most 64 whole numbers from 1 to 1048576",
                   std::move(help), Effect::numbers, read_sizes);
}

// Names by pattern; kept as one text.
Key patterns(std::string name, auto field, std::string help) {
  return field_key(std::move(name), field, "a text, several with commas between, or a list",
                   std::move(help), Effect::numbers, read_patterns);
}

// A key of each table of a list; `list` gives the list, `field` the member of one of its tables,
// which may be an std::optional. `read` as for field_key().
Key entry_key(std::string name, auto list, auto field, std::string rule, std::string help,
              auto read) {
  const std::string section = name.substr(0, name.find('.'));
  const std::string last = name.substr(name.find_last_of('.') + 1);
  const Key::Entries entries{
      .count = [=](const RunConfig& config) { return list(config).size(); },
      .set =
          [=](RunConfig& config, std::size_t entry, const ConfigValue& value) {
            auto& tables = list(config);
            check_entry(section, entry, tables.size());
            if (entry == tables.size()) tables.emplace_back();
            const std::string given = section + "." + std::to_string(entry) + "." + last;
            field(tables[entry]) = read(Given{given, rule, value});
          },
      .get = [=](const RunConfig& config, std::size_t entry) -> std::optional<ConfigValue> {
        return field(list(config)[entry]);
      }};
  return {.name = std::move(name), .rule = rule, .help = std::move(help), .entries = entries};
}

Key options(std::string name, auto field, std::string rule, std::string help) {
  return {.name = std::move(name),
          .rule = std::move(rule),
          .help = std::move(help),
          .options = [=](RunConfig& config) -> NamedOptions& { return field(config); }};
}

}  // namespace pantala::run
