// Multi-head attention and the transformer's encoder layer.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "nn/layer.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

namespace {

// [batch, sequence, size], later [batch, heads, sequence, head_dim].
struct Projected {
  Tensor q, k, v;
};

// The three projections from one packed weight: one product if all three have the same input.
Projected project_packed(Layer& layer, const Tensor& query, const Tensor& key, const Tensor& value,
                         bool with_bias) {
  const std::int64_t size = query.shape().back();
  const Tensor weight = layer.parameter("in_proj_weight", {3 * size, size}, init::xavier_uniform());
  std::optional<Tensor> bias;
  if (with_bias) bias = layer.parameter("in_proj_bias", {3 * size}, init::zeros());
  if (query == key && key == value) {
    const std::vector<Tensor> parts =
        split(pantala::linear(query, weight, bias), {size, size, size}, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const auto project = [&](const Tensor& x, std::int64_t part) {
    const auto rows = [&](const Tensor& t) {
      return slice_axis(t, 0, part * size, (part + 1) * size);
    };
    return pantala::linear(x, rows(weight), bias ? std::optional(rows(*bias)) : std::nullopt);
  };
  return {project(query, 0), project(key, 1), project(value, 2)};
}

// The same with one weight each: keys and values have sizes of their own.
Projected project_separately(Layer& layer, const Tensor& query, const Tensor& key,
                             const Tensor& value, bool with_bias) {
  const std::int64_t size = query.shape().back();
  const auto weight = [&](std::string_view name, const Tensor& x) {
    return layer.parameter(name, {size, x.shape().back()}, init::xavier_uniform());
  };
  const Tensor wq = weight("q_proj_weight", query), wk = weight("k_proj_weight", key),
               wv = weight("v_proj_weight", value);
  std::vector<std::optional<Tensor>> bias(3);
  if (with_bias) {
    const std::vector<Tensor> parts =
        split(layer.parameter("in_proj_bias", {3 * size}, init::zeros()), {size, size, size});
    bias.assign(parts.begin(), parts.end());
  }
  return {pantala::linear(query, wq, bias[0]), pantala::linear(key, wk, bias[1]),
          pantala::linear(value, wv, bias[2])};
}

// Attention with dropped weights, which the attention op does not have.
Tensor attention_with_dropout(const Projected& p, const MultiHeadAttentionOptions& options) {
  const double scale = 1 / std::sqrt(static_cast<double>(p.q.shape().back()));
  Tensor scores = matmul(p.q, p.k, {.transpose_b = true}) * scale;  // [batch, heads, queries, keys]
  const double never = -std::numeric_limits<double>::infinity();
  if (options.causal) {
    const Shape plane{scores.dim(-2), scores.dim(-1)};
    scores = where(le(iota_beside(scores, plane, 1), iota_beside(scores, plane, 0)), scores, never);
  }
  if (options.mask)
    scores = options.mask->dtype() == boolean ? where(*options.mask, scores, never)
                                              : scores + *options.mask;
  return matmul(pantala::dropout(softmax(scores), options.dropout), p.v);
}

void check_attention(const Layer& layer, const Tensor& key, const Tensor& value,
                     const MultiHeadAttentionOptions& options) {
  layer.require_float();
  layer.require_rank(3, "[batch, sequence, size]");
  layer.require_positive(options.heads, "heads");
  layer.require_probability(options.dropout, "dropout");
  const Tensor& query = layer.x();
  for (const Tensor& other : {key, value}) {
    if (other.graph() != query.graph()) layer.fail("the inputs belong to different graphs");
    if (other.rank() != 3)
      layer.fail("keys and values must have 3 axes [batch, sequence, size], got " +
                 other.type().str());
    if (other.dtype() != query.dtype() || other.dim(0) != query.dim(0))
      layer.fail(fmt::format("dtypes or batch sizes differ: query {}, key {}, value {}",
                             query.type().str(), key.type().str(), value.type().str()));
  }
  if (key.dim(1) != value.dim(1))
    layer.fail(fmt::format("as many values as keys are needed: key {}, value {}", key.type().str(),
                           value.type().str()));
  if (query.dim(2) % options.heads != 0)
    layer.fail(
        fmt::format("the size {} does not divide into {} heads", query.dim(2), options.heads));
}

}  // namespace

Tensor multi_head_attention(std::string_view name, Operand query, Operand key, Operand value,
                            const MultiHeadAttentionOptions& options) {
  Layer layer("multi_head_attention", name, query);
  if (!key.is_tensor() || !value.is_tensor())
    layer.fail("keys and values must be tensors, not numbers or empty handles");
  const Tensor &q = layer.x(), &k = key.tensor(), &v = value.tensor();
  check_attention(layer, k, v, options);
  const std::int64_t batch = q.dim(0), size = q.dim(2);
  const bool packed = k.dim(2) == size && v.dim(2) == size;
  Projected p = packed ? project_packed(layer, q, k, v, options.bias)
                       : project_separately(layer, q, k, v, options.bias);
  for (Tensor* t : {&p.q, &p.k, &p.v})
    *t =
        permute(reshape(*t, {batch, t->dim(1), options.heads, size / options.heads}), {0, 2, 1, 3});
  const Tensor mixed = options.training && options.dropout > 0
                           ? attention_with_dropout(p, options)
                           : attention(p.q, p.k, p.v, {.causal = options.causal}, options.mask);
  const Tensor joined = reshape(permute(mixed, {0, 2, 1, 3}), {batch, q.dim(1), size});
  // As the layer linear, but with a bias of zeros.
  const Tensor weight = layer.parameter("out_proj.weight", {size, size}, default_weight_init());
  if (!options.bias) return pantala::linear(joined, weight);
  return pantala::linear(joined, weight, layer.parameter("out_proj.bias", {size}, init::zeros()));
}

Tensor multi_head_attention(std::string_view name, Operand x,
                            const MultiHeadAttentionOptions& options) {
  return multi_head_attention(name, x, x, x, options);
}

Tensor transformer_encoder_layer(std::string_view name, Operand x,
                                 const TransformerEncoderLayerOptions& options) {
  Layer layer("transformer_encoder_layer", name, x);
  layer.require_float();
  layer.require_rank(3, "[batch, sequence, size]");
  layer.require_positive(options.heads, "heads");
  layer.require_positive(options.feed_forward, "feed_forward");
  layer.require_probability(options.dropout, "dropout");
  const std::int64_t size = layer.x().dim(2);
  if (size % options.heads != 0)
    layer.fail(fmt::format("the size {} does not divide into {} heads", size, options.heads));

  const NormLayerOptions norm{.eps = options.eps, .bias = options.bias};
  const LinearOptions product{.bias = options.bias};
  const MultiHeadAttentionOptions attention{.heads = options.heads,
                                            .causal = options.causal,
                                            .bias = options.bias,
                                            .dropout = options.dropout,
                                            .training = options.training,
                                            .mask = options.mask};
  const auto drop = [&](const Tensor& t) { return dropout(t, options.dropout, options.training); };
  const auto attend = [&](const Tensor& t) {
    return drop(multi_head_attention(layer.part("self_attn"), t, attention));
  };
  const auto feed_forward = [&](const Tensor& t) {
    const Tensor hidden = activate(linear(layer.part("linear1"), t, options.feed_forward, product),
                                   options.activation);
    return drop(linear(layer.part("linear2"), drop(hidden), size, product));
  };
  const auto norm1 = [&](const Tensor& t) { return layer_norm(layer.part("norm1"), t, norm); };
  const auto norm2 = [&](const Tensor& t) { return layer_norm(layer.part("norm2"), t, norm); };
  if (options.norm_first) {
    const Tensor h = layer.x() + attend(norm1(layer.x()));
    return h + feed_forward(norm2(h));
  }
  const Tensor h = norm1(layer.x() + attend(layer.x()));
  return norm2(h + feed_forward(h));
}

}  // namespace pantala::nn
