// Every rule of the table, by samples of its left side: it fires, and what it makes is equal to
// what it was made from, as the rule promises. A rule without samples fails.
//  - small integers through the interpreter are equal, with no tolerance where both sides compute
//    the same numbers, and to a few roundings in double where they compute exponentials or roots;
//  - what keeps derivatives has the same gradients;
//  - what promises bits has the same bits in f32, as machine code and as interpreted kernels, also
//    for zeros of both signs, infinities, NaN, subnormals and the largest numbers;
//  - a condition is needed: there is a sample that it refuses and that is wrong without it.
#include "rewrite/rules/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ir/graph_data.h"
#include "ops/conv.h"
#include "ops/face.h"
#include "ops/pool.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/extraction.h"
#include "rewrite/saturation.h"
#include "rule_samples.h"
#include "support/compiled.h"
#include "support/random_graph.h"

namespace pantala::rewrite {

Shape some_shape(tests::Random& r, int most_axes) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t k = r.between(0, most_axes); k > 0; --k)
    sizes.push_back(r.chance(0.1) ? 0 : r.pick(std::vector<std::int64_t>{1, 2, 3, 5, 8, 17}));
  return Shape(sizes);
}

namespace {

using tests::Random;

using Sample = RuleSample;
using Make = std::function<Graph(Random&)>;

// A graph of one variable.
Make of_one(std::function<Tensor(Graph&, const Tensor&)> left) {
  return [left](Random& r) {
    Graph g;
    const Tensor x = g.input("x", some_shape(r));
    g.output("y", left(g, x));
    return g;
  };
}
Tensor filled(Graph& g, double value, const Tensor& like) {
  return g.constant(value, like.shape(), like.dtype());
}

struct PoolSizes {
  std::int64_t batch, channels, height, width;
  IntList kernel;
  PoolOptions options;
};
PoolSizes some_pool(Random& r) {
  PoolSizes n{r.between(1, 2), r.between(1, 3), r.between(4, 9), r.between(4, 9), {2}, {}};
  if (r.chance(0.5)) n.kernel = {3, 2};
  if (r.chance(0.5)) n.options.stride = {1, 2};
  if (r.chance(0.5)) n.options.padding = {1};
  n.options.ceil_mode = r.chance(0.3);
  return n;
}
Tensor pool_gradient(const Tensor& g, const Tensor& positions, const PoolSizes& n) {
  ir::AttrValues attrs = ir::to_values(op::MaxPool2dGrad::Attrs{
      .input_sizes = {n.height, n.width},
      .window = {.kernel = ir::Ints(n.kernel.begin(), n.kernel.end()),
                 .stride = ir::Ints(n.options.stride.begin(), n.options.stride.end()),
                 .padding = ir::Ints(n.options.padding.begin(), n.options.padding.end()),
                 .ceil_mode = n.options.ceil_mode}});
  return ops::apply(ops::def<op::MaxPool2dGrad>(), {g, positions}, attrs)[0];
}

Graph masked_pool_gradient(Random& r) {
  const PoolSizes n = some_pool(r);
  Graph graph;
  const Tensor y = graph.input("x", {n.batch, n.channels, n.height, n.width});
  const auto [pooled, positions] = max_pool2d_with_indices(y, n.kernel, n.options);
  const Tensor g = graph.input("g", pooled.shape());
  graph.output("y", where(le(y, 0), 0, pool_gradient(g, positions, n)));
  return graph;
}

Graph summed_pool_gradient(Random& r, const IntList& axes) {
  const PoolSizes n = some_pool(r);
  Graph graph;
  const Tensor y = graph.input("x", {n.batch, n.channels, n.height, n.width});
  const auto [pooled, positions] = max_pool2d_with_indices(y, n.kernel, n.options);
  const Tensor g = graph.input("g", pooled.shape());
  graph.output("y", sum(pool_gradient(g, positions, n), axes, r.chance(0.5)));
  return graph;
}

Graph divided_by_host_number(Random& r) {
  Graph g;
  Shape shape = some_shape(r);
  if (shape.rank() == 0) shape = {3};  // without axes nothing is broadcast
  const Tensor x = g.input("x", shape);
  const Tensor s = cast(g.scalar("s", 4), f32);
  g.output("y", x / broadcast_to(s, x.shape()));
  return g;
}

// A convolution with a kernel of this size, or one of its gradients.
enum class Direction { forward, input, weight };
Make convolution(Direction direction, std::int64_t kernel) {
  return [=](Random& r) {
    Graph g;
    const Shape images{r.between(1, 3), r.between(1, 9), r.between(kernel, kernel + 4),
                       r.between(kernel, kernel + 4)};
    const std::int64_t out = r.between(1, 9), padding = r.between(0, kernel - 1);
    const op::ConvAttrs window{.stride = {1, 1}, .padding = {padding, padding}, .dilation = {1, 1}};
    const std::int64_t change = 2 * padding + 1 - kernel;
    const Shape made{images[0], out, images[2] + change, images[3] + change};
    const Shape weight{out, images[1], kernel, kernel};
    const auto results = [&]() -> std::vector<Tensor> {
      const Tensor x = g.input("x", direction == Direction::input ? made : images);
      switch (direction) {
        case Direction::forward:
          return ops::apply(ops::def<op::Convolution>(), {x, g.input("w", weight)},
                            ir::to_values(window));
        case Direction::input:
          return ops::apply(ops::def<op::ConvolutionInputGrad>(), {x, g.input("w", weight)},
                            ir::to_values(op::ConvolutionInputGrad::Attrs{
                                .input_sizes = {images[2], images[3]}, .window = window}));
        case Direction::weight:
          break;
      }
      return ops::apply(ops::def<op::ConvolutionWeightGrad>(), {x, g.input("g", made)},
                        ir::to_values(op::ConvolutionWeightGrad::Attrs{
                            .kernel_sizes = {kernel, kernel}, .window = window}));
    };
    g.output("y", results()[0]);
    return g;
  };
}

// The gradient of two slices of rows of nine, with something between them and behind, and of
// something else beside.
Make padded_sum(std::int64_t second_begins, bool has_other) {
  return [=](Random& r) {
    Graph g;
    const std::int64_t rows = r.between(1, 4), width = 9;
    const auto padded = [&](const char* name, std::int64_t begin, std::int64_t size) {
      return pad(g.input(name, {rows, size}), {0, begin}, {0, width - begin - size});
    };
    std::vector<Tensor> terms = {padded("k", second_begins, 3), padded("x", 0, 4)};
    if (has_other) terms.insert(terms.begin() + r.below(3), g.input("l", {rows, width}));
    g.output("y", add_n(terms));
    return g;
  };
}

std::vector<Sample> step_samples() {
  const auto number = [](double value, auto apply) {
    return of_one([=](Graph& g, const Tensor& x) { return apply(x, filled(g, value, x)); });
  };
  const auto add = [](const Tensor& x, const Tensor& k) { return x + k; };
  const auto subtract = [](const Tensor& x, const Tensor& k) { return x - k; };
  const auto multiply = [](const Tensor& x, const Tensor& k) { return x * k; };
  const auto times = [](const Tensor& x, const Tensor& k) { return k * x; };
  const auto divide = [](const Tensor& x, const Tensor& k) { return x / k; };
  return {
      {"add-negative-zero", number(-0.0, add)},
      {"add-zero", number(0, add)},
      {"subtract-zero", number(0, subtract)},
      {"multiply-by-one", number(1, multiply)},
      {"one-times", number(1, times)},
      {"divide-by-one", number(1, divide)},
      {"negate-twice", of_one([](Graph&, const Tensor& x) { return -(-x); })},
      {"divide-by-host-number", divided_by_host_number},
      {"relu-mask-above-pool", masked_pool_gradient},
      {"sum-of-pool-gradient", [](Random& r) { return summed_pool_gradient(r, {2, 3}); }},
      {"sum-of-pool-gradient", [](Random& r) { return summed_pool_gradient(r, {0, 2, 3}); }},
      {"sum-of-pool-gradient", [](Random& r) { return summed_pool_gradient(r, {0, 3}); }, true},
      {"choice-of-difference", of_one([](Graph& g, const Tensor& x) {
         const Tensor c = g.input("c", x.shape(), boolean);
         return where(c, x - filled(g, 3, x), x);
       })},
      {"choice-of-difference", of_one([](Graph& g, const Tensor& x) {
         const Tensor c = g.input("c", x.shape(), boolean), k = g.input("k", x.shape());
         return where(c, x - k, x);
       })},
      {"choice-of-same", of_one([](Graph& g, const Tensor& x) {
         return where(g.input("c", x.shape(), boolean), x, x);
       })},
      {"sum-of-disjoint-pads", padded_sum(4, false)},
      {"sum-of-disjoint-pads", padded_sum(5, false)},
      {"sum-of-disjoint-pads", padded_sum(6, true)},
      {"sum-of-disjoint-pads", padded_sum(2, false), true},
      {"convolution-as-product", convolution(Direction::forward, 1)},
      {"convolution-input-gradient-as-product", convolution(Direction::input, 1)},
      {"convolution-weight-gradient-as-product", convolution(Direction::weight, 1)},
      {"convolution-by-winograd4", convolution(Direction::forward, 3)},
      {"convolution-input-gradient-by-winograd4", convolution(Direction::input, 3)},
      {"convolution-weight-gradient-by-winograd4", convolution(Direction::weight, 3)},
      {"convolution-by-winograd2", convolution(Direction::forward, 3)},
      {"convolution-input-gradient-by-winograd2", convolution(Direction::input, 3)},
      {"convolution-weight-gradient-by-winograd2", convolution(Direction::weight, 3)},
  };
}

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> both = step_samples();
    for (Sample& sample : canonical_samples()) both.push_back(std::move(sample));
    return both;
  }();
  return all;
}

const Rule& rule_named(const std::string& name) {
  for (const Rule& rule : all_rules())
    if (rule.name == name) return rule;
  throw InternalError("there is no rule " + name);
}

// What the rule makes of the graph; nothing if it does not fire.
std::optional<Graph> rewritten(const Graph& graph, const Rule& rule) {
  const Saturation all(graph, {rule}, {.rounds = 2});
  if (all.applications().empty()) return std::nullopt;
  const std::vector<bool> wanted(all.applications().size(), true);
  return to_graph(all.joint(), selection_with(all.joint(), all.applications(), wanted));
}

enum class Numbers { integers, special };
ref::Bindings bindings_of(const Graph& graph, Random& r, Numbers numbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {0.0,
                                       -0.0,
                                       1,
                                       -1,
                                       kInfinity,
                                       -kInfinity,
                                       NAN,
                                       0x1p-140,
                                       -0x1p-149,
                                       0x1.fffffep127,
                                       -0x1.fffffep127,
                                       0.1,
                                       -2.5};
  ref::Bindings bindings;
  for (const ir::Node& node : graph.data()->nodes()) {
    if (ir::leaf_kind(*node.op) != LeafKind::input) continue;
    const Type& type = node.results[0];
    Literal value(type);
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      const double number = numbers == Numbers::integers
                                ? static_cast<double>(r.between(-4, 4))
                                : static_cast<double>(static_cast<float>(r.pick(special)));
      if (is_float(type.dtype))
        value.f()[static_cast<std::size_t>(k)] = number;
      else
        value.i()[static_cast<std::size_t>(k)] =
            type.dtype == boolean ? r.below(2) : r.between(0, 4);
    }
    bindings.emplace(ir::leaf_name(node), std::move(value));
  }
  return bindings;
}

bool has_leaf(const Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.data()->nodes(), [&](const ir::Node& node) {
    return ir::leaf_kind(*node.op) && ir::leaf_name(node) == name;
  });
}

// What a rewritten graph does not need any more is left out.
std::vector<Literal> exactly(const Graph& graph, ref::Bindings bindings) {
  std::erase_if(bindings, [&](const auto& one) { return !has_leaf(graph, one.first); });
  return ref::evaluate(graph, tests::results_of(graph), bindings);
}

constexpr int kTimes = 12;

TEST(RewriteRules, have_samples_and_names_of_their_own) {
  std::set<std::string> names;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands there twice";
    bool fits = false, refused = false;
    for (const Sample& sample : samples())
      if (sample.rule == rule.name) (sample.refused ? refused : fits) = true;
    EXPECT_TRUE(fits) << rule.name << " has no sample";
    EXPECT_TRUE(refused || !rule.when) << rule.name << " has no sample that its condition refuses";
  }
  for (const Sample& sample : samples()) EXPECT_TRUE(names.contains(sample.rule)) << sample.rule;
}

TEST(RewriteRules, are_equal_on_small_integers) {
  for (const Sample& sample : samples()) {
    if (sample.refused) continue;
    for (int seed = 0; seed < kTimes; ++seed) {
      Random r(static_cast<std::uint64_t>(seed));
      const Graph given = sample.make(r);
      SCOPED_TRACE(fmt::format("{}, seed {}:\n{}", sample.rule, seed, to_text(given)));
      const std::optional<Graph> made = rewritten(given, rule_named(sample.rule));
      ASSERT_TRUE(made.has_value()) << "it does not fire";
      const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
      EXPECT_EQ(
          tests::differing(exactly(given, bindings), exactly(*made, bindings), sample.tolerance),
          "")
          << to_text(*made);
    }
  }
}

// The gradients of a weighted sum of the output with respect to these inputs; zeros for those that
// the graph does not need.
std::vector<Literal> gradients_of(const Graph& graph, const std::vector<Leaf>& inputs,
                                  ref::Bindings bindings) {
  Graph weighted = graph;
  const Tensor y = weighted.output("y");
  const Tensor weights = cos(iota_beside(y, y.shape(), y.rank() - 1, f64));
  const Tensor loss = sum(cast(y, f64) * weights);
  std::vector<Literal> gradients;
  std::erase_if(bindings, [&](const auto& one) { return !has_leaf(graph, one.first); });
  for (const Leaf& input : inputs) {
    const std::optional<Tensor> leaf = weighted.find(input.name);
    if (!leaf) {
      gradients.emplace_back(input.value.type());
      continue;
    }
    const Gradients found = differentiate(weighted, loss, {*leaf});
    gradients.push_back(ref::evaluate(found.graph, found.gradients, bindings)[0]);
  }
  return gradients;
}

TEST(RewriteRules, keep_the_derivatives_that_they_promise) {
  for (const Sample& sample : samples()) {
    const Rule& rule = rule_named(sample.rule);
    if (sample.refused || !rule.keeps_derivatives) continue;
    for (int seed = 0; seed < 3; ++seed) {
      Random r(static_cast<std::uint64_t>(seed));
      const Graph given = sample.make(r);
      if (!is_float(given.output("y").dtype()) || given.output("y").rank() == 0) continue;
      SCOPED_TRACE(fmt::format("{}, seed {}:\n{}", sample.rule, seed, to_text(given)));
      const std::optional<Graph> found = rewritten(given, rule);
      ASSERT_TRUE(found.has_value()) << "it does not fire";
      const Graph& made = *found;
      const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
      std::vector<Leaf> inputs = given.leaves(LeafKind::input);
      std::erase_if(inputs, [](const Leaf& leaf) { return !is_float(leaf.value.dtype()); });
      EXPECT_EQ(tests::differing(gradients_of(given, inputs, bindings),
                                 gradients_of(made, inputs, bindings), 1e-10),
                "")
          << to_text(made);
    }
  }
}

TEST(RewriteRules, keep_the_bits_that_they_promise) {
  for (const Sample& sample : samples()) {
    const Rule& rule = rule_named(sample.rule);
    if (sample.refused || rule.promise > Promise::order) continue;
    for (int seed = 0; seed < kTimes; ++seed) {
      Random r(static_cast<std::uint64_t>(seed));
      const Graph given = sample.make(r);
      SCOPED_TRACE(fmt::format("{}, seed {}:\n{}", sample.rule, seed, to_text(given)));
      const std::optional<Graph> found = rewritten(given, rule);
      ASSERT_TRUE(found.has_value()) << "it does not fire";
      const Graph& made = *found;
      for (const char* device : {"cpu", "kir"}) {
        const tests::CompiledRun how{.device = device};
        for (const Numbers numbers : {Numbers::special, Numbers::integers}) {
          const ref::Bindings bindings = bindings_of(given, r, numbers);
          EXPECT_EQ(tests::differing_bits(tests::run_compiled(given, bindings, how),
                                          tests::run_compiled(made, bindings, how)),
                    "")
              << device << "\n"
              << to_text(made);
        }
      }
    }
  }
}

// Without its condition a rule says something false, or something that is no graph.
bool is_wrong_without_condition(const Sample& sample, int seed) {
  Random r(static_cast<std::uint64_t>(seed));
  const Graph given = sample.make(r);
  Rule rule = rule_named(sample.rule);
  EXPECT_EQ(rewritten(given, rule).has_value(), false) << sample.rule << ": it fires";
  rule.when = {};
  try {
    const std::optional<Graph> made = rewritten(given, rule);
    if (!made) return false;
    const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
    return !tests::differing(exactly(given, bindings), exactly(*made, bindings), 0).empty();
  } catch (const std::exception&) { return true; }
}

TEST(RewriteRules, need_their_conditions) {
  for (const Sample& sample : samples()) {
    if (!sample.refused) continue;
    int wrong = 0;
    for (int seed = 0; seed < kTimes; ++seed) wrong += is_wrong_without_condition(sample, seed);
    EXPECT_GT(wrong, 0) << sample.rule << " is right without its condition";
  }
}

}  // namespace
}  // namespace pantala::rewrite
