// Layers of the same structure are the same code, whatever numbers belong to them: how many kernels
// a stack of layers has does not depend on how many layers there are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "pantala/autodiff.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "support/compiled.h"
#include "support/fill.h"

namespace pantala::schedule::shared_kernels_test {
namespace {

constexpr std::int64_t kSequence = 5, kBatch = 2, kWidth = 8, kHeads = 2;

using Layer = std::function<Tensor(Graph&, const Tensor&, const std::string& name)>;

Graph stack_of(const Layer& layer, int layers) {
  Graph g;
  Tensor x = g.input("x", {kSequence, kBatch, kWidth});
  for (int k = 0; k < layers; ++k) x = layer(g, x, fmt::format("layer{}", k));
  g.output("y", x);
  return g;
}

// With the gradients of all parameters.
Graph training_stack_of(const Layer& layer, int layers) {
  Graph g = stack_of(layer, layers);
  const Tensor loss = mean(square(g.output("y")));
  std::vector<Tensor> parameters;
  for (const Leaf& leaf : g.leaves(LeafKind::parameter)) parameters.push_back(leaf.value);
  Gradients d = differentiate(g, loss, parameters);
  for (std::size_t k = 0; k < parameters.size(); ++k)
    d.graph.output(fmt::format("d{}", k), d.gradients[k]);
  return std::move(d.graph);
}

// Of an archetype, or all of them.
std::size_t kernels_of(const Graph& graph, const std::string& archetype = "") {
  const Machine machine{cpu::archetypes(), {.vector_bytes = 32}};
  const Program program = schedule(lower(graph, machine.archetypes), machine, {});
  return static_cast<std::size_t>(std::ranges::count_if(
      program.kernels,
      [&](const kir::Kernel& kernel) { return kernel.name.starts_with(archetype); }));
}

void expect_no_more_kernels_for_more_layers(const Layer& layer) {
  EXPECT_EQ(kernels_of(stack_of(layer, 6)), kernels_of(stack_of(layer, 3)));
}

Tensor number(Graph& g, std::int64_t value) { return g.constant(Literal::integer(value)); }

// As PyTorch's exporter writes nn.MultiheadAttention: one product for queries, keys and values, of
// which a Gather takes each.
Tensor exported_attention(Graph& g, const Tensor& x, const std::string& name) {
  Tensor all =
      reshape(nn::linear(name + ".in_proj", x, 3 * kWidth), {kSequence, kBatch, 3, kWidth});
  all = squeeze(transpose(unsqueeze(all, 0), 0, -2), -2);
  const std::int64_t width = kWidth / kHeads;
  const auto part = [&](std::int64_t which) {
    const Tensor one = take(all, number(g, which), 0);
    return transpose(reshape(one, {kSequence, kBatch * kHeads, width}), 0, 1);
  };
  const Tensor q = part(0), k = part(1), v = part(2);
  const Tensor weights = softmax(matmul(q * 0.5, transpose(k)), -1);
  const Tensor mixed = reshape(transpose(matmul(weights, v), 0, 1), {kSequence, kBatch, kWidth});
  return x + nn::linear(name + ".out_proj", mixed, kWidth);
}

TEST(SharedKernels, exported_attention_has_as_many_for_any_number_of_layers) {
  expect_no_more_kernels_for_more_layers(exported_attention);
}

TEST(SharedKernels, exported_attention_with_gradients_has_as_many_for_any_number_of_layers) {
  EXPECT_EQ(kernels_of(training_stack_of(exported_attention, 6)),
            kernels_of(training_stack_of(exported_attention, 3)));
}

// Queries, keys, values and what the heads give are brought into order. The index of a part of the
// product is not affine here, so that the place where the part begins is a number in the code and
// keys and values are no unit together.
TEST(SharedKernels, exported_attention_has_few_maps) {
  EXPECT_EQ(kernels_of(stack_of(exported_attention, 3), "map"), 4U);
}

TEST(SharedKernels, exported_attention_computes_what_the_interpreter_does) {
  const Graph graph = stack_of(exported_attention, 2);
  std::vector<double> numbers;
  for (int k = 0; k < kSequence * kBatch * kWidth; ++k)
    numbers.push_back((k * 37 % 64 - 32) / 32.0);
  const ref::Bindings bindings{{"x", Literal::floats({kSequence, kBatch, kWidth}, numbers)}};
  const auto expected = ref::evaluate(graph, tests::results_of(graph), bindings);
  EXPECT_EQ(tests::differing(expected, tests::run_compiled(graph, bindings), 1e-5), "");
}

// Every layer has an index tensor of its own; its numbers are known, so that nothing is checked.
TEST(SharedKernels, gathers_by_constants_have_as_many_for_any_number_of_layers) {
  expect_no_more_kernels_for_more_layers([](Graph& g, const Tensor& x, const std::string& name) {
    const std::int64_t first = name.back() - '0';
    const Tensor order =
        g.constant(Literal::ints({kSequence}, {(first + 4) % 5, (first + 2) % 5, first % 5, 1, 0}));
    return tanh(take(x, order, 0)) + nn::linear(name, x, kWidth);
  });
}

// The kernels check the indices, and each layer's report is its own.
TEST(SharedKernels, gathers_by_computed_indices_have_as_many_for_any_number_of_layers) {
  expect_no_more_kernels_for_more_layers([](Graph&, const Tensor& x, const std::string& name) {
    const Tensor scores = slice_axis(slice_axis(x, 1, 0, 1), 2, 0, kSequence);
    const Tensor order = reshape(argmax(scores, 2), {kSequence});
    return tanh(take(x, order, 0)) + nn::linear(name, x, kWidth);
  });
}

TEST(SharedKernels, dropout_has_as_many_for_any_number_of_layers) {
  expect_no_more_kernels_for_more_layers([](Graph&, const Tensor& x, const std::string& name) {
    return nn::dropout(nn::linear(name, x, kWidth), 0.25);
  });
}

// A choice that the graph makes by a number of its own is no part of what layers share.
TEST(SharedKernels, rows_that_constants_choose_are_each_layers_own) {
  Graph g;
  const Tensor x = g.input("x", {4, 3, 5});
  for (std::int64_t k = 0; k < 4; ++k)
    g.output(fmt::format("y{}", k), tanh(take(x, g.constant(Literal::ints({1}, {k})), 0)));
  const ref::Bindings bindings{{"x", tests::fill("x", {4, 3, 5}, 1)}};
  EXPECT_EQ(tests::differing(ref::evaluate(g, tests::results_of(g), bindings),
                             tests::run_compiled(g, bindings), 1e-5),
            "");
}

// Blocks of other sizes need other scratch, and nothing else.
TEST(SharedKernels, products_that_differ_in_their_scratch_are_one_with_room_for_all) {
  const Machine machine{cpu::archetypes(), {.vector_bytes = 32}};
  const std::vector<std::int64_t> depths{1960, 2020, 1900};
  const auto products = [](const std::vector<std::int64_t>& some) {
    Graph g;
    for (const std::int64_t k : some)
      g.output(fmt::format("y{}", k), matmul(g.input(fmt::format("a{}", k), {48, k}),
                                             g.input(fmt::format("b{}", k), {k, 64})));
    return g;
  };
  const auto scheduled = [&](const Graph& g) {
    return schedule(lower(g, machine.archetypes), machine, {});
  };
  std::set<std::int64_t> alone;
  for (const std::int64_t k : depths)
    alone.insert(scheduled(products({k})).kernels.at(0).scratch_bytes());
  EXPECT_EQ(alone.size(), depths.size());
  const Graph all = products(depths);
  const Program program = scheduled(all);
  ASSERT_EQ(program.kernels.size(), 1U);
  EXPECT_EQ(program.kernels[0].scratch_bytes(), *alone.rbegin());
  ref::Bindings bindings;
  for (const std::int64_t k : depths) {
    bindings.emplace(fmt::format("a{}", k), tests::fill(fmt::format("a{}", k), {48, k}, 1));
    bindings.emplace(fmt::format("b{}", k), tests::fill(fmt::format("b{}", k), {k, 64}, 1));
  }
  const std::vector<Literal> expected = ref::evaluate(all, tests::results_of(all), bindings);
  for (const char* device : {"cpu", "kir"})
    EXPECT_EQ(
        tests::differing(expected, tests::run_compiled(all, bindings, {.device = device}), 1e-4),
        "");
}

// Kernels that are built once for all of them get each layer's buffers, numbers of the host, starts
// of slices and memory for partial sums.
TEST(SharedKernels, layers_that_are_alike_keep_their_own_numbers) {
  constexpr int kLayers = 5;
  Graph g;
  ref::Bindings bindings;
  const std::vector<Tensor> others{g.scalar("other0", 2), g.scalar("other1", 3)};
  for (int k = 0; k < kLayers; ++k) {
    const Tensor x = g.input(fmt::format("x{}", k), {2, 20000});
    const Tensor rate = g.scalar(fmt::format("rate{}", k), 0.5 + k),
                 &other = others[static_cast<std::size_t>(k % 2)];
    const Tensor y = x * cast(rate, f32) + cast(other * other, f32);
    g.output(fmt::format("part{}", k), tanh(slice_axis(y, 1, 10 * k, 100)));
    g.output(fmt::format("sum{}", k), sum(y, {1}));
    bindings.emplace(fmt::format("x{}", k), tests::fill(fmt::format("x{}", k), {2, 20000}, 1));
  }
  const std::vector<Literal> expected = ref::evaluate(g, tests::results_of(g), bindings);
  for (const char* device : {"cpu", "kir"})
    EXPECT_EQ(
        tests::differing(expected, tests::run_compiled(g, bindings, {.device = device}), 1e-5), "");
}

}  // namespace
}  // namespace pantala::schedule::shared_kernels_test
