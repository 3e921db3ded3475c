// The Llama family, SmolLM2 among it: decoder transformers with rotary positions, grouped heads,
// RMS norms and gated feed-forward layers. Weight names and layouts are Hugging Face's
// (model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight, ...), so that their files
// load as they are.
//
// There are two graphs. llama() is the whole sequence at once with its training loss.
// llama_cached() is a part of a sequence behind what stands in the cache: with many tokens it is
// prefill, with one it is decoding; both write the same states, and a session that runs one
// continues the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "pantala/zoo.h"

namespace pantala::zoo {

struct LlamaConfig {
  std::int64_t vocabulary = 49152;
  std::int64_t hidden = 576;
  std::int64_t intermediate = 1536;  // of the feed-forward layers
  std::int64_t layers = 30;
  std::int64_t heads = 9;
  std::int64_t kv_heads = 3;   // of keys and values, each shared by heads / kv_heads queries
  std::int64_t head_size = 0;  // 0: hidden / heads
  std::int64_t max_positions = 8192;
  double rope_theta = 100000;
  double rms_eps = 1e-5;
  bool tied_embeddings = true;   // the output layer is the embedding table; no lm_head.weight
  double init_deviation = 0.02;  // matrices start as N(0, init_deviation); 0: as zeros, quickly

  std::int64_t size_of_head() const { return head_size > 0 ? head_size : hidden / heads; }
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};
LlamaConfig smollm2_135m();
LlamaConfig smollm2_360m();
// A small one over bytes, for training on text files.
LlamaConfig llama_bytes();
// By the name of a preset of the family: smollm2-135m, smollm2-360m, llama-bytes. TypeError with
// the nearest name.
LlamaConfig llama_config(std::string_view preset);

// Other sizes than a preset's. What is 0 is the preset's own or, with another width, follows from
// it: heads of the preset's size, the most kv_heads up to the preset's that divide them,
// feed-forward layers in the preset's proportion (a multiple of 16).
struct LlamaSizes {
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, feed_forward = 0;
  friend bool operator==(const LlamaSizes&, const LlamaSizes&) = default;
};
// TypeError that lists what does not fit together.
LlamaConfig resized(const LlamaConfig& config, const LlamaSizes& sizes);

// Hugging Face's config.json. ParseError for what is missing, of another kind or out of range,
// UnsupportedError listing everything that it asks for and that is not done here (biases, scaled
// positions, other activations).
LlamaConfig read_llama_config(const std::filesystem::path& path);
// `file` is the name used in messages.
LlamaConfig parse_llama_config(std::string_view json, std::string_view file);

// All of these check the config: TypeError listing everything that is wrong with it.

struct LlamaSize {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;  // up to max_positions
};
// Inputs `tokens` and `labels` (the token that follows each), both [batch, sequence]; outputs
// `logits` [batch, sequence, vocabulary] and `loss`, the mean cross entropy. A label of -100 does
// not count.
Model llama(const LlamaConfig& config, const LlamaSize& size = {}, Where where = Where::current());

struct LlamaCacheSize {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;    // that one run takes
  std::int64_t cache = 2048;  // positions that are kept, up to max_positions
};
// Inputs `tokens` [batch, tokens], `position`, the number of tokens that stand in the cache before
// them, and, of more than one token, `last`, the one whose logits are wanted; output `logits`
// [batch, vocabulary]. A run writes keys and values to the states cache.<layer>.key and .value
// [batch, kv_heads, cache, head size] at `position`, in place; what stands behind is never seen. It
// is compiled with compile(), which keeps these updates; position + tokens beyond the cache is a
// ValueError when it is set.
Graph llama_cached(const LlamaConfig& config, const LlamaCacheSize& size = {},
                   Where where = Where::current());

}  // namespace pantala::zoo
