// Attention, or its gradients, as the scheduler sees it: softmax(scale q k^T + mask) v for [batch,
// heads, positions, head_dim], of which nothing of the size queries x keys is ever stored.
#pragma once

#include <cstdint>

#include "pantala/dtype.h"

namespace pantala::schedule {

// Kernels:
//  - forward: gives out and the logarithm of each row's sum.
//  - row_dots: gives dots = sum over head_dim of dout * out.
//  - query_grad gives dq, key_grad dk and dv, all_grads all of them.
enum class AttentionPart : std::uint8_t { forward, row_dots, query_grad, key_grad, all_grads };

enum class AttentionMask : std::uint8_t {
  none,
  additive,  // of the dtype of the tensors
  boolean,   // true: seen
};
// How a mask lies along queries or keys.
enum class MaskAxis : std::uint8_t { broadcast, contiguous, strided };

// How many keys count.
enum class AttentionLength : std::uint8_t {
  keys,    // all
  param,   // the last parameter, an i64
  buffer,  // an i64 in a buffer of one element
};

struct AttentionSpec {
  DType dtype = DType::f32;  // f32 or f64
  bool causal = false;       // a query sees keys up to its own position
  bool windowed = false;     // with causal: only the last `window` of them
  AttentionMask mask = AttentionMask::none;
  MaskAxis mask_queries = MaskAxis::strided, mask_keys = MaskAxis::contiguous;
  // Forward only. With a length the queries stand at the last of its positions: query i stands at
  // length - queries + i. A length beyond [0, keys] reads nothing outside of the keys.
  AttentionLength length = AttentionLength::keys;
  bool save_lse = true;  // forward only
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

// Head h of the queries reads head h / (heads / key_heads) of the keys.
struct AttentionSizes {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 0, keys = 0, head_dim = 1;
  friend bool operator==(const AttentionSizes&, const AttentionSizes&) = default;
};

// In elements; head_dim is contiguous.
struct HeadStrides {
  std::int64_t batch = 0, head = 0, position = 0;
  // Of the first element: queries, keys and values may be one tensor's parts.
  std::int64_t offset = 0;
  friend bool operator==(const HeadStrides&, const HeadStrides&) = default;
};
struct AttentionStrides {
  HeadStrides q, k, v, out, dout, dq, dk, dv;
  std::int64_t row_batch = 0, row_head = 0;  // of lse and dots, contiguous along queries
  std::int64_t mask_batch = 0, mask_head = 0, mask_query = 0, mask_key = 0;
  // Of row-major [batch, heads, positions, head_dim] without gaps and a full mask.
  static AttentionStrides dense(const AttentionSizes& sizes);
};

}  // namespace pantala::schedule
