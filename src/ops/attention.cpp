// Attention and rotary positions. attention saves the logarithm of each row's sum (lse), from which
// its gradient, one op with an expansion of its own, finds the probabilities again: a target that
// runs both as tiled kernels never stores a tensor of queries times keys.
//
// A query that sees no key at all gets zeros and an lse of -inf; its gradients are zero. Grouped
// heads are not repeated: the queries that share a key head lie behind each other in memory, so
// [batch, heads, queries, size] is read as [batch, key heads, group * queries, size].
#include "ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/define.h"

namespace pantala::ops {
namespace {

using op::AttentionAttrs;

struct Family {
  static constexpr std::string_view kFamily = "attention";
};

// The sizes of one attention.
struct Sizes {
  std::int64_t batch, heads, key_heads, queries, keys, head_dim;
  Sizes(const Shape& q, const Shape& k)
      : batch(q[0]), heads(q[1]), key_heads(k[1]), queries(q[2]), keys(k[2]), head_dim(q[3]) {}
  Shape scores() const { return {batch, heads, queries, keys}; }
  Shape rows() const { return {batch, heads, queries}; }
  // Rows by key head, `last` elements each.
  Ints grouped(std::int64_t last) const {
    return {batch, key_heads, heads / key_heads * queries, last};
  }
};

// --- shape rules

// Queries, keys and values are the inputs first, first + 1, first + 2.
void check_heads(const InferContext& c, int first) {
  c.require_float(first);
  for (int i = first; i < first + 3; ++i) {
    c.require_same_dtype(first, i);
    if (c.shape(i).rank() != 4)
      c.fail("tensors must be [batch, heads, sequence, head_dim]: " + c.describe_inputs());
  }
  const Shape &q = c.shape(first), &k = c.shape(first + 1);
  if (!(k == c.shape(first + 2))) c.fail("keys and values differ in shape: " + c.describe_inputs());
  if (q[0] != k[0] || q[3] != k[3])
    c.fail("queries and keys differ in batch or head_dim: " + c.describe_inputs());
  if (k[1] == 0 || q[1] % k[1] != 0)
    c.fail("the heads of q are no multiple of the heads of k: " + c.describe_inputs());
  if (q[3] == 0) c.fail("head_dim is 0: " + c.describe_inputs());
  Sizes(q, k).scores();  // throws where the scores would be too many to count
}

// Also puts the default scale in place, so that equal attentions have equal attributes.
void check_options(const InferContext& c, AttentionAttrs& a, std::int64_t head_dim) {
  if (a.window < 0) c.fail(fmt::format("window must not be negative, got {}", a.window));
  if (a.window > 0 && !a.causal) c.fail(fmt::format("window {} needs causal", a.window));
  if (!std::isfinite(a.scale) || a.scale < 0)
    c.fail(fmt::format("scale must be finite and not negative, got {}", a.scale));
  if (a.scale == 0) a.scale = 1 / std::sqrt(static_cast<double>(head_dim));
}

void check_mask(const InferContext& c, int mask, int q, const Shape& scores) {
  if (!c.has(mask)) return;
  if (c.in(mask).dtype != boolean) c.require_same_dtype(q, mask);
  Shape common;
  if (!broadcast_shapes(c.shape(mask), scores, common) || !(common == scores))
    c.fail(fmt::format("the mask does not broadcast to [batch, heads, queries, keys] = {}: {}",
                       scores.str(), c.describe_inputs()));
}

// --- scores

// Whether a query sees a key that lies `distance` positions before it.
Tensor in_sight(const Tensor& distance, const AttentionAttrs& a) {
  // No distance is as large as 2^53, up to which plain numbers are exact.
  const auto window = static_cast<double>(std::min(a.window, std::int64_t{1} << 53));
  const Tensor behind = ge(distance, 0);
  return a.window > 0 ? logical_and(behind, lt(distance, window)) : behind;
}

// scale q k^T + mask in [batch, heads, queries, keys], -inf where a key is not seen.
Tensor masked_scores(const Tensor& q, const Tensor& k, const Tensor* mask,
                     const AttentionAttrs& a) {
  const Sizes n(q.shape(), k.shape());
  const ContractAxes inner{
      .batch_a = {0, 1}, .batch_b = {0, 1}, .contract_a = {3}, .contract_b = {3}};
  Tensor scores =
      reshape(contract(reshape(q * a.scale, n.grouped(n.head_dim)), k, inner), n.scores().vec());
  if (mask) scores = mask->dtype() == boolean ? where(*mask, scores, -INFINITY) : scores + *mask;
  if (!a.causal) return scores;
  const Shape plane{n.queries, n.keys};
  return where(in_sight(iota_beside(q, plane, 0) - iota_beside(q, plane, 1), a), scores, -INFINITY);
}

Tensor finite_or_zero(const Tensor& x) { return where(is_finite(x), x, 0.0); }

// Sums a tensor to a shape that broadcasts to its own.
Tensor sum_to(const Tensor& x, const Shape& shape) {
  const int lead = x.rank() - shape.rank();
  Ints axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis < lead || shape[axis - lead] != x.shape()[axis]) axes.push_back(axis);
  return reshape(axes.empty() ? x : sum(x, axes), shape.vec());
}

// The probabilities, and the gradient of the scores after scaling and masking: P * (dP - D), where
// D, the row sums of P * dP, is taken as those of dout * out.
struct ScoreGradient {
  Tensor probabilities, gradient;
};
struct Saved {
  const Tensor &dout, &q, &k, &v, &out, &lse;
};
ScoreGradient score_gradient(const Saved& s, const Tensor* mask, const AttentionAttrs& a) {
  const Sizes n(s.q.shape(), s.k.shape());
  const Tensor p = exp(masked_scores(s.q, s.k, mask, a) - unsqueeze(finite_or_zero(s.lse), -1));
  const ContractAxes inner{
      .batch_a = {0, 1}, .batch_b = {0, 1}, .contract_a = {3}, .contract_b = {3}};
  const Tensor dp =
      reshape(contract(reshape(s.dout, n.grouped(n.head_dim)), s.v, inner), n.scores().vec());
  return {p, p * (dp - sum(s.dout * s.out, {-1}, true))};
}

// --- attention

SampleInput bools(Shape shape) { return ints(std::move(shape), 0, 2, boolean); }

struct AttentionGrad : op::AttentionGrad, Family {
  static constexpr OpInfo info{name, "(dout, q, k, v, out, lse, mask?) -> (dq, dk, dv)",
                               "The gradients of attention from its result and saved sums."};
  static void infer(InferContext& c, Attrs& a) {
    check_heads(c, 1);
    const Sizes n(c.shape(1), c.shape(2));
    check_options(c, a, n.head_dim);
    check_mask(c, 6, 1, n.scores());
    for (const int i : {0, 4, 5}) {
      c.require_same_dtype(1, i);
      c.require_shape(i, i == 5 ? n.rows() : c.shape(1));
    }
    for (int i = 1; i < 4; ++i) c.result(c.in(i));
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &dout = c.in(0), &q = c.in(1), &k = c.in(2);
    const Sizes n(q.shape(), k.shape());
    const ScoreGradient s =
        score_gradient({dout, q, k, c.in(3), c.in(4), c.in(5)}, c.has(6) ? &c.in(6) : nullptr, a);
    const Tensor ds = reshape(s.gradient * a.scale, n.grouped(n.keys)),
                 p = reshape(s.probabilities, n.grouped(n.keys));
    // Keys and values collect from all queries of all heads that share them.
    const ContractAxes over_keys{
        .batch_a = {0, 1}, .batch_b = {0, 1}, .contract_a = {3}, .contract_b = {2}};
    const ContractAxes over_rows{
        .batch_a = {0, 1}, .batch_b = {0, 1}, .contract_a = {2}, .contract_b = {2}};
    return {reshape(contract(ds, k, over_keys), q.shape().vec()),
            contract(ds, reshape(q, n.grouped(n.head_dim)), over_rows),
            contract(p, reshape(dout, n.grouped(n.head_dim)), over_rows)};
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](Shape q, const Shape& k) {
      return std::vector{floats(q), floats(q), floats(k),
                         floats(k), floats(q), floats(q.without(3), 0.5, 1.5)};
    };
    std::vector<SampleInput> grouped = inputs({1, 4, 3, 2}, {1, 2, 3, 2}),
                             masked = inputs({1, 2, 3, 4}, {1, 2, 2, 4});
    masked.push_back(floats({2, 1, 2}));
    return {sample(inputs({1, 1, 3, 4}, {1, 1, 3, 4}), Attrs{}),
            sample(grouped, Attrs{true, 2, 0.7}), sample(masked, Attrs{})};
  }
};

struct Attention : op::Attention, Family {
  static constexpr OpInfo info{
      name, "(q, k, v, mask?) -> (out, lse)",
      "softmax(scale q k^T + mask) v for [batch, heads, sequence, head_dim]; keys may have fewer "
      "heads. Also the logarithm of each row's sum."};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, Attrs& a) {
    check_heads(c, 0);
    const Sizes n(c.shape(0), c.shape(1));
    check_options(c, a, n.head_dim);
    check_mask(c, 3, 0, n.scores());
    c.result(c.in(0));
    c.result({c.in(0).dtype, n.rows()});
  }
  static std::vector<Tensor> expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &q = c.in(0), &k = c.in(1), &v = c.in(2);
    const Sizes n(q.shape(), k.shape());
    if (n.keys == 0) return {zeros_like(q), full_beside(q, n.rows(), -INFINITY)};
    const Tensor scores = masked_scores(q, k, c.has(3) ? &c.in(3) : nullptr, a);
    const Tensor shift = finite_or_zero(amax(scores, {-1}, true)), e = exp(scores - shift),
                 total = sum(e, {-1}, true);
    // Neither the logarithm nor the quotient may see the 0 of an empty row: their derivatives would
    // be infinite there.
    const Tensor has_keys = ne(total, 0.0), divisor = where(has_keys, total, 1.0);
    const ContractAxes over_keys{
        .batch_a = {0, 1}, .batch_b = {0, 1}, .contract_a = {3}, .contract_b = {2}};
    const Tensor out = contract(reshape(e / divisor, n.grouped(n.keys)), v, over_keys);
    const Tensor lse = where(has_keys, log(divisor) + shift, -INFINITY);
    return {reshape(out, q.shape().vec()), reshape(lse, n.rows().vec())};
  }
  static void grad(GradContext& g, const Attrs& a) {
    const Tensor &q = g.in(0), &k = g.in(1), &v = g.in(2), dout = g.dy();
    std::vector<Operand> inputs{dout, q, k, v, g.out(0), g.out(1)};
    if (g.has(3)) inputs.push_back(g.in(3));
    for (int i = 0; i < 3; ++i)
      g.give(i, [&] { return make_all<AttentionGrad>(inputs, a)[static_cast<std::size_t>(i)]; });
    if (!g.has(3) || g.in(3).dtype() == boolean) return;
    g.give(3, [&] {
      return sum_to(score_gradient({dout, q, k, v, g.out(0), g.out(1)}, &g.in(3), a).gradient,
                    g.in(3).shape());
    });
  }
  static std::vector<Sample> samples() {
    const auto qkv = [](Shape q, const Shape& k) {
      return std::vector{floats(std::move(q)), floats(k), floats(k)};
    };
    std::vector<SampleInput> added = qkv({2, 2, 3, 2}, {2, 1, 4, 2}),
                             kept = qkv({1, 2, 3, 4}, {1, 2, 3, 4});
    added.push_back(floats({2, 1, 4}));
    kept.push_back(bools({3, 3}));
    return {sample(qkv({1, 1, 4, 8}, {1, 1, 4, 8}), Attrs{}),
            sample(qkv({2, 3, 2, 3}, {2, 3, 5, 3}), Attrs{false, 0, 0.7}),
            sample(qkv({1, 4, 3, 5}, {1, 2, 3, 5}), Attrs{true, 0, 0}),
            sample(qkv({1, 2, 5, 2}, {1, 1, 5, 2}), Attrs{true, 2, 0}),
            sample(added, Attrs{}),
            sample(kept, Attrs{true, 0, 0}),
            sample(qkv({1, 1, 1, 1}, {1, 1, 1, 1}), Attrs{}),
            sample(qkv({1, 2, 0, 2}, {1, 2, 3, 2}), Attrs{})};
  }
};

struct AttentionCached : op::AttentionCached, Family {
  static constexpr OpInfo info{name, "(q, k, v, length) -> out",
                               "attention over the first `length` keys of a cache; with causal, "
                               "the queries stand at the last of these positions."};
  static constexpr std::array<int, 1> kIndexInputs{3};
  static void infer(InferContext& c, Attrs& a) {
    check_heads(c, 0);
    check_options(c, a, c.shape(0)[3]);
    c.require_integer(3);
    c.require_rank(3, 0);
    c.result(c.in(0));
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &q = c.in(0), length = cast(c.in(3), i64);
    const Shape plane{q.dim(2), c.in(1).dim(2)};
    const Tensor key = iota_beside(q, plane, 1),
                 query = iota_beside(q, plane, 0) + length - static_cast<double>(plane[0]);
    const Tensor valid = lt(key, length);
    const Tensor seen = a.causal ? logical_and(valid, in_sight(query - key, a)) : valid;
    return attention(q, c.in(1), c.in(2), {.scale = a.scale}, seen);
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](Shape q, const Shape& k, double low, double high) {
      return std::vector{floats(std::move(q)), floats(k), floats(k), ints({}, low, high)};
    };
    return {sample(inputs({1, 2, 1, 4}, {1, 1, 6, 4}, 2, 6), Attrs{}),
            sample(inputs({2, 2, 3, 2}, {2, 2, 5, 2}, 3, 6), Attrs{true, 0, 0.6}),
            sample(inputs({1, 1, 2, 3}, {1, 1, 5, 3}, 4, 6), Attrs{true, 2, 0}),
            sample(inputs({1, 1, 3, 2}, {1, 1, 3, 2}, 1, 2), Attrs{true, 0, 0})};
  }
};

// --- rotary positions

struct Rope : Family {
  struct Attrs {
    double theta = 10000;
    bool inverse = false;
    static void fields(auto&& f, auto& a) {
      f("theta", a.theta, "base of the wavelengths");
      f("inverse", a.inverse, "turn backwards: the gradient");
    }
  };
  static constexpr OpInfo info{"rope", "(x, offset?) -> y",
                               "The pairs (i, i + head_dim / 2) of [..., sequence, head_dim] "
                               "turned by (offset + position) * theta^(-2 i / head_dim)."};
  static constexpr std::array<int, 1> kIndexInputs{1};
  static void infer(InferContext& c, const Attrs& a) {
    c.require_float(0);
    const Shape& shape = c.shape(0);
    if (shape.rank() < 2)
      c.fail("needs at least the axes [sequence, head_dim]: " + c.describe_inputs());
    if (shape.back() == 0 || shape.back() % 2 != 0)
      c.fail("head_dim must be even and not 0: " + c.describe_inputs());
    if (!std::isfinite(a.theta) || a.theta <= 0)
      c.fail(fmt::format("theta must be finite and positive, got {}", a.theta));
    if (c.has(1)) {
      c.require_integer(1);
      c.require_rank(1, 0);
    }
    c.result(c.in(0));
  }
  // Angles are large at late positions: in f32 they would have lost the digits that sine and cosine
  // need.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor& x = c.in(0);
    const std::int64_t half = x.dim(-1) / 2;
    const Shape plane{x.dim(-2), half};
    Tensor position = iota_beside(x, plane, 0);
    if (c.has(1)) position = position + cast(c.in(1), i64);
    const Tensor frequency =
        exp(iota_beside(x, plane, 1, f64) * (-std::log(a.theta) / static_cast<double>(half)));
    const Tensor angle = cast(position, f64) * frequency;
    const Tensor cosine = cast(cos(angle), x.dtype()),
                 sine = cast(a.inverse ? -sin(angle) : sin(angle), x.dtype());
    const Tensor first = slice_axis(x, -1, 0, half), second = slice_axis(x, -1, half, 2 * half);
    return concat({first * cosine - second * sine, second * cosine + first * sine}, -1);
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return g.has(1) ? make<Rope>({g.dy(), g.in(1)}, {a.theta, !a.inverse})
                      : make<Rope>({g.dy()}, {a.theta, !a.inverse});
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 5, 4})}, Attrs{}), sample({floats({4, 4})}, Attrs{100, true}),
            sample({floats({1, 2, 3, 6}), ints({}, 0, 50)}, Attrs{10000, false}),
            sample({floats({1, 2}), ints({}, 5, 9, i32)}, Attrs{500, true}),
            sample({floats({0, 2})}, Attrs{})};
  }
};

}  // namespace

std::vector<const OpDef*> attention_ops() {
  return family<Attention, AttentionGrad, AttentionCached, Rope>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor attention(Operand q, Operand k, Operand v, const AttentionOptions& o,
                 const std::optional<Tensor>& mask) {
  std::vector<Operand> inputs{q, k, v};
  if (mask) inputs.push_back(*mask);
  return make<Attention>(inputs, {o.causal, o.window, o.scale});
}
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length,
                        const AttentionOptions& o) {
  return make<AttentionCached>({q, k, v, length}, {o.causal, o.window, o.scale});
}
Tensor rope(Operand x, const RopeOptions& o, const std::optional<Tensor>& offset) {
  return offset ? make<Rope>({x, *offset}, {o.theta, false}) : make<Rope>({x}, {o.theta, false});
}

}  // namespace pantala
