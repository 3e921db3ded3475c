// Attention and rotary positions; tensors are [batch, heads, sequence, head_dim].
#pragma once

#include <optional>

#include "pantala/tensor.h"

namespace pantala {

struct AttentionOptions {
  bool causal = false;      // query i sees keys up to i
  std::int64_t window = 0;  // with causal: how many of the last keys are seen; 0: all
  double scale = 0;         // 0: 1 / sqrt(head_dim)
};
// softmax(scale q k^T + mask) v. Keys and values may have fewer heads, each shared by a group of
// queries. A bool mask keeps where it is true, a float mask is added; it broadcasts to [batch,
// heads, queries, keys].
Tensor attention(Operand q, Operand k, Operand v, const AttentionOptions& options = {},
                 const std::optional<Tensor>& mask = {});
// Over a cache of which the first `length` keys (a scalar integer, known at run time) are valid;
// with causal, the queries are the last of them.
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length,
                        const AttentionOptions& options = {});

struct RopeOptions {
  double theta = 10000;
};
// Rotates the pairs (i, i + head_dim / 2) by position * theta^(-2 i / head_dim); positions count
// from 0, or from `offset` (a scalar integer).
Tensor rope(Operand x, const RopeOptions& options = {}, const std::optional<Tensor>& offset = {});

}  // namespace pantala
