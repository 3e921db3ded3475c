#include "schedule/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::schedule {

const std::vector<CostField>& cost_fields() {
  static const std::vector<CostField> fields = {
      {"workers", &CostTable::workers},
      {"cycles_us", &CostTable::cycles_us},
      {"vector_op", &CostTable::vector_op},
      {"vector_access", &CostTable::vector_access},
      {"strided", &CostTable::strided},
      {"gathered", &CostTable::gathered},
      {"row", &CostTable::row},
      {"item", &CostTable::item},
      {"contract", &CostTable::contract},
      {"conv", &CostTable::conv},
      {"attention", &CostTable::attention},
      {"l2_byte", &CostTable::l2_byte},
      {"l3_byte", &CostTable::l3_byte},
      {"memory_byte", &CostTable::memory_byte},
      {"shared_memory_byte", &CostTable::shared_memory_byte},
      {"launch", &CostTable::launch},
      {"barrier", &CostTable::barrier},
  };
  return fields;
}

const CostTable& shipped_cost_table(int vector_bytes) {
  static const CostTable avx2{
      .name = "avx2",
      .target = {.vector_bytes = 32,
                 .vector_registers = 16,
                 .l2_bytes = 1 << 20,
                 .l3_bytes = 32 << 20},
      .cycles_us = 3000,
      .vector_op = 0.35,
      .vector_access = 0.5,
      .strided = 1.5,
      .gathered = 4,
      .row = 20,
      .item = 60,
      .l2_byte = 0.03,
      .l3_byte = 0.07,
      .memory_byte = 0.12,
      .shared_memory_byte = 0.06,
      .launch = 0.3,
      .barrier = 0.5,
  };
  static const CostTable avx512 = [] {
    CostTable table = avx2;
    table.name = "avx512";
    table.target.vector_bytes = 64;
    table.target.vector_registers = 32;
    // Two products a cycle at the width of AVX2 are one at twice the width on most of them.
    table.contract = 2;
    table.conv = 2.4;
    table.attention = 3;
    return table;
  }();
  return vector_bytes >= 64 ? avx512 : avx2;
}

namespace {

struct TargetField {
  std::string_view name;
  std::int64_t (*get)(const Target&);
  void (*set)(Target&, std::int64_t);
};
template <auto Member>
constexpr TargetField target_field(std::string_view name) {
  return {name, [](const Target& target) { return static_cast<std::int64_t>(target.*Member); },
          [](Target& target, std::int64_t value) {
            using Value = std::remove_reference_t<decltype(target.*Member)>;
            target.*Member = static_cast<Value>(value);
          }};
}
constexpr TargetField kTargetFields[] = {
    target_field<&Target::vector_bytes>("vector_bytes"),
    target_field<&Target::vector_registers>("vector_registers"),
    target_field<&Target::l1_bytes>("l1_bytes"),
    target_field<&Target::l1_ways>("l1_ways"),
    target_field<&Target::l2_bytes>("l2_bytes"),
    target_field<&Target::l3_bytes>("l3_bytes"),
};
// No table says more: sizes are multiplied with each other.
constexpr double kLargest = 1e12;

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

class TableReader {
 public:
  TableReader(const std::string& text, const std::string& file) : file_(file) {
    std::size_t line = 1;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      read_line(without_spaces(std::string_view(text).substr(at, end - at)), line);
      at = end + 1;
    }
  }

  CostTable table() {
    CostTable table;
    if (name_.empty()) throw ParseError(fmt::format("{}: the line `name = ...` is missing", file_));
    table.name = name_;
    for (const TargetField& field : kTargetFields) {
      const double value = take(field.name);
      if (value < 1 || value != std::floor(value))
        throw ParseError(fmt::format("{}: {} must be a whole number from 1 on, got {}", file_,
                                     field.name, exact(value)));
      field.set(table.target, static_cast<std::int64_t>(value));
    }
    for (const CostField& field : cost_fields()) table.*field.value = take(field.name);
    if (table.workers < 1 || table.cycles_us <= 0)
      throw ParseError(fmt::format("{}: workers must be at least 1 and cycles_us above 0", file_));
    if (!numbers_.empty())
      throw ParseError(fmt::format("{}: a cost table has no '{}'", file_, numbers_.begin()->first));
    return table;
  }

 private:
  void read_line(std::string_view line, std::size_t number) {
    if (line.empty() || line[0] == '#') return;
    const std::size_t sign = line.find('=');
    const auto fail = [&](std::string_view what) {
      throw ParseError(fmt::format("{}:{}: {}", file_, number, what));
    };
    if (sign == std::string_view::npos) fail("expected `name = value`");
    const std::string name(without_spaces(line.substr(0, sign)));
    const std::string_view value = without_spaces(line.substr(sign + 1));
    if (name == "name") {
      name_ = value;
      return;
    }
    double parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || end != value.data() + value.size() || !(parsed >= 0) ||
        parsed > kLargest)
      fail(fmt::format("'{}' must be a number from 0 to {}, got '{}'", name, kLargest, value));
    if (!numbers_.emplace(name, parsed).second) fail(fmt::format("'{}' stands there twice", name));
  }

  double take(std::string_view name) {
    const auto found = numbers_.find(std::string(name));
    if (found == numbers_.end())
      throw ParseError(fmt::format("{}: the line `{} = ...` is missing", file_, name));
    const double value = found->second;
    numbers_.erase(found);
    return value;
  }

  const std::string& file_;
  std::string name_;
  std::map<std::string, double> numbers_;
};

}  // namespace

std::string to_text(const CostTable& table) {
  std::string text = fmt::format("name = {}\n", table.name);
  for (const TargetField& field : kTargetFields)
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
