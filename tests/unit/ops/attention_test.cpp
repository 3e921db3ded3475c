// Attention and rotary positions: groups, masks, windows, empty rows, head sizes, the cache,
// rotations, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "base/philox.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests::attention_test {
namespace {

using ::testing::HasSubstr;

// A constant of f64 numbers in [-1, 1), different for each name.
Tensor noise(Graph& g, const std::string& name, const Shape& shape) {
  Literal values(Type{f64, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.f()[k] =
        2 * bits_to_unit(random_bits(fnv1a(name), 0, 0, static_cast<std::uint64_t>(k))) - 1;
  return g.constant(values);
}

// Parameters q, k, v (and a float mask) with values; gradients go against central differences.
struct Heads {
  Graph g;
  std::vector<Tensor> parameters;
  ref::Bindings at;
  Tensor q, k, v;
  Heads(const Shape& queries, const Shape& keys)
      : q(add("q", queries)), k(add("k", keys)), v(add("v", keys)) {}
  Tensor add(const std::string& name, const Shape& shape) {
    parameters.push_back(g.parameter(name, shape, init::zeros(), f64));
    at[name] = draw({shape, -1, 1, f64, false}, name);
    return parameters.back();
  }
  Tensor loss(const Tensor& out) { return sum(out * noise(g, "upstream", out.shape())); }
  std::vector<double> values(const Tensor& t) const { return value_of(g, t, at); }
  void expect_equal(const Tensor& a, const Tensor& b) { expect_close(values(a), values(b), 1e-13); }
  void expect_equal_gradients(const Tensor& a, const Tensor& b) {
    const auto da = gradients_of(g, loss(a), parameters, at),
               db = gradients_of(g, loss(b), parameters, at);
    for (std::size_t p = 0; p < da.size(); ++p) expect_close(da[p], db[p], 1e-12);
  }
  void expect_central_differences(const Tensor& out) {
    EXPECT_EQ(check_gradients(g, loss(out), parameters, at, 1e-6), "");
  }
};

// softmax(q k^T / sqrt(d) + bias) v as written in a book; keys are repeated for their group.
Tensor plain_attention(const Tensor& q, Tensor k, Tensor v, const Tensor& bias) {
  const std::int64_t group = q.dim(1) / k.dim(1);
  const auto repeated = [&](const Tensor& t) {
    return reshape(broadcast_to(unsqueeze(t, 2), {t.dim(0), t.dim(1), group, t.dim(2), t.dim(3)}),
                   {t.dim(0), t.dim(1) * group, t.dim(2), t.dim(3)});
  };
  k = repeated(k), v = repeated(v);
  const Tensor scores =
      matmul(q, k, {.transpose_b = true}) / std::sqrt(static_cast<double>(q.dim(3)));
  return matmul(softmax(scores + bias), v);
}

// 0 where the rule holds for (query, key), else -inf.
template <class Rule>
Tensor added_mask(Graph& g, std::int64_t queries, std::int64_t keys, Rule&& rule) {
  Literal values(Type{f64, {queries, keys}});
  for (std::int64_t k = 0; k < values.numel(); ++k)
    values.f()[k] = rule(k / keys, k % keys) ? 0 : -INFINITY;
  return g.constant(values);
}

TEST(Attention, grouped_heads_equal_repeated_heads) {
  Heads h({2, 6, 3, 4}, {2, 2, 5, 4});
  const Tensor out = attention(h.q, h.k, h.v),
               plain = plain_attention(h.q, h.k, h.v, full_beside(h.q, {}, 0));
  h.expect_equal(out, plain);
  h.expect_equal_gradients(out, plain);
}

TEST(Attention, causal_equals_a_mask) {
  Heads h({1, 2, 4, 3}, {1, 2, 6, 3});
  const auto rule = [](std::int64_t i, std::int64_t j) { return j <= i; };
  const Tensor out = attention(h.q, h.k, h.v, {.causal = true}),
               added = added_mask(h.g, 4, 6, rule);
  h.expect_equal(out, plain_attention(h.q, h.k, h.v, added));
  h.expect_equal(out, attention(h.q, h.k, h.v, {}, added));
  h.expect_equal(out, attention(h.q, h.k, h.v, {}, eq(added, 0.0)));
  h.expect_equal_gradients(out, attention(h.q, h.k, h.v, {}, eq(added, 0.0)));
}

TEST(Attention, a_window_keeps_the_last_keys_only) {
  Heads h({1, 2, 7, 3}, {1, 1, 7, 3});
  const auto rule = [](std::int64_t i, std::int64_t j) { return j <= i && j > i - 3; };
  const Tensor out = attention(h.q, h.k, h.v, {.causal = true, .window = 3});
  h.expect_equal(out, plain_attention(h.q, h.k, h.v, added_mask(h.g, 7, 7, rule)));
  h.expect_central_differences(out);
  h.expect_equal(attention(h.q, h.k, h.v, {.causal = true, .window = INT64_MAX}),
                 attention(h.q, h.k, h.v, {.causal = true}));
}

TEST(Attention, scale_replaces_the_default) {
  Heads h({1, 1, 3, 4}, {1, 1, 3, 4});
  h.expect_equal(attention(h.q, h.k, h.v, {.scale = 0.5}), attention(h.q, h.k, h.v));
  h.expect_equal(attention(h.q, h.k, h.v, {.scale = 2}), attention(h.q * 4.0, h.k, h.v));
  EXPECT_EQ(attention(h.q, h.k, h.v, {.scale = 0.5}), attention(h.q, h.k, h.v));  // one node
}

TEST(Attention, lse_is_the_logarithm_of_the_sum) {
  Heads h({1, 2, 3, 4}, {1, 2, 5, 4});
  const std::vector<Tensor> results = ops::apply("attention", {h.q, h.k, h.v});
  h.expect_equal(results[1], logsumexp(matmul(h.q, h.k, {.transpose_b = true}) * 0.5, {-1}));
  EXPECT_EQ(check_gradients(h.g, h.loss(results[0]) + sum(results[1]), h.parameters, h.at, 1e-6),
            "");
}

TEST(Attention, large_scores_stay_finite) {
  Heads h({1, 1, 3, 4}, {1, 1, 3, 4});
  for (const double y : h.values(attention(h.q * 1e5, h.k, h.v))) EXPECT_LE(std::fabs(y), 1);
}

TEST(Attention, queries_without_a_key_give_zeros_and_finite_gradients) {
  Heads h({1, 2, 3, 4}, {1, 1, 5, 4});
  const auto rule = [](std::int64_t i, std::int64_t j) { return i != 1 && j > 1; };
  const Tensor added = added_mask(h.g, 3, 5, rule);
  for (const Tensor& mask : {added, eq(added, 0.0)}) {
    const Tensor out = attention(h.q, h.k, h.v, {}, mask);
    for (const double y : h.values(slice_axis(out, 2, 1, 2))) EXPECT_EQ(y, 0);
    for (const double y : h.values(slice_axis(out, 2, 0, 1))) EXPECT_NE(y, 0);
    h.expect_central_differences(out);
    for (const double d :
         h.values(slice_axis(ops::apply("attention", {h.q, h.k, h.v, mask})[1], 2, 1, 2)))
      EXPECT_EQ(d, -INFINITY);
  }
}

TEST(Attention, without_any_keys_gives_zeros) {
  Heads h({1, 2, 3, 4}, {1, 2, 0, 4});
  const Tensor out = attention(h.q, h.k, h.v);
  EXPECT_EQ(h.values(out), std::vector<double>(24, 0.0));
  EXPECT_EQ(gradients_of(h.g, h.loss(out), {h.q}, h.at)[0], std::vector<double>(24, 0.0));
}

TEST(Attention, gradients_agree_with_central_differences_for_any_head_size) {
  for (const std::int64_t size : {1, 8, 24, 80}) {
    SCOPED_TRACE(size);
    Heads h({1, 4, 3, size}, {1, 2, 3, size});
    h.expect_central_differences(attention(h.q, h.k, h.v, {.causal = true}));
  }
}

TEST(Attention, a_float_mask_has_a_gradient_in_its_own_shape) {
  for (const Shape& shape :
       {Shape{5}, Shape{3, 5}, Shape{2, 1, 5}, Shape{2, 1, 3, 1}, Shape{2, 2, 3, 5}, Shape{}}) {
    SCOPED_TRACE(shape.str());
    Heads h({2, 2, 3, 4}, {2, 1, 5, 4});
    const Tensor mask = h.add("mask", shape);
    h.expect_central_differences(attention(h.q, h.k, h.v, {}, mask));
  }
}

TEST(Attention, one_tensor_may_be_queries_keys_and_values) {
  Heads h({1, 2, 3, 4}, {1, 2, 3, 4});
  h.expect_central_differences(attention(h.q, h.q, h.q, {.causal = true}));
}

TEST(Attention, errors_name_inputs_and_shapes) {
  Graph g;
  const Tensor q = g.input("q", {2, 6, 5, 8}), k = g.input("k", {2, 3, 7, 8});
  const auto heads = g.input("heads", {2, 4, 7, 8});
  EXPECT_THAT(
      message_of<TypeError>([&] { attention(q, heads, heads); }),
      HasSubstr(
          "the heads of q are no multiple of the heads of k: q f32[2,6,5,8], k f32[2,4,7,8]"));
  EXPECT_THAT(
      message_of<TypeError>([&] { attention(q, k, k, {}, g.input("m", {5, 6}, boolean)); }),
      HasSubstr("the mask does not broadcast to [batch, heads, queries, keys] = [2,6,5,7]"));
  EXPECT_THROW(attention(q, k, k, {}, g.input("wide", {1, 2, 6, 5, 7}, boolean)), TypeError);
  EXPECT_THROW(attention(q, k, k, {}, g.input("whole", {5, 7}, i64)), TypeError);
  EXPECT_THROW(attention(q, k, k, {.window = 2}), TypeError);
  EXPECT_THROW(attention(q, k, k, {.causal = true, .window = -2}), TypeError);
  EXPECT_THROW(attention(q, k, k, {.scale = -1}), TypeError);
  EXPECT_THROW(attention(q, k, k, {.scale = NAN}), TypeError);
  EXPECT_THROW(attention(q, k, g.input("v", {2, 3, 6, 8})), TypeError);
  EXPECT_THROW(attention(q, g.input("k4", {2, 3, 7, 4}), g.input("v4", {2, 3, 7, 4})), TypeError);
  EXPECT_THROW(attention(g.input("q3", {6, 5, 8}), k, k), TypeError);
  EXPECT_THROW(attention_cached(q, k, k, g.input("n", {1}, i64)), TypeError);
  EXPECT_THROW(attention_cached(q, k, k, g.input("f", {})), TypeError);
}

TEST(AttentionCached, decoding_equals_prefill_at_every_position) {
  for (const std::int64_t window : {0, 3}) {
    Heads h({1, 4, 6, 8}, {1, 2, 6, 8});
    const Tensor whole = attention(h.q, h.k, h.v, {.causal = true, .window = window});
    // A cache of 9 places of which the last are filled with what must not be read.
    const Tensor unread = full_beside(h.q, {1, 2, 3, 8}, 1e30), k = concat({h.k, unread}, 2),
                 v = concat({h.v, unread}, 2);
    for (std::int64_t i = 0; i < 6; ++i) {
      const Tensor length = h.g.constant(static_cast<double>(i + 1), {}, i32);
      h.expect_equal(attention_cached(slice_axis(h.q, 2, i, i + 1), k, v, length,
                                      {.causal = true, .window = window}),
                     slice_axis(whole, 2, i, i + 1));
    }
    const Tensor three = attention_cached(slice_axis(h.q, 2, 2, 5), k, v, h.g.constant(5, {}, i64),
                                          {.causal = true, .window = window});
    h.expect_equal(three, slice_axis(whole, 2, 2, 5));
  }
}

TEST(AttentionCached, without_causal_sees_the_valid_keys) {
  Heads h({1, 2, 3, 4}, {1, 1, 6, 4});
  const Tensor length = h.g.constant(4, {}, i64);
  h.expect_equal(attention_cached(h.q, h.k, h.v, length),
                 attention(h.q, slice_axis(h.k, 2, 0, 4), slice_axis(h.v, 2, 0, 4)));
  h.expect_central_differences(attention_cached(h.q, h.k, h.v, length));
}

TEST(AttentionCached, an_empty_cache_gives_zeros) {
  Heads h({1, 2, 2, 4}, {1, 2, 3, 4});
  EXPECT_EQ(h.values(attention_cached(h.q, h.k, h.v, h.g.constant(0, {}, i64), {.causal = true})),
            std::vector<double>(16, 0.0));
}

TEST(Rope, turns_pairs_of_the_two_halves) {
  Graph g;
  const Tensor x = g.constant(floats({2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}, f64));
  const double c0 = std::cos(1.0), s0 = std::sin(1.0), c1 = std::cos(0.1), s1 = std::sin(0.1);
  expect_close(value_of(g, rope(x, {.theta = 100})),
               {1, 2, 3, 4, c0 - 3 * s0, 2 * c1 - 4 * s1, 3 * c0 + s0, 4 * c1 + 2 * s1}, 1e-14);
}

TEST(Rope, an_offset_moves_the_positions) {
  Graph g;
  const Tensor x = noise(g, "x", {2, 3, 7, 6});
  const Tensor tail = rope(slice_axis(x, 2, 4, 7), {}, g.constant(4, {}, i32));
  expect_close(value_of(g, tail), value_of(g, slice_axis(rope(x), 2, 4, 7)), 1e-14);
}

TEST(Rope, preserves_norms_and_depends_on_distances_only) {
  Graph g;
  const Tensor q = noise(g, "q", {5, 8}), k = noise(g, "k", {5, 8}),
               far = g.constant(100000, {}, i64);
  expect_close(value_of(g, sum(square(rope(q, {}, far)), {-1})), value_of(g, sum(square(q), {-1})),
               1e-13);
  expect_close(value_of(g, matmul(rope(q, {}, far), rope(k, {}, far), {.transpose_b = true})),
               value_of(g, matmul(rope(q), rope(k), {.transpose_b = true})), 1e-9);
}

TEST(Rope, angles_are_computed_in_f64) {
  Graph g;
  const std::vector<Tensor> inputs{g.input("x", {4, 8}, f32), g.input("offset", {}, i32)};
  const Tensor y = ops::expand(ops::table().get("rope"), {10000.0, false}, inputs, {})[0];
  EXPECT_EQ(y.dtype(), f32);
  int angles = 0;
  for (const ir::Node& node : g.data()->nodes()) {
    if (node.op->name != "sin" && node.op->name != "cos" && node.op->name != "exp") continue;
    EXPECT_EQ(node.results[0].dtype, f64) << node.op->name;
    ++angles;
  }
  EXPECT_EQ(angles, 3);
}

TEST(Rope, the_gradient_is_the_inverse_rotation) {
  Heads h({1, 2, 3, 4}, {1, 1, 3, 4});
  h.expect_central_differences(rope(h.q, {.theta = 50}, h.g.constant(3, {}, i64)));
  const Tensor turned = rope(h.q), back = ops::apply("rope", {turned}, {{"inverse", true}})[0];
  h.expect_equal(back, h.q);
}

TEST(Rope, errors_name_inputs_and_shapes) {
  Graph g;
  EXPECT_THAT(message_of<TypeError>([&] { rope(g.input("odd", {2, 3, 5})); }),
              HasSubstr("head_dim must be even and not 0: x f32[2,3,5]"));
  EXPECT_THROW(rope(g.input("vector", {4})), TypeError);
  const Tensor x = g.input("x", {3, 4});
  EXPECT_THROW(rope(x, {.theta = 0}), TypeError);
  EXPECT_THROW(rope(x, {.theta = INFINITY}), TypeError);
  EXPECT_THROW(rope(x, {}, g.input("offset", {3}, i64)), TypeError);
  EXPECT_THROW(rope(x, {}, g.input("real", {})), TypeError);
}

}  // namespace
}  // namespace pantala::tests::attention_test
