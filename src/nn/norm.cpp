// Normalisation layers.
#include <fmt/format.h>

#include "nn/layer.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

namespace {
struct Affine {
  std::optional<Tensor> weight, bias;
};

Affine affine(Layer& layer, std::int64_t size, bool weight, bool bias) {
  Affine result;
  if (weight) result.weight = layer.parameter("weight", {size}, init::ones());
  if (weight && bias) result.bias = layer.parameter("bias", {size}, init::zeros());
  return result;
}

void require_last_axis(const Layer& layer) {
  layer.require_float();
  if (layer.x().rank() < 1)
    layer.fail("x must have at least one axis, got " + layer.x().type().str());
}

void require_channels(const Layer& layer) {
  layer.require_float();
  if (layer.x().rank() < 2)
    layer.fail("x must have at least 2 axes [batch, channels, ...], got " + layer.x().type().str());
}
}  // namespace

Tensor layer_norm(std::string_view name, Operand x, const NormLayerOptions& options) {
  Layer layer("layer_norm", name, x);
  require_last_axis(layer);
  layer.require_eps(options.eps);
  const Affine a = affine(layer, layer.x().shape().back(), options.affine, options.bias);
  return pantala::layer_norm(x, a.weight, a.bias, {.eps = options.eps});
}

Tensor rms_norm(std::string_view name, Operand x, const NormLayerOptions& options) {
  Layer layer("rms_norm", name, x);
  require_last_axis(layer);
  layer.require_eps(options.eps);
  return pantala::rms_norm(x, affine(layer, layer.x().shape().back(), options.affine, false).weight,
                           {.eps = options.eps});
}

Tensor group_norm(std::string_view name, Operand x, std::int64_t groups,
                  const NormLayerOptions& options) {
  Layer layer("group_norm", name, x);
  require_channels(layer);
  layer.require_eps(options.eps);
  layer.require_positive(groups, "groups");
  const std::int64_t channels = layer.x().dim(1);
  if (channels % groups != 0)
    layer.fail(fmt::format("{} channels do not divide into {} groups", channels, groups));
  const Affine a = affine(layer, channels, options.affine, options.bias);
  return pantala::group_norm(x, groups, a.weight, a.bias, {.eps = options.eps});
}

Tensor batch_norm(std::string_view name, Operand x, const BatchNormLayerOptions& options) {
  Layer layer("batch_norm", name, x);
  require_channels(layer);
  layer.require_eps(options.eps);
  layer.require_probability(options.momentum, "momentum");
  const std::int64_t channels = layer.x().dim(1);
  // The unbiased variance of a single value does not exist.
  const bool of_batch = options.training && !options.frozen;
  if (of_batch && channels > 0 && layer.x().numel() / channels < 2)
    layer.fail("training needs more than one value per channel, got " + layer.x().type().str());
  const DType dtype = layer.x().dtype();
  const Affine a = affine(layer, channels, true, true);
  const Tensor mean = layer.state("running_mean", {channels}, init::zeros(), dtype);
  const Tensor var = layer.state("running_var", {channels}, init::ones(), dtype);
  const Tensor batches = layer.state("num_batches_tracked", {}, init::zeros(), i64);
  if (!of_batch)
    return pantala::batch_norm_eval(x, *a.weight, *a.bias, mean, var, {.eps = options.eps});
  const BatchNormResult result = pantala::batch_norm_train(
      x, *a.weight, *a.bias, mean, var, {.momentum = options.momentum, .eps = options.eps});
  layer.graph().update(mean, result.running_mean, x.where());
  layer.graph().update(var, result.running_var, x.where());
  layer.graph().update(batches, batches + 1, x.where());
  return result.y;
}

}  // namespace pantala::nn
