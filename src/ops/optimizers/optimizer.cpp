// Optimizers as the values that users hold: what their tables' entries say, with numbers.
#include <fmt/ranges.h>

#include <ostream>

#include "base/options.h"
#include "ops/optimizers/table.h"

namespace pantala::optim {

namespace {

template <class Map>
auto& entry(Map& map, std::string_view owner, std::string_view what, std::string_view name) {
  if (const auto it = map.find(name); it != map.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : map) names.push_back(known);
  throw TypeError(fmt::format("{} has no {} '{}'{}", owner, what, name, did_you_mean(name, names)));
}

void check_number(const ops::OptimizerDef& owner, std::string_view name, double value) {
  for (const ops::NumberOption& number : owner.numbers)
    if (number.name == name && !number.range.holds(value))
      bad_option(owner.name, name, number.range.rule, exact(value));
}

std::vector<double> two_betas(std::string_view owner, const NamedOptions& options,
                              const OptionValue& given) {
  constexpr std::string_view kRule = "a list of two numbers";
  const auto betas = option_as<std::vector<double>>(owner, "betas", kRule, given);
  if (betas.size() != 2) bad_option(owner, "betas", kRule, option_text(given));
  if (options.contains("beta1") || options.contains("beta2"))
    throw TypeError(fmt::format("{}: betas and beta1 or beta2 are given", owner));
  return betas;
}

}  // namespace

Optimizer::Optimizer(const ops::OptimizerDef& definition) : definition_(&definition) {
  for (const ops::NumberOption& number : definition.numbers)
    values_.emplace(number.name, number.default_value);
  for (const ops::FlagOption& flag : definition.flags)
    flags_.emplace(flag.name, flag.default_value);
}

std::string_view Optimizer::name() const { return definition_->name; }

double Optimizer::value(std::string_view name) const {
  return entry(values_, this->name(), "hyper-parameter", name);
}
bool Optimizer::flag(std::string_view name) const {
  return entry(flags_, this->name(), "flag", name);
}

void Optimizer::check() const {
  for (const auto& [name, value] : values_) check_number(*definition_, name, value);
  if (definition_->check) definition_->check(*this);
}

Optimizer Optimizer::with(std::string_view name, double value) const {
  Optimizer copy = *this;
  entry(copy.values_, this->name(), "hyper-parameter", name) = value;
  copy.check();
  return copy;
}

Optimizer Optimizer::with_flag(std::string_view name, bool value) const {
  Optimizer copy = *this;
  entry(copy.flags_, this->name(), "flag", name) = value;
  copy.check();
  return copy;
}

std::vector<std::pair<std::string, double>> Optimizer::scalars() const {
  std::vector<std::pair<std::string, double>> result;
  const std::vector<ops::Role> roles = definition_->roles(*this);
  for (std::size_t k = 0; k < roles.size(); ++k) {
    const std::string_view option = definition_->numbers[k].name;
    if (roles[k] == ops::Role::scalar)
      result.emplace_back(fmt::format("optim.{}", option), value(option));
  }
  return result;
}

bool Optimizer::same_graph(const Optimizer& other) const {
  return definition_ == other.definition_ && flags_ == other.flags_ &&
         definition_->roles(*this) == definition_->roles(other);
}

std::string Optimizer::str() const {
  std::vector<std::string> texts;
  for (const ops::NumberOption& number : definition_->numbers)
    texts.push_back(fmt::format("{}={}", number.name, exact(value(number.name))));
  for (const ops::FlagOption& one : definition_->flags)
    texts.push_back(fmt::format("{}={}", one.name, flag(one.name)));
  return fmt::format("{}({})", name(), fmt::join(texts, ", "));
}

std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer) {
  return out << optimizer.str();
}

Optimizer from_options(std::string_view name, const NamedOptions& options) {
  Optimizer result(ops::optimizer(name));
  std::vector<std::string> known;
  for (const auto& [value_name, value] : result.values_) known.push_back(value_name);
  for (const auto& [flag_name, value] : result.flags_) known.push_back(flag_name);
  if (result.values_.contains("beta1")) known.emplace_back("betas");
  check_option_names(name, options, known);
  for (auto& [value_name, value] : result.values_)
    if (const auto it = options.find(value_name); it != options.end())
      read_option(name, value_name, it->second, value);
  for (auto& [flag_name, value] : result.flags_)
    if (const auto it = options.find(flag_name); it != options.end())
      read_option(name, flag_name, it->second, value);
  if (const auto it = options.find("betas"); it != options.end()) {
    const std::vector<double> betas = two_betas(name, options, it->second);
    result.values_["beta1"] = betas[0];
    result.values_["beta2"] = betas[1];
  }
  result.check();
  return result;
}

const std::vector<OptimizerDescription>& descriptions() {
  static const std::vector<OptimizerDescription> all = [] {
    std::vector<OptimizerDescription> described;
    for (const ops::OptimizerDef* row : ops::optimizers()) {
      OptimizerDescription one{std::string(row->name), std::string(row->doc), {}};
      for (const ops::NumberOption& number : row->numbers)
        one.options.push_back({std::string(number.name), number.default_value,
                               std::string(number.range.rule), std::string(number.doc)});
      for (const ops::FlagOption& flag : row->flags)
        one.options.push_back(
            {std::string(flag.name), flag.default_value, "true or false", std::string(flag.doc)});
      described.push_back(std::move(one));
    }
    return described;
  }();
  return all;
}

}  // namespace pantala::optim
