#include "schedule/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::schedule {

const std::vector<CostField>& cost_fields() {
  static const std::vector<CostField> fields = {
      {"workers", &CostTable::workers, 1, 1024},
      {"cycles_us", &CostTable::cycles_us, 100, 20000},
      {"vector_op", &CostTable::vector_op, 0.01, 100},
      {"vector_access", &CostTable::vector_access, 0.01, 100},
      {"strided", &CostTable::strided, 0.05, 1000},
      {"gathered", &CostTable::gathered, 0.05, 1000},
      {"row", &CostTable::row, 0.5, 10000},
      {"item", &CostTable::item, 0.5, 100000},
      {"contract", &CostTable::contract, 0.1, 100},
      {"conv", &CostTable::conv, 0.1, 100},
      {"attention", &CostTable::attention, 0.1, 100},
      {"l2_byte", &CostTable::l2_byte, 0.0005, 10},
      {"l3_byte", &CostTable::l3_byte, 0.0005, 10},
      {"memory_byte", &CostTable::memory_byte, 0.001, 100},
      {"shared_memory_byte", &CostTable::shared_memory_byte, 0.0005, 100},
      {"launch", &CostTable::launch, 0.01, 1000},
      {"barrier", &CostTable::barrier, 0.01, 1000},
  };
  return fields;
}

namespace {

struct TargetField {
  std::string_view name;
  std::int64_t least, most;
  std::int64_t (*get)(const Target&);
  void (*set)(Target&, std::int64_t);
};
template <auto Member>
constexpr TargetField target_field(std::string_view name, std::int64_t least, std::int64_t most) {
  return {name, least, most,
          [](const Target& target) { return static_cast<std::int64_t>(target.*Member); },
          [](Target& target, std::int64_t value) {
            using Value = std::remove_reference_t<decltype(target.*Member)>;
            target.*Member = static_cast<Value>(value);
          }};
}
constexpr std::int64_t kKiB = 1 << 10, kMiB = kKiB << 10;
constexpr TargetField kTargetFields[] = {
    target_field<&Target::vector_bytes>("vector_bytes", 4, 64),
    target_field<&Target::vector_registers>("vector_registers", 8, 64),
    target_field<&Target::l1_bytes>("l1_bytes", 4 * kKiB, 4 * kMiB),
    target_field<&Target::l1_ways>("l1_ways", 1, 64),
    target_field<&Target::l2_bytes>("l2_bytes", 32 * kKiB, 1024 * kMiB),
    target_field<&Target::l3_bytes>("l3_bytes", 64 * kKiB, 65536 * kMiB),
};
// Of a device with workgroups; others leave them out.
constexpr TargetField kGroupFields[] = {
    target_field<&Target::group_threads>("group_threads", 0, 1024),
    target_field<&Target::subgroup_threads>("subgroup_threads", 0, 1024),
    target_field<&Target::group_bytes>("group_bytes", 0, kMiB),
};
constexpr std::size_t kLongestName = 64;

std::vector<std::string> all_names() {
  std::vector<std::string> names = {"name"};
  for (const TargetField& field : kTargetFields) names.emplace_back(field.name);
  for (const TargetField& field : kGroupFields) names.emplace_back(field.name);
  for (const CostField& field : cost_fields()) names.emplace_back(field.name);
  return names;
}

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// What may stand in messages, reports and file names.
bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

class TableReader {
 public:
  TableReader(const std::string& text, const std::string& file) : file_(file) {
    for (std::size_t at = 0; at < text.size(); ++line_) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      read_line(without_spaces(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
  }

  CostTable table() {
    CostTable table;
    table.name = take("name").text;
    if (!is_plain(table.name))
      refuse("name", fmt::format("a word of at most {} characters", kLongestName));
    for (const TargetField& field : kTargetFields)
      field.set(table.target, whole(field.name, field.least, field.most));
    for (const TargetField& field : kGroupFields)
      if (values_.contains(field.name))
        field.set(table.target, whole(field.name, field.least, field.most));
    for (const CostField& field : cost_fields())
      table.*field.value = number(field.name, field.least, field.most);
    table.workers = static_cast<double>(whole("workers", 1, 1024));
    if (!std::has_single_bit(static_cast<unsigned>(table.target.vector_bytes)))
      refuse("vector_bytes", "a power of two");
    if (table.target.has_groups() &&
        !std::has_single_bit(static_cast<unsigned>(table.target.group_threads)))
      refuse("group_threads", "a power of two");
    return table;
  }

 private:
  struct Value {
    std::string text;
    std::size_t line = 0;
  };

  void read_line(std::string_view line) {
    if (line.empty() || line[0] == '#') return;
    const auto fail = [&](const std::string& what) {
      throw ParseError(fmt::format("{}:{}: {}", file_, line_, what));
    };
    const std::size_t sign = line.find('=');
    if (sign == std::string_view::npos) fail("expected `name = value`");
    const std::string name(without_spaces(line.substr(0, sign)));
    if (const std::vector<std::string> names = all_names(); !std::ranges::count(names, name))
      fail(fmt::format("a cost table has no {}{}", in_quotes(name), did_you_mean(name, names)));
    const Value value{std::string(without_spaces(line.substr(sign + 1))), line_};
    if (!values_.emplace(name, value).second) fail(fmt::format("'{}' stands there twice", name));
  }

  const Value& take(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end())
      throw ParseError(fmt::format("{}: the line `{} = ...` is missing", file_, name));
    return found->second;
  }

  [[noreturn]] void refuse(std::string_view name, std::string_view rule) const {
    const Value& value = take(name);
    throw ParseError(fmt::format("{}:{}: {} must be {}, got {}", file_, value.line, name, rule,
                                 in_quotes(value.text)));
  }

  double number(std::string_view name, double least, double most,
                std::string_view kind = "a number") const {
    const std::string& text = take(name).text;
    double parsed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    // NaN is in no range.
    if (error != std::errc() || end != text.data() + text.size() ||
        !(parsed >= least && parsed <= most))
      refuse(name, fmt::format("{} from {} to {}", kind, exact(least), exact(most)));
    return parsed;
  }

  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most) const {
    constexpr std::string_view kKind = "a whole number";
    const double value = number(name, static_cast<double>(least), static_cast<double>(most), kKind);
    if (value != std::floor(value)) refuse(name, fmt::format("{} from {}", kKind, least));
    return static_cast<std::int64_t>(value);
  }

  const std::string& file_;
  std::size_t line_ = 1;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace

std::string to_text(const CostTable& table) {
  std::string text = fmt::format("name = {}\n", table.name);
  for (const TargetField& field : kTargetFields)
    text += fmt::format("{} = {}\n", field.name, field.get(table.target));
  for (const TargetField& field : kGroupFields)
    if (table.target.has_groups())
      text += fmt::format("{} = {}\n", field.name, field.get(table.target));
  for (const CostField& field : cost_fields())
    text += fmt::format("{} = {}\n", field.name, exact(table.*field.value));
  return text;
}

CostTable parse_cost_table(const std::string& text, const std::string& file) {
  return TableReader(text, file).table();
}

Digest digest_of(const CostTable& table) { return sha256(to_text(table)); }

}  // namespace pantala::schedule
