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
// Channels, groups and the sizes of the kernel, one per spatial axis, checked.
struct ConvSizes {
  std::int64_t in = 0;
  IntList kernel;
  IntList weight(std::int64_t first, std::int64_t second) const {
    IntList all = {first, second};
    all.insert(all.end(), kernel.begin(), kernel.end());
    return all;
  }
};
ConvSizes conv_sizes(const Layer& layer, std::int64_t out, const IntList& kernel,
                     std::int64_t groups) {
  const int spatial = layer.x().rank() - 2;
  layer.require_float();
  layer.require_positive(out, "the number of output channels");
  layer.require_positive(groups, "groups");
  ConvSizes sizes{layer.x().dim(1), {}};
  if (sizes.in % groups != 0)
    layer.fail(fmt::format("{} input channels do not divide into {} groups", sizes.in, groups));
  if (out % groups != 0)
    layer.fail(fmt::format("{} output channels do not divide into {} groups", out, groups));
  if (kernel.size() != 1 && static_cast<int>(kernel.size()) != spatial)
    layer.fail(fmt::format("the kernel needs {} sizes, or one for all, got [{}]", spatial,
                           fmt::join(kernel, ",")));
  for (int axis = 0; axis < spatial; ++axis) {
    sizes.kernel.push_back(kernel[kernel.size() == 1 ? 0 : static_cast<std::size_t>(axis)]);
    layer.require_positive(sizes.kernel.back(), "the kernel's size");
  }
  return sizes;
}

// A convolution of either kind. PyTorch counts the second axis of the weight as what feeds an
// output, also where the weight is [in, out / groups, ...].
template <class Options>
Tensor convolved(Layer& layer, const Operand& x,
                 Tensor (*op)(Operand, Operand, const std::optional<Tensor>&, const Options&),
                 const IntList& weight_sizes, std::int64_t biases, const Options& options) {
  const Tensor weight = layer.parameter("weight", weight_sizes, default_weight_init());
  if (biases == 0) return op(x, weight, {}, options);
  return op(x, weight,
            layer.parameter("bias", {biases}, default_bias_init(init::fans(weight.shape()).in)),
            options);
}

Tensor conv(Layer& layer, const Operand& x,
            Tensor (*op)(Operand, Operand, const std::optional<Tensor>&, const ConvOptions&),
            std::int64_t out, const IntList& kernel, const ConvLayerOptions& o) {
  const ConvSizes sizes = conv_sizes(layer, out, kernel, o.groups);
  return convolved<ConvOptions>(
      layer, x, op, sizes.weight(out, sizes.in / o.groups), o.bias ? out : 0,
      {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
}

Tensor conv_transpose(Layer& layer, const Operand& x,
                      Tensor (*op)(Operand, Operand, const std::optional<Tensor>&,
                                   const ConvTransposeOptions&),
                      std::int64_t out, const IntList& kernel, const ConvTransposeLayerOptions& o) {
  const ConvSizes sizes = conv_sizes(layer, out, kernel, o.groups);
  return convolved<ConvTransposeOptions>(layer, x, op, sizes.weight(sizes.in, out / o.groups),
                                         o.bias ? out : 0,
                                         {.stride = o.stride,
                                          .padding = o.padding,
                                          .output_padding = o.output_padding,
                                          .dilation = o.dilation,
                                          .groups = o.groups});
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

Tensor conv_transpose1d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
                        const ConvTransposeLayerOptions& options) {
  Layer layer("conv_transpose1d", name, x);
  layer.require_rank(3, "[batch, channels, length]");
  return conv_transpose(layer, x, pantala::conv_transpose1d, out, kernel, options);
}

Tensor conv_transpose2d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
                        const ConvTransposeLayerOptions& options) {
  Layer layer("conv_transpose2d", name, x);
  layer.require_rank(4, "[batch, channels, height, width]");
  return conv_transpose(layer, x, pantala::conv_transpose2d, out, kernel, options);
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
