// Convolutions; x is [batch, channels, ...], weights are [out, in / groups, ...] as in PyTorch.
#pragma once

#include <optional>

#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala {

// Lists hold one entry per spatial axis, or one for all.
struct ConvOptions {
  IntList stride = {1}, padding = {0}, dilation = {1};
  std::int64_t groups = 1;
};
struct ConvTransposeOptions {
  IntList stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  std::int64_t groups = 1;
};
Tensor conv1d(Operand x, Operand weight, const std::optional<Tensor>& bias = {},
              const ConvOptions& options = {});
Tensor conv2d(Operand x, Operand weight, const std::optional<Tensor>& bias = {},
              const ConvOptions& options = {});
// Weights are [in, out / groups, ...].
Tensor conv_transpose1d(Operand x, Operand weight, const std::optional<Tensor>& bias = {},
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(Operand x, Operand weight, const std::optional<Tensor>& bias = {},
                        const ConvTransposeOptions& options = {});

// The primitives for any number of spatial axes, without bias, and the two adjoints of a
// convolution.
Tensor convolution(Operand x, Operand weight, const ConvOptions& options = {});
Tensor convolution_input_grad(Operand dy, Operand weight, const IntList& input_sizes,
                              const ConvOptions& options = {});
Tensor convolution_weight_grad(Operand x, Operand dy, const IntList& kernel_sizes,
                               const ConvOptions& options = {});

}  // namespace pantala
