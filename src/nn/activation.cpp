// Layers without parameters.
#include "nn/layer.h"
#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

Tensor activate(Operand x, Activation activation) {
  switch (activation) {
    case Activation::identity:
      return x.tensor();
    case Activation::relu:
      return relu(x);
    case Activation::leaky_relu:
      return leaky_relu(x);
    case Activation::elu:
      return elu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::mish:
      return mish(x);
    case Activation::tanh:
      return pantala::tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
  }
  throw TypeError("there is no such activation");
}

Tensor dropout(Operand x, double p, bool training) {
  if (!(p >= 0 && p <= 1))
    ir::throw_type_error("dropout", x.tensor().graph()->effective(ir::provenance(x.where())),
                         no_probability(p, "p"));
  return training && p > 0 ? pantala::dropout(x, p) : x.tensor();
}

}  // namespace pantala::nn
