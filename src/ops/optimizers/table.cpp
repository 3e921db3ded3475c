#include "ops/optimizers/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ops/table.h"
#include "pantala/error.h"

namespace pantala::ops {

namespace {

using namespace optim;

template <class... Options>
std::vector<const OptimizerDef*> rows() {
  return {&declared<Options>()...};
}

std::vector<const OptimizerDef*> all_rows() {
  return rows<SgdOptions, AdamOptions, AdamWOptions, RmspropOptions, AdagradOptions,
              AdadeltaOptions, NadamOptions, RadamOptions, AdamaxOptions, LionOptions,
              LambOptions>();
}

bool has_number(const OptimizerDef& optimizer, std::string_view name) {
  return std::any_of(optimizer.numbers.begin(), optimizer.numbers.end(),
                     [&](const NumberOption& number) { return number.name == name; });
}

}  // namespace

void check_rows(std::span<const OptimizerDef* const> listed) {
  std::map<std::string_view, std::string_view> rules;
  for (const OptimizerDef* row : listed) {
    for (const NumberOption& number : row->numbers)
      if (rules.emplace(number.name, number.range.rule).first->second != number.range.rule)
        throw InternalError(fmt::format("optimizers: '{}' has two ranges", number.name));
    if (!has_number(*row, "lr") || !has_number(*row, "weight_decay"))
      throw InternalError(fmt::format("optimizers: {} lacks lr or weight_decay", row->name));
  }
}

std::span<const OptimizerDef* const> optimizers() {
  static const std::vector<const OptimizerDef*> all = [] {
    std::vector<const OptimizerDef*> listed = all_rows();
    check_rows(listed);
    return listed;
  }();
  return all;
}

const OptimizerDef& optimizer(std::string_view name) {
  std::vector<std::string> names;
  for (const OptimizerDef* row : optimizers()) {
    if (row->name == name) return *row;
    names.emplace_back(row->name);
  }
  throw TypeError(fmt::format("there is no optimizer '{}'{}", name, did_you_mean(name, names)));
}

const OptionRange* range_of(std::string_view option) {
  for (const OptimizerDef* row : optimizers())
    for (const NumberOption& number : row->numbers)
      if (number.name == option) return &number.range;
  return nullptr;
}

std::string graph_key(const Optimizer& optimizer) {
  const OptimizerDef& row = optimizer.definition();
  std::string text(row.name);
  for (const FlagOption& flag : row.flags)
    text += fmt::format(" {}={}", flag.name, optimizer.flag(flag.name));
  const std::vector<Role> roles = row.roles(optimizer);
  for (std::size_t k = 0; k < roles.size(); ++k) {
    const std::string_view name = row.numbers[k].name;
    if (roles[k] == Role::scalar) text += fmt::format(" {}", name);
    if (roles[k] == Role::first_value)
      text += fmt::format(" {}={}", name, exact(optimizer.value(name)));
  }
  return text;
}

// Several optimizers may share an op.
std::vector<const ir::OpDef*> update_ops() {
  std::vector<const ir::OpDef*> ops;
  for (const OptimizerDef* row : optimizers())
    if (std::find(ops.begin(), ops.end(), row->update) == ops.end()) ops.push_back(row->update);
  return ops;
}

}  // namespace pantala::ops
