// How an optimizer is declared. Its file holds the struct of its update op (update.h) and a
// Declaration of its public options (pantala/ops/optimizers.h), whose initialisers are the
// defaults; declared() derives the table's entry from what the Declaration has:
//
// - info: name and one line of documentation;
// - Update: the update op;
// - fields: name, range and documentation of each option, in the order of printing, and what the
//   option is in the graph where it is not always a scalar;
// - variant: the attributes of the update op with given options, if it has any. They decide which
//   states and scalars there are;
// - scalars: what the update op reads beside the options, and is computed from them on the host in
//   f64, such as bias corrections (optional);
// - shared: the same, once for all parameters, with states of its own (optional);
// - check: rules between several options (optional).
//
// The file ends with the maker and with `template const OptimizerDef& declared<Options>();`.
#pragma once

#include "ops/optimizers/table.h"
#include "ops/optimizers/update.h"

namespace pantala::ops {

struct OptimizerInfo {
  std::string_view name, doc;
};

template <class Options>
struct Declaration;

// The fields of an options struct, as its declaration lists them.
struct Fields {
  struct Number {
    std::string_view name;
    double* value;
    OptionRange range;
    std::string_view doc;
    Role role;
  };
  struct Flag {
    std::string_view name;
    bool* value;
    std::string_view doc;
  };
  void operator()(std::string_view name, double& value, const OptionRange& range,
                  std::string_view doc, Role role = Role::scalar) {
    numbers.push_back({name, &value, range, doc, role});
  }
  void operator()(std::string_view name, bool& value, std::string_view doc) {
    flags.push_back({name, &value, doc});
  }
  std::vector<Number> numbers;
  std::vector<Flag> flags;
};

// Rows that several declarations share.
inline void weight_decay_field(Fields& f, double& weight_decay) {
  f("weight_decay", weight_decay, kNotNegative, "how strongly weights are drawn to 0");
}
inline void eps_field(Fields& f, double& eps) {
  f("eps", eps, kNotNegative, "added to what the step is divided by");
}
template <class Options>
void beta_fields(Fields& f, Options& o) {
  f("beta1", o.beta1, kBelowOne, "how much of the mean of past gradients is kept");
  f("beta2", o.beta2, kBelowOne, "how much of the mean of their squares is kept");
}
// Of the optimizers that descend from Adam.
template <class Options>
void adam_fields(Fields& f, Options& o) {
  beta_fields(f, o);
  eps_field(f, o.eps);
  weight_decay_field(f, o.weight_decay);
}

template <class Options>
Fields fields_of(Options& options) {
  Fields fields;
  Declaration<Options>::fields(fields, options);
  return fields;
}

template <class Options>
Options options_of(const optim::Optimizer& optimizer) {
  Options options;
  const Fields fields = fields_of(options);
  for (const Fields::Number& number : fields.numbers) *number.value = optimizer.value(number.name);
  for (const Fields::Flag& flag : fields.flags) *flag.value = optimizer.flag(flag.name);
  return options;
}

// The value that a maker hands out.
template <class Options>
optim::Optimizer make_optimizer(double lr, Options options) {
  const Fields fields = fields_of(options);
  NamedOptions named{{"lr", lr}};
  for (const Fields::Number& number : fields.numbers) named.emplace(number.name, *number.value);
  for (const Fields::Flag& flag : fields.flags) named.emplace(flag.name, *flag.value);
  return optim::from_options(Declaration<Options>::info.name, named);
}

template <class Options>
UpdateVariant variant_of(const optim::Optimizer& optimizer) {
  using Declared = Declaration<Options>;
  using Update = typename Declared::Update;
  attrs_t<Update> attrs{};
  if constexpr (requires { &Declared::variant; })
    attrs = Declared::variant(options_of<Options>(optimizer));
  return {ir::to_values(attrs), slots_of<Update>(attrs)};
}

template <class Options>
OptimizerDef define_optimizer() {
  using Declared = Declaration<Options>;
  OptimizerDef d;
  d.name = Declared::info.name;
  d.doc = Declared::info.doc;
  d.update = &op_def<typename Declared::Update>();
  Options defaults;
  const Fields fields = fields_of(defaults);
  d.numbers.push_back({"lr", Options::kDefaultLr, kNotNegative, "the learning rate"});
  for (const Fields::Number& number : fields.numbers)
    d.numbers.push_back({number.name, *number.value, number.range, number.doc});
  for (const Fields::Flag& flag : fields.flags)
    d.flags.push_back({flag.name, *flag.value, flag.doc});
  d.roles = [](const optim::Optimizer& optimizer) {
    Options options = options_of<Options>(optimizer);
    std::vector<Role> roles{Role::scalar};  // lr
    for (const Fields::Number& number : fields_of(options).numbers) roles.push_back(number.role);
    return roles;
  };
  d.variant = &variant_of<Options>;
  if constexpr (requires { &Declared::check; })
    d.check = [](const optim::Optimizer& optimizer) {
      Declared::check(options_of<Options>(optimizer));
    };
  if constexpr (requires { &Declared::shared; }) d.shared = &Declared::shared;
  if constexpr (requires { &Declared::scalars; })
    d.scalars = [](const StepScalars& s, const optim::Optimizer& optimizer) {
      return Declared::scalars(s, options_of<Options>(optimizer));
    };
  return d;
}

template <class Options>
const OptimizerDef& declared() {
  static const OptimizerDef def = define_optimizer<Options>();
  return def;
}

}  // namespace pantala::ops
