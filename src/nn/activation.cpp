// Layers without parameters.
#include <fmt/format.h>

#include "base/text.h"
#include "nn/layer.h"
#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

namespace {

struct Row {
  std::string_view name;
  Activation activation;
  Tensor (*apply)(const Operand& x);
};
constexpr Row kActivations[] = {
    {"identity", Activation::identity, [](const Operand& x) { return x.tensor(); }},
    {"relu", Activation::relu, [](const Operand& x) { return relu(x); }},
    {"leaky_relu", Activation::leaky_relu, [](const Operand& x) { return leaky_relu(x); }},
    {"elu", Activation::elu, [](const Operand& x) { return elu(x); }},
    {"gelu", Activation::gelu, [](const Operand& x) { return gelu(x); }},
    {"gelu_tanh", Activation::gelu_tanh, [](const Operand& x) { return gelu_tanh(x); }},
    {"silu", Activation::silu, [](const Operand& x) { return silu(x); }},
    {"mish", Activation::mish, [](const Operand& x) { return mish(x); }},
    {"tanh", Activation::tanh, [](const Operand& x) { return pantala::tanh(x); }},
    {"sigmoid", Activation::sigmoid, [](const Operand& x) { return sigmoid(x); }},
};

}  // namespace

Tensor activate(Operand x, Activation activation) {
  for (const Row& row : kActivations)
    if (row.activation == activation) return row.apply(x);
  throw TypeError("there is no such activation");
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Row& row : kActivations) names.emplace_back(row.name);
  return names;
}

Activation activation_of(std::string_view name) {
  for (const Row& row : kActivations)
    if (row.name == name) return row.activation;
  throw TypeError(
      fmt::format("there is no activation '{}'{}", name, did_you_mean(name, activation_names())));
}

Tensor dropout(Operand x, double p, bool training) {
  if (!(p >= 0 && p <= 1))
    ir::throw_type_error("dropout", x.tensor().graph()->effective(ir::provenance(x.where())),
                         no_probability(p, "p"));
  return training && p > 0 ? pantala::dropout(x, p) : x.tensor();
}

}  // namespace pantala::nn
