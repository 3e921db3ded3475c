// The optimizers as values: one table says which hyper-parameters and flags each kind has, with
// PyTorch's defaults.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "optim/options.h"
#include "pantala/optim.h"

namespace pantala::optim {

namespace {

struct Hyper {
  std::string_view name;
  double value;
};
struct KindInfo {
  std::string_view name;
  std::vector<Hyper> values;  // in the order of printing
  std::vector<std::string_view> flags;
};

const KindInfo& info(Kind kind) {
  static const std::array<KindInfo, 11> all = {{
      {"sgd", {{"lr", 1e-3}, {"momentum", 0}, {"dampening", 0}, {"weight_decay", 0}}, {"nesterov"}},
      {"adam",
       {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0}},
       {"amsgrad"}},
      {"adamw",
       {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0.01}},
       {"amsgrad"}},
      {"rmsprop",
       {{"lr", 1e-2}, {"alpha", 0.99}, {"eps", 1e-8}, {"weight_decay", 0}, {"momentum", 0}},
       {"centered"}},
      {"adagrad",
       {{"lr", 1e-2},
        {"lr_decay", 0},
        {"weight_decay", 0},
        {"initial_accumulator_value", 0},
        {"eps", 1e-10}},
       {}},
      {"adadelta", {{"lr", 1.0}, {"rho", 0.9}, {"eps", 1e-6}, {"weight_decay", 0}}, {}},
      {"nadam",
       {{"lr", 2e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0},
        {"momentum_decay", 4e-3}},
       {"decoupled_weight_decay"}},
      {"radam",
       {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0}},
       {"decoupled_weight_decay"}},
      {"adamax",
       {{"lr", 2e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0}},
       {}},
      {"lion", {{"lr", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}}, {}},
      {"lamb",
       {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-6}, {"weight_decay", 0.01}},
       {}},
  }};
  return all[static_cast<std::size_t>(kind)];
}

constexpr auto kKindCount = static_cast<std::size_t>(Kind::lamb) + 1;

void check_range(std::string_view owner, std::string_view name, double value) {
  if (name == "beta1" || name == "beta2") {
    if (!(value >= 0 && value < 1)) bad_option(owner, name, "in [0, 1)", exact(value));
  } else if (name == "alpha" || name == "rho" || name == "ema_decay") {
    if (!(value >= 0 && value <= 1)) bad_option(owner, name, "in [0, 1]", exact(value));
  } else if (name == "dampening") {
    if (!std::isfinite(value)) bad_option(owner, name, "finite", exact(value));
  } else if (name == "clip_norm" || name == "clip_value") {
    if (!(std::isfinite(value) && value > 0))
      bad_option(owner, name, "finite and above 0", exact(value));
  } else if (!(std::isfinite(value) && value >= 0)) {
    bad_option(owner, name, "finite and not negative", exact(value));
  }
}

template <class Map>
auto& entry(Map& map, std::string_view owner, std::string_view what, std::string_view name) {
  if (const auto it = map.find(name); it != map.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : map) names.push_back(known);
  throw TypeError(fmt::format("{} has no {} '{}'{}", owner, what, name, did_you_mean(name, names)));
}

// Those that are no scalars of the graph: `initial_accumulator_value` is the first value of a
// state, and without momentum there is no buffer.
bool is_scalar(const Optimizer& optimizer, std::string_view name) {
  if (name == "momentum" || name == "dampening") return optimizer.value("momentum") != 0;
  return name != "initial_accumulator_value";
}

}  // namespace

std::string_view kind_name(Kind kind) { return info(kind).name; }

double checked(std::string_view name, double value) {
  check_range("optim", name, value);
  return value;
}

Optimizer::Optimizer(Kind kind) : kind_(kind) {
  for (const Hyper& hyper : info(kind).values) values_.emplace(hyper.name, hyper.value);
  for (const std::string_view flag : info(kind).flags) flags_.emplace(flag, false);
}

double Optimizer::value(std::string_view name) const {
  return entry(values_, this->name(), "hyper-parameter", name);
}
bool Optimizer::flag(std::string_view name) const {
  return entry(flags_, this->name(), "flag", name);
}

void Optimizer::check() const {
  for (const auto& [name, value] : values_) check_range(this->name(), name, value);
  if (kind_ == Kind::sgd && flag("nesterov") && (value("momentum") == 0 || value("dampening") != 0))
    throw TypeError(fmt::format(
        "sgd: nesterov needs momentum and no dampening, got momentum {} and dampening {}",
        exact(value("momentum")), exact(value("dampening"))));
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
  for (const Hyper& hyper : info(kind_).values)
    if (is_scalar(*this, hyper.name))
      result.emplace_back(fmt::format("optim.{}", hyper.name), value(hyper.name));
  return result;
}

bool Optimizer::same_graph(const Optimizer& other) const {
  const auto has_momentum = [](const Optimizer& o) {
    return o.values_.contains("momentum") && o.value("momentum") != 0;
  };
  return kind_ == other.kind_ && flags_ == other.flags_ &&
         has_momentum(*this) == has_momentum(other);
}

std::string Optimizer::str() const {
  std::vector<std::string> texts;
  for (const Hyper& hyper : info(kind_).values)
    texts.push_back(fmt::format("{}={}", hyper.name, exact(value(hyper.name))));
  for (const std::string_view flag_name : info(kind_).flags)
    texts.push_back(fmt::format("{}={}", flag_name, flag(flag_name)));
  return fmt::format("{}({})", name(), fmt::join(texts, ", "));
}

std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer) {
  return out << optimizer.str();
}

namespace {
using Numbers = std::vector<std::pair<std::string, double>>;

Optimizer make(Kind kind, const Numbers& numbers,
               const std::vector<std::pair<std::string, bool>>& flags = {}) {
  NamedOptions options;
  for (const auto& [name, value] : numbers) options[name] = value;
  for (const auto& [name, value] : flags) options[name] = value;
  return from_options(kind_name(kind), options);
}
}  // namespace

Optimizer sgd(double lr, const SgdOptions& o) {
  return make(Kind::sgd,
              {{"lr", lr},
               {"momentum", o.momentum},
               {"dampening", o.dampening},
               {"weight_decay", o.weight_decay}},
              {{"nesterov", o.nesterov}});
}
Optimizer adam(double lr, const AdamOptions& o) {
  return make(Kind::adam,
              {{"lr", lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay}},
              {{"amsgrad", o.amsgrad}});
}
Optimizer adamw(double lr, const AdamWOptions& o) {
  return make(Kind::adamw,
              {{"lr", lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay}},
              {{"amsgrad", o.amsgrad}});
}
Optimizer rmsprop(double lr, const RmspropOptions& o) {
  return make(Kind::rmsprop,
              {{"lr", lr},
               {"alpha", o.alpha},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay},
               {"momentum", o.momentum}},
              {{"centered", o.centered}});
}
Optimizer adagrad(double lr, const AdagradOptions& o) {
  return make(Kind::adagrad, {{"lr", lr},
                              {"lr_decay", o.lr_decay},
                              {"weight_decay", o.weight_decay},
                              {"initial_accumulator_value", o.initial_accumulator_value},
                              {"eps", o.eps}});
}
Optimizer adadelta(double lr, const AdadeltaOptions& o) {
  return make(Kind::adadelta,
              {{"lr", lr}, {"rho", o.rho}, {"eps", o.eps}, {"weight_decay", o.weight_decay}});
}
Optimizer nadam(double lr, const NadamOptions& o) {
  return make(Kind::nadam,
              {{"lr", lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay},
               {"momentum_decay", o.momentum_decay}},
              {{"decoupled_weight_decay", o.decoupled_weight_decay}});
}
Optimizer radam(double lr, const RadamOptions& o) {
  return make(Kind::radam,
              {{"lr", lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay}},
              {{"decoupled_weight_decay", o.decoupled_weight_decay}});
}
Optimizer adamax(double lr, const AdamaxOptions& o) {
  return make(Kind::adamax, {{"lr", lr},
                             {"beta1", o.beta1},
                             {"beta2", o.beta2},
                             {"eps", o.eps},
                             {"weight_decay", o.weight_decay}});
}
Optimizer lion(double lr, const LionOptions& o) {
  return make(
      Kind::lion,
      {{"lr", lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"weight_decay", o.weight_decay}});
}
Optimizer lamb(double lr, const LambOptions& o) {
  return make(Kind::lamb, {{"lr", lr},
                           {"beta1", o.beta1},
                           {"beta2", o.beta2},
                           {"eps", o.eps},
                           {"weight_decay", o.weight_decay}});
}

namespace {
Kind kind_of(std::string_view name) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kKindCount; ++k) {
    if (info(static_cast<Kind>(k)).name == name) return static_cast<Kind>(k);
    names.emplace_back(info(static_cast<Kind>(k)).name);
  }
  throw TypeError(fmt::format("there is no optimizer '{}'{}", name, did_you_mean(name, names)));
}
}  // namespace

Optimizer from_options(std::string_view name, const NamedOptions& options) {
  Optimizer result(kind_of(name));
  std::vector<std::string> known;
  for (const auto& [value_name, value] : result.values_) known.push_back(value_name);
  for (const auto& [flag_name, value] : result.flags_) known.push_back(flag_name);
  const bool has_betas = result.values_.contains("beta1");
  if (has_betas) known.emplace_back("betas");
  check_option_names(name, options, known);
  for (auto& [value_name, value] : result.values_)
    if (const auto it = options.find(value_name); it != options.end())
      read_option(name, value_name, it->second, value);
  for (auto& [flag_name, value] : result.flags_)
    if (const auto it = options.find(flag_name); it != options.end())
      read_option(name, flag_name, it->second, value);
  if (const auto it = options.find("betas"); it != options.end()) {
    const auto betas =
        option_as<std::vector<double>>(name, "betas", "a list of two numbers", it->second);
    if (betas.size() != 2)
      bad_option(name, "betas", "a list of two numbers", option_text(it->second));
    if (options.contains("beta1") || options.contains("beta2"))
      throw TypeError(fmt::format("{}: betas and beta1 or beta2 are given", name));
    result.values_["beta1"] = betas[0];
    result.values_["beta2"] = betas[1];
  }
  result.check();
  return result;
}

}  // namespace pantala::optim
