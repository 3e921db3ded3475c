// Activation functions, pointwise.
#pragma once

#include "pantala/tensor.h"

namespace pantala {

Tensor relu(Operand x);
Tensor leaky_relu(Operand x, double slope = 0.01);
Tensor elu(Operand x, double alpha = 1);
Tensor sigmoid(Operand x);
Tensor silu(Operand x);
Tensor gelu(Operand x);       // exact, with erf
Tensor gelu_tanh(Operand x);  // the tanh approximation; another function with another gradient
Tensor softplus(Operand x);
Tensor mish(Operand x);
Tensor hardswish(Operand x);
Tensor hardsigmoid(Operand x);
Tensor swiglu(Operand gate, Operand up);  // silu(gate) * up

}  // namespace pantala
