#include "counterparts.h"

#include <fmt/format.h>

#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/zoo/llama.h"
#include "pantala/zoo/whisper.h"

namespace pantala::tests {

namespace {

constexpr std::int64_t kBatch = 2, kHeads = 4, kWidth = 64, kWide = 128, kLayers = 2;

Tensor with_heads(const Tensor& x) {
  return permute(reshape(x, {x.dim(0), x.dim(1), kHeads, kWidth / kHeads}), {0, 2, 1, 3});
}
Tensor without_heads(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), kWidth});
}

Graph bert() {
  constexpr std::int64_t kSequence = 12;
  const nn::NormLayerOptions norm{.eps = 1e-12};
  Graph graph;
  const Tensor tokens = graph.input("tokens", {kBatch, kSequence}, i64);
  const Tensor kinds = graph.parameter("kinds", {2, kWidth}),
               positions = graph.parameter("positions", {kSequence, kWidth});
  Tensor h = nn::embedding("words", tokens, 300, kWidth) + slice_axis(kinds, 0, 0, 1) + positions;
  h = nn::layer_norm("norm", h, norm);
  for (std::int64_t k = 0; k < kLayers; ++k) {
    const auto name = [&](const char* part) { return fmt::format("layer.{}.{}", k, part); };
    const Tensor q = with_heads(nn::linear(name("query"), h, kWidth)),
                 key = with_heads(nn::linear(name("key"), h, kWidth)),
                 value = with_heads(nn::linear(name("value"), h, kWidth));
    const Tensor mixed = without_heads(attention(q, key, value));
    h = nn::layer_norm(name("norm1"), nn::linear(name("out"), mixed, kWidth) + h, norm);
    const Tensor wide = gelu(nn::linear(name("up"), h, kWide));
    h = nn::layer_norm(name("norm2"), nn::linear(name("down"), wide, kWidth) + h, norm);
  }
  graph.output("hidden", h);
  return graph;
}

Graph gpt2() {
  constexpr std::int64_t kSequence = 12;
  Graph graph;
  const Tensor tokens = graph.input("tokens", {kBatch, kSequence}, i64);
  const Tensor positions = graph.parameter("positions", {64, kWidth});
  Tensor h = nn::embedding("words", tokens, 300, kWidth) + slice_axis(positions, 0, 0, kSequence);
  for (std::int64_t k = 0; k < kLayers; ++k) {
    const auto name = [&](const char* part) { return fmt::format("h.{}.{}", k, part); };
    const Tensor packed = nn::linear(name("attn"), nn::layer_norm(name("norm1"), h), 3 * kWidth);
    const std::vector<Tensor> parts = split(packed, {kWidth, kWidth, kWidth}, -1);
    const Tensor mixed = attention(with_heads(parts[0]), with_heads(parts[1]), with_heads(parts[2]),
                                   {.causal = true});
    h = h + nn::linear(name("out"), without_heads(mixed), kWidth);
    const Tensor wide = gelu_tanh(nn::linear(name("up"), nn::layer_norm(name("norm2"), h), kWide));
    h = h + nn::linear(name("down"), wide, kWidth);
  }
  graph.output("hidden", nn::layer_norm("norm", h));
  return graph;
}

Graph vit() {
  Graph graph;
  const Tensor image = graph.input("input", {kBatch, 3, 32, 32});
  const Tensor patches = nn::conv2d("patches", image, kWidth, {8}, {.stride = {8}});
  const Tensor first = graph.parameter("class_token", {1, 1, kWidth}),
               positions = graph.parameter("positions", {1, 17, kWidth});
  Tensor h = concat({broadcast_to(first, {kBatch, 1, kWidth}),
                     permute(reshape(patches, {kBatch, kWidth, 16}), {0, 2, 1})},
                    1) +
             positions;
  for (std::int64_t k = 0; k < kLayers; ++k) {
    const auto name = [&](const char* part) { return fmt::format("layers.{}.{}", k, part); };
    const nn::NormLayerOptions norm{.eps = 1e-6};
    h = h + nn::multi_head_attention(name("attention"), nn::layer_norm(name("norm1"), h, norm),
                                     {.heads = kHeads});
    const Tensor wide = gelu(nn::linear(name("up"), nn::layer_norm(name("norm2"), h, norm), kWide));
    h = h + nn::linear(name("down"), wide, kWidth);
  }
  const Tensor last = nn::layer_norm("norm", h, {.eps = 1e-6});
  graph.output("logits",
               nn::linear("head", reshape(slice_axis(last, 1, 0, 1), {kBatch, kWidth}), 10));
  return graph;
}

Graph llama() {
  const zoo::LlamaConfig config{.vocabulary = 256,
                                .hidden = kWidth,
                                .intermediate = 160,
                                .layers = kLayers,
                                .heads = kHeads,
                                .kv_heads = 2,
                                .max_positions = 64,
                                .rope_theta = 10000,
                                .tied_embeddings = false};
  const Graph graph = zoo::llama(config, {.batch = kBatch, .sequence = 10}).graph;
  return graph.with_outputs({{"logits", graph.output("logits")}});
}

Graph whisper() {
  const zoo::WhisperConfig config{.d_model = kWidth,
                                  .n_heads = kHeads,
                                  .n_layers = kLayers,
                                  .ffn_dim = kWide,
                                  .max_source_positions = 24};
  const Graph graph = zoo::whisper_encoder(config, {.batch = kBatch, .frames = 48});
  return graph.with_outputs({{"hidden", graph.output("last_hidden_state")}});
}

}  // namespace

const std::vector<Counterpart>& counterparts() {
  static const std::vector<Counterpart> all = {
      {"bert", "hidden", kBatch, kHeads, 12, bert},
      {"gpt2", "hidden", kBatch, kHeads, 12, gpt2},
      {"llama", "logits", kBatch, kHeads, 10, llama},
      {"whisper_encoder", "hidden", kBatch, kHeads, 24, whisper},
      {"vit", "logits", kBatch, kHeads, 17, vit},
  };
  return all;
}

}  // namespace pantala::tests
