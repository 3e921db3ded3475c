// Sizes at and beside those that tiles, subgroups and blocks have, forward and backward: products,
// convolutions, reductions, attention, searches and scatters, tensors without elements, mixed
// dtypes. They take minutes in software: only with PANTALA_VULKAN_TESTS=all (`make test-vulkan`).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/fill.h"
#include "vulkan/near.h"

namespace pantala::vulkan_tests {
namespace {

constexpr std::int64_t kSizes[] = {1, 3, 17, 65, 129};

// Results that are asked for with their gradients, each weighted by numbers of its own.
class Sized {
 public:
  Tensor leaf(const Shape& shape, double bound = 1) {
    const std::string name = fmt::format("x{}", bindings_.size());
    wrt_.push_back(graph_.parameter(name, shape));
    bindings_.emplace(name, tests::fill(name, shape, bound));
    return wrt_.back();
  }
  Tensor number(double value, const Shape& shape) { return graph_.constant(value, shape); }
  Tensor ints(const Shape& shape, std::int64_t below) {
    const std::string name = fmt::format("i{}", bindings_.size());
    bindings_.emplace(name, tests::fill_int(name, shape, 0, below));
    return graph_.input(name, shape, i64);
  }
  void add(const Tensor& y) {
    result(y);
    const std::string name = fmt::format("w{}", bindings_.size());
    bindings_.emplace(name, tests::fill(name, y.shape()));
    const Tensor weighted = sum(y * graph_.input(name, y.shape()));
    loss_ = loss_ ? *loss_ + weighted : weighted;
  }
  void result(const Tensor& y) { graph_.output(fmt::format("y{}", results_++), y); }
  void expect() {
    const Gradients d = differentiate(graph_, *loss_, wrt_);
    expect_near_the_truth(d.graph, bindings_, d.gradients);
  }

 private:
  Graph graph_;
  std::vector<Tensor> wrt_;
  std::optional<Tensor> loss_;
  ref::Bindings bindings_;
  int results_ = 0;
};

class SizesOnVulkan : public OnVulkan {
 protected:
  SizesOnVulkan() { keeps_devices_ = true; }
  void SetUp() override {
    OnVulkan::SetUp();
    if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  }
};

// Every pair of sizes along two axes, each size along the third.
TEST_F(SizesOnVulkan, of_products) {
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    SCOPED_TRACE(kSizes[i]);
    Sized s;
    for (std::size_t j = 0; j < std::size(kSizes); ++j) {
      const std::int64_t m = kSizes[i], k = kSizes[j], n = kSizes[(i + j) % std::size(kSizes)];
      const bool ta = j % 2 == 1, tb = (i + j) % 3 == 0;
      s.add(matmul(s.leaf(ta ? Shape{k, m} : Shape{m, k}), s.leaf(tb ? Shape{n, k} : Shape{k, n}),
                   {.transpose_a = ta, .transpose_b = tb}));
    }
    s.expect();
  }
}

// Sums that are cut into slices, and products of batches.
TEST_F(SizesOnVulkan, of_long_and_many_products) {
  Sized s;
  for (const std::int64_t k : {127, 257, 1023, 4099}) s.add(matmul(s.leaf({3, k}), s.leaf({k, 5})));
  s.add(matmul(s.leaf({17, 3, 65}), s.leaf({17, 65, 2})));
  s.add(matmul(s.leaf({3, 1, 7, 5}), s.leaf({1, 5, 5, 9})));
  s.add(matmul(s.leaf({129}), s.leaf({129, 3})));
  s.add(relu(linear(s.leaf({65, 33}), s.leaf({31, 33}), s.leaf({31}))));
  s.expect();
}

TEST_F(SizesOnVulkan, of_convolutions) {
  struct Case {
    Shape x, weight;
    ConvOptions options;
  };
  const Case cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{1, 3, 17, 17}, {65, 3, 3, 3}, {.padding = {1}}},
      {{3, 17, 9, 13}, {17, 17, 3, 3}, {.stride = {2}, .padding = {1}}},
      {{2, 65, 5, 3}, {3, 65, 1, 1}, {}},
      {{1, 129, 3, 3}, {1, 129, 3, 3}, {}},
      {{1, 1, 129, 3}, {3, 1, 17, 1}, {.stride = {3, 1}, .padding = {5, 0}}},
      {{2, 4, 11, 10}, {6, 2, 3, 2}, {.stride = {2, 1}, .dilation = {2, 3}, .groups = 2}},
      {{1, 17, 7, 7}, {17, 1, 3, 3}, {.padding = {1}, .groups = 17}},
      {{1, 2, 3, 3}, {3, 2, 5, 5}, {.padding = {2}}},
      {{3, 3, 17, 17}, {5, 3, 7, 7}, {.stride = {2}, .padding = {3}}},
      {{65, 1, 3, 3}, {2, 1, 2, 2}, {}},
      {{1, 3, 2, 65}, {4, 3, 1, 1}, {.stride = {2, 5}}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::PrintToString(one.x) + testing::PrintToString(one.weight));
    Sized s;
    s.add(conv2d(s.leaf(one.x), s.leaf(one.weight), s.leaf({one.weight[0]}), one.options));
    s.expect();
  }
  Sized s;
  s.add(conv1d(s.leaf({2, 3, 129}), s.leaf({17, 3, 3}), std::nullopt, {.dilation = {5}}));
  s.add(conv1d(s.leaf({1, 1, 1027}), s.leaf({1, 1, 400}), std::nullopt, {.stride = {160}}));
  s.add(conv_transpose2d(s.leaf({1, 3, 5, 3}), s.leaf({3, 17, 3, 3}), s.leaf({17}),
                         {.stride = {2}, .padding = {1}, .output_padding = {1}}));
  s.add(conv_transpose1d(s.leaf({3, 17, 9}), s.leaf({17, 1, 4}), std::nullopt, {.stride = {3}}));
  s.expect();
}

TEST_F(SizesOnVulkan, of_reductions) {
  for (const std::int64_t size : {1, 3, 17, 65, 129, 257, 1025, 70001}) {
    SCOPED_TRACE(size);
    Sized s;
    const Tensor row = s.leaf({size}), column = s.leaf({size, 3}), rows = s.leaf({3, size});
    for (const Tensor& x : {row, rows}) {
      s.add(sum(x, {-1}));
      s.add(logsumexp(x, {-1}));
      s.add(amax(x, {-1}));
      s.result(argmin(x));
    }
    s.add(mean(column, {0}));
    s.add(var(column, {0}, {.unbiased = false}));
    s.result(argmax(column, 0));
    s.add(amin(column, {0, 1}));
    s.add(sum(column * transpose(rows)));
    if (size <= 1025) {
      s.add(prod(1.0 + 0.001 * column, {0}));
      s.add(cumsum(rows, 1));
      s.add(cumsum(column, 0, true));
      s.add(softmax(rows));
      s.add(log_softmax(column, 0));
      s.add(layer_norm(rows, s.leaf({size}), s.leaf({size})));
      s.add(rms_norm(rows));
    }
    s.expect();
  }
}

// Axes between others, with few and with many elements beside them.
TEST_F(SizesOnVulkan, of_reductions_between_other_axes) {
  Sized s;
  for (const Shape& shape :
       {Shape{3, 129, 2}, {2, 3, 65}, {65, 2, 3}, {1, 2049, 1}, {17, 17, 17}}) {
    const Tensor x = s.leaf(shape);
    s.add(sum(x, {1}));
    s.add(sum(x, {0, 2}));
    s.add(amax(x, {0}));
    s.add(logsumexp(x, {0, 1}));
    s.add(softmax(x, 1));
  }
  s.add(group_norm(s.leaf({3, 15, 7}), 5, s.leaf({15}), s.leaf({15})));
  const BatchNormResult norm = batch_norm_train(s.leaf({3, 5, 17}), s.leaf({5}), s.leaf({5}),
                                                s.number(0.5, {5}), s.number(1.5, {5}));
  s.add(norm.y);
  s.result(norm.running_var);
  s.expect();
}

TEST_F(SizesOnVulkan, of_attention) {
  struct Case {
    std::int64_t batch, heads, kv_heads, queries, keys, width;
    AttentionOptions options;
    bool masked = false;
  };
  const Case cases[] = {
      {1, 1, 1, 1, 1, 1, {}},
      {1, 3, 1, 17, 33, 3, {}},
      {2, 5, 5, 65, 65, 17, {.causal = true}},
      {1, 6, 3, 129, 129, 5, {.causal = true, .window = 7}},
      {3, 1, 1, 1, 129, 65, {}},
      {1, 2, 1, 33, 3, 129, {.scale = 0.3}},
      {1, 7, 7, 31, 64, 8, {}, true},
      {2, 3, 3, 16, 32, 1, {}, true},
      {1, 2, 2, 5, 9, 4, {.causal = true}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(
        fmt::format("{} heads, {} queries, {} keys of {}", c.heads, c.queries, c.keys, c.width));
    Sized s;
    const Tensor q = s.leaf({c.batch, c.heads, c.queries, c.width}),
                 k = s.leaf({c.batch, c.kv_heads, c.keys, c.width}),
                 v = s.leaf({c.batch, c.kv_heads, c.keys, c.width});
    if (c.masked)
      s.add(attention(q, k, v, c.options, s.leaf({c.queries, c.keys}, 3)));
    else
      s.add(attention(q, k, v, c.options));
    s.expect();
  }
}

TEST_F(SizesOnVulkan, of_searches_and_scatters) {
  for (const std::int64_t size : {1, 3, 65, 129, 1025}) {
    SCOPED_TRACE(size);
    Sized s;
    const Tensor x = s.leaf({3, size}), table = s.leaf({size, 5});
    const Topk top = topk(x, std::min<std::int64_t>(size, 7));
    s.add(top.values);
    s.result(top.indices);
    s.add(topk(x, std::min<std::int64_t>(size, 60), {.largest = false}).values);
    s.add(take(table, s.ints({17}, size)));
    s.add(gather(x, s.ints({3, 33}, size), 1));
    // Many to few places: the order counts.
    s.add(scatter_add(table, s.ints({257}, size), s.leaf({257, 5})));
    s.add(scatter_add_elements(x, s.ints({3, 65}, size), s.leaf({3, 65}), 1));
    s.add(scatter(x, s.ints({3, 65}, size), s.leaf({3, 65}), 1));
    s.result(one_hot(s.ints({7}, size), size));
    s.expect();
  }
}

// Mesa's lavapipe ends all loops of an invocation after 65535 rounds together, and says nothing.
TEST_F(SizesOnVulkan, that_a_driver_does_not_go_through_are_an_error) {
  const auto vector_of = [](const Graph& graph, const std::string& device) {
    Session session = build_inference_session(graph, {.device = device});
    for (const Leaf& leaf : graph.leaves(LeafKind::input))
      session.set_input(leaf.name, leaf.value.dtype() == i64
                                       ? tests::fill_int(leaf.name, leaf.value.shape(), 0, 5)
                                       : tests::fill(leaf.name, leaf.value.shape()));
    session.step();
    return session.output("y");
  };
  device::vulkan::note_arithmetic_of(test_device(), {});
  const device::vulkan::Arithmetic found =
      device::vulkan::test_arithmetic(*device::make_device(test_device()));
  // As qualification does, which other tests may have undone.
  device::vulkan::note_arithmetic_of(test_device(), found);
  const bool is_patient = found.finishes_loops;
  const auto expect = [&](const char* name, const Tensor& y, Graph& g, bool is_long) {
    SCOPED_TRACE(name);
    g.output("y", y);
    if (is_long && !is_patient) {
      EXPECT_THAT(tests::message_of<UnsupportedError>([&] { vector_of(g, test_device()); }),
                  testing::HasSubstr("a longer loop than the device's driver goes through"));
      return;
    }
    EXPECT_EQ(tests::differing({vector_of(g, "cpu")}, {vector_of(g, test_device())}, 1e-4), "");
  };
  for (const bool is_long : {false, true}) {
    SCOPED_TRACE(is_long);
    Graph scan, top, scatter, recurrent;
    expect("scan", cumsum(scan.input("x", {is_long ? 70001 : 60001})), scan, is_long);
    expect("top", topk(top.input("x", {3, is_long ? 1025 : 125}), is_long ? 1025 : 125).values, top,
           is_long);
    expect("scatter",
           scatter_add(scatter.constant(0.0, {5, 3}),
                       scatter.input("at", {is_long ? 66001 : 60001}, i64),
                       scatter.input("x", {is_long ? 66001 : 60001, 3})),
           scatter, is_long);
    const std::int64_t steps = is_long ? 1100 : 200, hidden = 64;
    expect("recurrent",
           rnn(recurrent.input("x", {steps, 1, hidden}),
               0.1 * recurrent.input("w", {hidden, hidden}), recurrent.constant(0.0, {1, hidden})),
           recurrent, is_long);
  }
  device::vulkan::note_arithmetic_of(test_device(), {});
}

TEST_F(SizesOnVulkan, of_products_over_many_elements) {
  Sized s;
  s.add(matmul(s.leaf({3, 200003}), s.leaf({200003, 2})));
  s.expect();
}

TEST_F(SizesOnVulkan, of_recurrent_layers) {
  Sized s;
  for (const std::int64_t hidden : {1, 3, 17, 65}) {
    const std::int64_t batch = hidden == 3 ? 5 : 1;
    const double bound = 0.5;
    s.add(lstm(s.leaf({4, batch, 4 * hidden}), s.leaf({hidden, 4 * hidden}, bound),
               s.leaf({batch, hidden}), s.leaf({batch, hidden}))
              .h);
    s.add(gru(s.leaf({3, batch, 3 * hidden}), s.leaf({hidden, 3 * hidden}, bound), s.leaf({hidden}),
              s.leaf({batch, hidden}), {.reverse = true}));
  }
  s.expect();
}

TEST_F(SizesOnVulkan, of_nothing) {
  Sized s;
  s.add(matmul(s.leaf({0, 5}), s.leaf({5, 3})));
  s.add(matmul(s.leaf({4, 0}), s.leaf({0, 3})));
  s.add(matmul(s.leaf({2, 3, 4}), s.leaf({2, 4, 0})));
  s.add(linear(s.leaf({3, 0}), s.leaf({2, 0}), s.leaf({2})));
  s.add(conv2d(s.leaf({0, 3, 5, 5}), s.leaf({2, 3, 3, 3}), s.leaf({2})));
  s.add(sum(s.leaf({0, 4}), {0}));
  s.add(sum(s.leaf({3, 0}), {1}));
  s.add(sum(s.leaf({0})));
  s.add(prod(s.leaf({2, 0}), {1}));
  s.add(logsumexp(s.leaf({0, 2}), {1}));
  s.add(softmax(s.leaf({3, 0})));
  s.add(layer_norm(s.leaf({0, 4})));
  s.add(attention(s.leaf({1, 2, 0, 4}), s.leaf({1, 2, 5, 4}), s.leaf({1, 2, 5, 4})));
  s.add(take(s.leaf({4, 3}), s.ints({0}, 4)));
  s.add(scatter_add(s.leaf({4, 3}), s.ints({0}, 4), s.leaf({0, 3})));
  s.add(concat({s.leaf({2, 0}), s.leaf({2, 3})}, 1));
  s.add(cumsum(s.leaf({0, 3}), 0));
  s.add(topk(s.leaf({0, 3}), 2).values);
  s.expect();
}

TEST_F(SizesOnVulkan, of_mixed_dtypes) {
  Sized s;
  for (const std::int64_t size : {1, 3, 65, 1029}) {
    const Tensor x = s.leaf({size, 3}, 4);
    for (const DType dtype : {i32, i64, DType::u8, DType::boolean}) {
      const Tensor whole = cast(stop_gradient(x * x), dtype);
      s.result(whole);
      s.add(cast(whole, f32) * x);
      s.result(cast(cast(whole, i64) * 3 + 1, f32));
    }
    const Tensor numbers = s.ints({size, 3}, 1 << 20);
    s.result(sum(numbers));
    s.result(numbers * numbers);
    s.result(cast(numbers, i32) * 7);
    s.add(where(lt(x, 0.5), x, square(x)));
  }
  s.expect();
}

// The interpreter holds them in double: the CPU has the truth.
TEST_F(SizesOnVulkan, of_halves) {
  Graph g;
  ref::Bindings bindings;
  for (const DType dtype : {f16, bf16})
    for (const std::int64_t size : {1, 3, 65, 1029}) {
      const std::string name = fmt::format("{}_{}", dtype_name(dtype), size);
      bindings.emplace(name, tests::fill(name, {size, 3}, 4));
      const Tensor stored = cast(g.input(name, {size, 3}), dtype);
      g.output(name, stored);
      g.output(name + "_back", cast(transpose(stored), f32) * 3.0);
      g.output(name + "_odd", cast(slice_axis(stored, 1, 1, 3), f32));
      g.output(name + "_whole", cast(stored, i32));
      g.output(name + "_joined", concat({stored, cast(cast(stored, f32) * 0.37, dtype)}, 1));
    }
  EXPECT_EQ(tests::differing_bits(tests::run_compiled(g, bindings, {.device = "cpu"}),
                                  tests::run_compiled(g, bindings, {.device = test_device()})),
            "");
}

}  // namespace
}  // namespace pantala::vulkan_tests
