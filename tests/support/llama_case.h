// Models of the Llama family with the numbers of the recorded truths as weights, and the check that
// decoding through the cache is the same function as the whole sequence at once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "pantala/generate.h"
#include "pantala/session.h"
#include "support/fill.h"

namespace pantala::tests {

inline zoo::LlamaConfig small_llama() {
  return {.vocabulary = 61,
          .hidden = 24,
          .intermediate = 40,
          .layers = 2,
          .heads = 6,
          .kv_heads = 2,
          .max_positions = 64,
          .rope_theta = 1000};
}

// Large enough to tell tokens apart: as the recorded models have them.
inline Literal llama_weight(const std::string& name, const Shape& shape) {
  if (shape.rank() == 1)
    return tools::make({.name = name, .shape = shape, .bound = 0.2, .offset = 1});
  return fill(name, shape, std::sqrt(3.0 / static_cast<double>(shape[1])));
}
inline void fill_weights(Session& session) {
  for (const std::string& name : session.parameters())
    session.set_parameter(name, llama_weight(name, session.parameter(name).shape()));
}

inline std::vector<std::int64_t> some_tokens(std::int64_t count, std::int64_t vocabulary,
                                             const std::string& name = "tokens") {
  const Literal values = fill_int(name, {count}, 0, vocabulary);
  return {values.i().begin(), values.i().end()};
}

// The logits of every position [batch, sequence, vocabulary], from the graph without a cache.
inline std::vector<float> whole_sequence(const zoo::LlamaConfig& config,
                                         const std::vector<std::int64_t>& tokens,
                                         std::int64_t batch = 1) {
  const std::int64_t sequence = static_cast<std::int64_t>(tokens.size()) / batch;
  const zoo::Model model = zoo::llama(config, {.batch = batch, .sequence = sequence});
  Session session = build_inference_session(model.graph, {.threads = 1});
  fill_weights(session);
  session.set_input("tokens", tokens);
  session.set_input("labels", tokens);
  session.step();
  std::vector<float> logits(tokens.size() * static_cast<std::size_t>(config.vocabulary));
  session.output("logits", HostBuffer(std::span<float>(logits)));
  return logits;
}

// How far a row of logits is from the same row of the whole sequence, relative to its largest.
inline double distance(std::span<const float> got, const std::vector<float>& whole,
                       std::int64_t row) {
  const float* expected = whole.data() + static_cast<std::size_t>(row) * got.size();
  double worst = 0, largest = 0;
  for (std::size_t k = 0; k < got.size(); ++k) {
    worst = std::max(worst, static_cast<double>(std::abs(got[k] - expected[k])));
    largest = std::max(largest, static_cast<double>(std::abs(expected[k])));
  }
  return worst / largest;
}

// One token after the other, and every prefix fed at once, give the logits of the whole sequence.
inline void expect_cached_equals_whole(const zoo::LlamaConfig& config, std::int64_t count,
                                       double bound) {
  const std::vector<std::int64_t> tokens = some_tokens(count, config.vocabulary);
  const std::vector<float> whole = whole_sequence(config, tokens);
  Generator generator(config, {.cache = count + 3, .prefill_chunk = 8, .threads = 1});
  fill_weights(generator.session());
  for (std::int64_t k = 0; k < count; ++k) {
    generator.feed(std::span(tokens).subspan(static_cast<std::size_t>(k), 1));
    EXPECT_LT(distance(generator.logits(), whole, k), bound) << "decoding, position " << k;
  }
  for (std::int64_t k = 1; k < count; ++k) {
    generator.reset();
    generator.feed(std::span(tokens).first(static_cast<std::size_t>(k)));
    EXPECT_LT(distance(generator.logits(), whole, k - 1), bound) << "prefill of " << k;
    generator.feed(std::span(tokens).subspan(static_cast<std::size_t>(k), 1));
    EXPECT_LT(distance(generator.logits(), whole, k), bound) << "decoding behind " << k;
  }
}

}  // namespace pantala::tests
