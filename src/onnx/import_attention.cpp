// Attention and rotary positions, operators of version 23 and later. Attention is the op of the
// same name, with masks, caches and windows; what it lacks (caps, results in between, values of
// another size) is written with products and a softmax.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

// [batch, sequence, heads * size] as [batch, heads, sequence, size]; four axes stay.
Tensor with_heads(const Node& node, const Tensor& x, std::string_view attribute) {
  if (x.rank() == 4) return x;
  const std::int64_t heads = node.attribute(attribute, std::int64_t{0});
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0)
    node.fail(fmt::format("{} heads do not fit {}", heads, x.type().str()));
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Tensor without_heads(const Tensor& y) {
  return reshape(permute(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
}

// Each head of keys or values repeated for its group of queries.
Tensor for_queries(const Node& node, const Tensor& x, std::int64_t heads) {
  if (x.dim(1) == heads) return x;
  if (x.dim(1) < 1 || heads % x.dim(1) != 0)
    node.fail(fmt::format("{} heads of queries for {} of keys", heads, x.dim(1)));
  const std::int64_t groups = heads / x.dim(1);
  const Tensor spread = broadcast_to(reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2), x.dim(3)}),
                                     {x.dim(0), x.dim(1), groups, x.dim(2), x.dim(3)});
  return reshape(spread, {x.dim(0), heads, x.dim(2), x.dim(3)});
}

struct Parts {
  Tensor q, k, v;
  std::int64_t past = 0;  // keys of the cache, in front of the others
  double scale = 1;
  bool causal = false;
  std::int64_t left = -1, right = -1;  // positions that are seen; -1: all
};

Parts read_parts(Node& node) {
  Parts p{with_heads(node, node.tensor(0), "q_num_heads"),
          with_heads(node, node.tensor(1), "kv_num_heads"),
          with_heads(node, node.tensor(2), "kv_num_heads")};
  if (node.has(4) != node.has(5)) node.fail("past keys and past values belong together");
  if (node.has(4)) {
    p.past = node.tensor(4).dim(2);
    p.k = concat({node.tensor(4), p.k}, 2);
    p.v = concat({node.tensor(5), p.v}, 2);
  }
  p.scale = node.attribute("scale", 1 / std::sqrt(static_cast<double>(p.q.dim(3))));
  p.causal = node.attribute("is_causal", std::int64_t{0}) != 0;
  p.left = node.attribute("left_window_size", std::int64_t{-1});
  p.right = node.attribute("right_window_size", std::int64_t{-1});
  return p;
}

// Whether positions alone say it, counted from 0 on both sides: then the op does so itself.
bool is_plainly_causal(const Node& node, const Parts& p) {
  return p.causal && p.past == 0 && !node.has(6);
}

// Which keys a query sees by its position, [.., queries, keys]; an empty handle: all.
Tensor seen_by_position(Node& node, const Parts& p) {
  const Shape shape{p.q.dim(2), p.k.dim(2)};
  const Tensor beside = node.graph().constant(0, {}, i64);
  const Tensor key = iota_beside(beside, shape, 1);
  Tensor query = iota_beside(beside, shape, 0) + p.past, seen;
  const auto restrict_to = [&](const Tensor& keys) {
    seen = seen.valid() ? logical_and(seen, keys) : keys;
  };
  if (node.has(6)) {
    const Tensor valid = reshape(cast(node.tensor(6), i64), {-1, 1, 1, 1});
    query = query + (valid - shape[0]);
    restrict_to(lt(key, valid));
  }
  if (p.causal) restrict_to(le(key, query));
  if (p.left >= 0) restrict_to(ge(key, query - p.left));
  if (p.right >= 0) restrict_to(le(key, query + p.right));
  return seen;
}

// A mask may end before the keys do: what is behind it is not seen.
Tensor whole_mask(const Tensor& mask, std::int64_t keys) {
  if (mask.rank() == 0 || mask.dim(mask.rank() - 1) >= keys || mask.dim(mask.rank() - 1) == 1)
    return mask;
  IntList before(static_cast<std::size_t>(mask.rank()), 0), after = before;
  after.back() = keys - mask.dim(mask.rank() - 1);
  return mask.dtype() == boolean ? cast(pad(cast(mask, u8), before, after), boolean)
                                 : pad(mask, before, after, kMasked);
}

Tensor masked_scores(Node& node, const Parts& p, Tensor scores) {
  const Tensor nothing = full_beside(scores, {}, kMasked);
  if (node.has(3)) {
    const Tensor mask = whole_mask(node.tensor(3), p.k.dim(2));
    scores = mask.dtype() == boolean ? where(mask, scores, nothing) : scores + mask;
  }
  const Tensor seen = seen_by_position(node, p);
  return seen.valid() ? where(seen, scores, nothing) : scores;
}

// A query that sees nothing gets zeros.
Tensor shares(const Tensor& scores) {
  const Tensor blind = eq(amax(scores, {3}, true), kMasked);
  return where(blind, 0, softmax(where(blind, 0, scores), 3));
}

Tensor attend_by_parts(Node& node, const Parts& p) {
  const std::int64_t heads = p.q.dim(1),
                     mode = node.attribute("qk_matmul_output_mode", std::int64_t{0});
  const double cap = node.attribute("softcap", 0.0);
  const Tensor raw = matmul(p.q * p.scale, for_queries(node, p.k, heads), {.transpose_b = true});
  const Tensor capped = cap == 0 ? raw : tanh(raw / cap) * cap;
  const Tensor scores = masked_scores(node, p, capped);
  const Tensor weights = shares(scores);
  if (node.wants(3))
    node.give(3, mode == 0 ? raw : mode == 1 ? capped : mode == 2 ? scores : weights);
  return matmul(weights, for_queries(node, p.v, heads));
}

// The file's mask and what positions hide, in one; an empty handle: everything is seen.
Tensor one_mask(Node& node, const Parts& p) {
  const Tensor seen = is_plainly_causal(node, p) ? Tensor() : seen_by_position(node, p);
  if (!node.has(3)) return seen;
  Tensor mask = whole_mask(node.tensor(3), p.k.dim(2));
  if (mask.dtype() != boolean) mask = cast(mask, p.q.dtype());
  if (!seen.valid()) return mask;
  return mask.dtype() == boolean ? logical_and(mask, seen)
                                 : where(seen, mask, full_beside(mask, {}, kMasked));
}

Tensor attend_by_op(Node& node, const Parts& p) {
  AttentionOptions options{.causal = is_plainly_causal(node, p), .scale = p.scale};
  if (options.causal && p.left >= 0 && p.left < p.k.dim(2)) options.window = p.left + 1;
  const Tensor mask = one_mask(node, p);
  return attention(p.q, p.k, p.v, options, mask.valid() ? std::optional(mask) : std::nullopt);
}

void convert_attention(Node& node) {
  const Parts p = read_parts(node);
  const bool by_op = !node.wants(3) && node.attribute("softcap", 0.0) == 0 &&
                     p.q.dim(3) == p.v.dim(3) && p.scale > 0;
  const Tensor y = by_op ? attend_by_op(node, p) : attend_by_parts(node, p);
  node.give(node.rank(0) == 3 ? without_heads(y) : y);
  node.give(1, p.k);
  node.give(2, p.v);
}

// The first axes of a head are rotated by the cosines and sines of the positions.
void convert_rotary_embedding(Node& node) {
  const Tensor x = with_heads(node, node.tensor(0), "num_heads");
  const std::int64_t given = node.attribute("rotary_embedding_dim", std::int64_t{0});
  const std::int64_t size = given == 0 ? x.dim(3) : given;
  if (size < 2 || size > x.dim(3) || size % 2 != 0)
    node.fail(fmt::format("{} of {} axes cannot be rotated", size, x.dim(3)));
  const auto angles = [&](int input) {
    const Tensor table = node.tensor(input);
    const Tensor rows = node.has(3) ? take(table, node.tensor(3), 0) : table;
    return unsqueeze(rows, 1);  // for all heads
  };
  const Tensor c = angles(1), s = angles(2), rotated = slice_axis(x, 3, 0, size);
  const bool pairs = node.attribute("interleaved", std::int64_t{0}) != 0;
  const std::int64_t half = size / 2;
  const Tensor a = pairs ? slice_axis(rotated, 3, 0, size, 2) : slice_axis(rotated, 3, 0, half);
  const Tensor b = pairs ? slice_axis(rotated, 3, 1, size, 2) : slice_axis(rotated, 3, half, size);
  const Tensor real = c * a - s * b, imaginary = s * a + c * b;
  const Tensor turned = pairs ? reshape(stack({real, imaginary}, 4), rotated.shape().vec())
                              : concat({real, imaginary}, 3);
  const Tensor y =
      size == x.dim(3) ? turned : concat({turned, slice_axis(x, 3, size, x.dim(3))}, 3);
  node.give(node.rank(0) == 3 ? without_heads(y) : y);
}

constexpr Adapter kAttentionAdapters[] = {
    {"Attention", convert_attention, false},
    {"RotaryEmbedding", convert_rotary_embedding, false},
};

}  // namespace

std::span<const Adapter> attention_adapters() { return kAttentionAdapters; }

}  // namespace pantala::onnx
