// Cached decoding in the shape of SmolLM2-135M, with four of its layers.
#include <gtest/gtest.h>

#include "support/llama_case.h"

namespace pantala::tests {
namespace {

TEST(LargeLlama, cached_decode_equals_the_whole_sequence_at_every_position) {
  zoo::LlamaConfig config = zoo::smollm2_135m();
  config.layers = 4;
  expect_cached_equals_whole(config, 18, 1e-4);
}

}  // namespace
}  // namespace pantala::tests
