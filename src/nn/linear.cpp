// Layers around products and tables: linear, convolutions, mlp, embedding.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/layer.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

Tensor linear(std::string_view name, Operand x, std::int64_t out, const LinearOptions& options) {
  Layer layer("linear", name, x);
  layer.require_float();
  if (layer.x().rank() < 1)
    layer.fail("x must have at least one axis, got " + layer.x().type().str());
  layer.require_positive(out, "the output size");
  const std::int64_t in = layer.x().shape().back();
  const Tensor weight = layer.parameter("weight", {out, in}, default_weight_init());
  if (!options.bias) return pantala::linear(x, weight);
  return pantala::linear(x, weight, layer.parameter("bias", {out}, default_bias_init(in)));
}

namespace {
using ConvOp = Tensor (*)(Operand, Operand, const std::optional<Tensor>&,
                          const pantala::ConvOptions&);

Tensor conv(Layer& layer, Operand x, ConvOp op, std::int64_t out, const IntList& kernel,
            const ConvLayerOptions& options) {
  const int spatial = layer.x().rank() - 2;
  layer.require_float();
  layer.require_positive(out, "the number of output channels");
  layer.require_positive(options.groups, "groups");
  const std::int64_t in = layer.x().dim(1);
  if (in % options.groups != 0)
    layer.fail(fmt::format("{} input channels do not divide into {} groups", in, options.groups));
  if (out % options.groups != 0)
    layer.fail(fmt::format("{} output channels do not divide into {} groups", out, options.groups));
  if (kernel.size() != 1 && static_cast<int>(kernel.size()) != spatial)
    layer.fail(fmt::format("the kernel needs {} sizes, or one for all, got [{}]", spatial,
                           fmt::join(kernel, ",")));
  IntList sizes = {out, in / options.groups};
  for (int axis = 0; axis < spatial; ++axis) {
    sizes.push_back(kernel[kernel.size() == 1 ? 0 : static_cast<std::size_t>(axis)]);
    layer.require_positive(sizes.back(), "the kernel's size");
  }
  const pantala::ConvOptions how{.stride = options.stride,
                                 .padding = options.padding,
                                 .dilation = options.dilation,
                                 .groups = options.groups};
  const Tensor weight = layer.parameter("weight", sizes, default_weight_init());
  if (!options.bias) return op(x, weight, {}, how);
  return op(x, weight,
            layer.parameter("bias", {out}, default_bias_init(init::fans(weight.shape()).in)), how);
}
}  // namespace

Tensor conv1d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
              const ConvLayerOptions& options) {
  Layer layer("conv1d", name, x);
  layer.require_rank(3, "[batch, channels, length]");
  return conv(layer, x, pantala::conv1d, out, kernel, options);
}

Tensor conv2d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
              const ConvLayerOptions& options) {
  Layer layer("conv2d", name, x);
  layer.require_rank(4, "[batch, channels, height, width]");
  return conv(layer, x, pantala::conv2d, out, kernel, options);
}

Tensor mlp(std::string_view name, Operand x, const IntList& sizes, Activation activation) {
  Layer layer("mlp", name, x);
  layer.require_float();
  if (sizes.empty()) layer.fail("at least one output size is needed");
  for (const std::int64_t size : sizes) layer.require_positive(size, "every output size");
  Tensor h = layer.x();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (k > 0) h = activate(h, activation);
    h = linear(layer.part(std::to_string(2 * k)), h, sizes[k]);
  }
  return h;
}

Tensor embedding(std::string_view name, Operand index, std::int64_t count, std::int64_t size,
                 const EmbeddingOptions& options) {
  Layer layer("embedding", name, index);
  if (!is_integer(layer.x().dtype()))
    layer.fail("the index must be integers, got " + layer.x().type().str());
  if (!is_float(options.dtype))
    layer.fail(fmt::format("the table needs a float type, got {}", dtype_name(options.dtype)));
  layer.require_positive(count, "the number of rows");
  layer.require_positive(size, "the size of a row");
  return pantala::embedding(layer.parameter("weight", {count, size}, init::normal(), options.dtype),
                            index);
}

}  // namespace pantala::nn
