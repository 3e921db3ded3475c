// A causal transformer as language models have it: learned positions, norms before attention and
// feed-forward, and an output layer that is the table of tokens.
#pragma once

#include "pantala/zoo.h"

namespace pantala::tools {

struct TransformerConfig {
  std::int64_t batch = 8, sequence = 256, layers = 8, width = 256, heads = 4, vocabulary = 8192;
};
// Inputs `tokens` [batch, sequence] and `labels` [batch * sequence], outputs `logits` and `loss`.
zoo::Model transformer(const TransformerConfig& config = {});

}  // namespace pantala::tools
