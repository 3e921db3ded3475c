#include "tools/bench/transformer.h"

#include <fmt/format.h>

#include "pantala/ops.h"

namespace pantala::tools {

namespace {

Tensor attend(const std::string& block, const Tensor& x, std::int64_t heads) {
  const std::int64_t batch = x.dim(0), sequence = x.dim(1), width = x.dim(2);
  std::vector<Tensor> parts =
      split(nn::linear(block + ".qkv", x, 3 * width), {width, width, width}, -1);
  for (Tensor& part : parts)
    part = permute(reshape(part, {batch, sequence, heads, width / heads}), {0, 2, 1, 3});
  const Tensor mixed = attention(parts[0], parts[1], parts[2], {.causal = true});
  return nn::linear(block + ".out", reshape(permute(mixed, {0, 2, 1, 3}), {batch, sequence, width}),
                    width);
}

Tensor feed_forward(const std::string& block, const Tensor& x) {
  const std::int64_t width = x.dim(2);
  return nn::linear(block + ".down", gelu(nn::linear(block + ".up", x, 4 * width)), width);
}

}  // namespace

zoo::Model transformer(const TransformerConfig& config) {
  zoo::Model model;
  Graph& graph = model.graph;
  const std::int64_t rows = config.batch * config.sequence;
  model.input = graph.input("tokens", {config.batch, config.sequence}, i64);
  const Tensor table = graph.parameter("tok.weight", {config.vocabulary, config.width},
                                       init::normal(0, 0.02)),
               positions = graph.parameter("pos.weight", {config.sequence, config.width},
                                           init::normal(0, 0.02));
  Tensor h = embedding(table, model.input) + positions;
  for (std::int64_t k = 0; k < config.layers; ++k) {
    const std::string block = fmt::format("blocks.{}", k);
    h = h + attend(block, nn::layer_norm(block + ".n1", h), config.heads);
    h = h + feed_forward(block, nn::layer_norm(block + ".n2", h));
  }
  const Tensor states = reshape(nn::layer_norm("norm", h), {rows, config.width});
  model.logits = linear(states, table);
  model.labels = graph.input("labels", {rows}, i64);
  model.loss = cross_entropy(model.logits, model.labels);
  graph.output("logits", model.logits);
  graph.output("loss", model.loss);
  return model;
}

}  // namespace pantala::tools
