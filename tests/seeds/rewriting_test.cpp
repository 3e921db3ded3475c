// Section 1 of the checklist: what the optimiser does and may not do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "pantala/compile.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/compiled.h"
#include "support/random_graph.h"

namespace pantala::tests::rewriting_test {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

// x [4,784], w1 [784,128], b1, ReLU, w2 [128,10], labels.
struct TwoLayers {
  Graph graph;
  Tensor loss;
  TwoLayers() {
    const Tensor x = graph.input("x", {4, 784}), labels = graph.input("labels", {4}, i64);
    const Tensor w1 = graph.parameter("w1", {784, 128}, init::normal(0, 0.05)),
                 b1 = graph.parameter("b1", {128}),
                 w2 = graph.parameter("w2", {128, 10}, init::normal(0, 0.1));
    loss = cross_entropy(matmul(relu(matmul(x, w1) + b1), w2), labels);
  }
};

TEST(Rewriting, T34_the_report_names_the_rules_that_fired_with_their_counts) {
  const TwoLayers m;
  const Report report =
      compile_training_graph(m.graph, m.loss, {.optimizer = optim::adam()}).report;
  ASSERT_FALSE(report.rules.empty());
  for (const Report::Rule& rule : report.rules) EXPECT_GT(rule.count, 0) << rule.name;
  // A division by the host's bias correction per parameter.
  const auto divide = std::ranges::find(report.rules, "divide-by-host-number", &Report::Rule::name);
  ASSERT_NE(divide, report.rules.end());
  EXPECT_EQ(divide->count, 3);
  EXPECT_GT(report.egraph_nodes, report.nodes_before);
  EXPECT_EQ(report.stop_reason, "saturated");
  EXPECT_EQ(std::ranges::count(report.candidates, true, &Report::Candidate::chosen), 1);
  EXPECT_EQ(report.candidates.at(0).name, "given");
  // Bias and ReLU ride inside of the product.
  EXPECT_THAT(report.launches,
              Contains(Field(&Report::Launch::ops, HasSubstr("contract, add, maximum"))));
}

std::vector<Literal> first_values(const Graph& graph) {
  Random r(1);
  ref::Bindings bindings;
  const Type type = graph.leaf("x").type();
  Literal x(type), u(type);
  for (double& value : x.f()) value = static_cast<double>(r.between(-400, 400)) / 100;
  for (double& value : u.f()) value = static_cast<double>(r.between(-400, 400)) / 100;
  bindings.emplace("x", x);
  if (graph.outputs().size() > 1) bindings.emplace("u", u);
  return run_compiled(graph, bindings, {.level = search::Level::egraph});
}

TEST(Rewriting, T39_written_out_activations_compile_like_their_ops) {
  const auto launches = [](const Graph& graph) {
    return compile_graph(graph, {.level = search::Level::egraph}).plan.launches.size();
  };
  const auto of = [](const auto& body, bool two) {
    Graph g;
    const Tensor x = g.input("x", {8, 32});
    const Tensor u = two ? g.input("u", {8, 32}) : x;
    g.output("y", body(x, u));
    if (two) g.output("u", u * 2);
    return g;
  };
  const Graph silu_op = of([](Tensor x, Tensor) { return silu(x); }, false),
              silu_out = of([](Tensor x, Tensor) { return x * sigmoid(x); }, false),
              swiglu_op = of([](Tensor x, Tensor u) { return swiglu(x, u); }, true),
              swiglu_out = of([](Tensor x, Tensor u) { return silu(x) * u; }, true);
  EXPECT_EQ(launches(silu_op), launches(silu_out));
  EXPECT_EQ(launches(swiglu_op), launches(swiglu_out));
  EXPECT_EQ(differing_bits(first_values(silu_op), first_values(silu_out)), "");
  EXPECT_EQ(differing_bits(first_values(swiglu_op), first_values(swiglu_out)), "");
}

TEST(Rewriting, T39_a_product_and_an_addend_are_one_kernel) {
  for (const bool product_too : {false, true}) {
    Graph g;
    const Tensor x = g.input("x", {16, 24}), w = g.input("w", {24, 32}), c = g.input("c", {16, 32});
    const Tensor product = matmul(x, w);
    g.output("y", product + c);
    if (product_too) g.output("product", product);
    const plan::CompiledStep step = compile_graph(g, {.level = search::Level::egraph});
    EXPECT_EQ(step.plan.launches.size(), 1u);
    Random r(3);
    ref::Bindings bindings;
    for (const char* name : {"x", "w", "c"}) {
      Literal value(g.leaf(name).type());
      for (double& v : value.f()) v = static_cast<double>(r.between(-3, 3));
      bindings.emplace(name, std::move(value));
    }
    EXPECT_EQ(differing(ref::evaluate(g, results_of(g), bindings),
                        run_compiled(g, step, bindings, {}), 0),
              "");
  }
}

// A group norm of x with an activation behind it; everything that it reads is an input.
struct NormCase {
  Shape x;
  std::int64_t groups = 1;
  bool weight = true, bias = true;
};
std::vector<NormCase> norm_cases() {
  return {{{2, 8, 5, 7}, 4},
          {{2, 32, 8, 8}, 8},
          {{3, 6}, 2},
          {{2, 8, 3, 4, 5}, 2},
          {{1, 16, 16, 16}, 16},
          {{4, 12, 33}, 3},
          {{2, 8, 5, 7}, 4, false},
          {{2, 8, 6, 4}, 1, true, false},
          {{2, 6, 3, 3}, 2, false, false}};
}
Graph norm_graph(const NormCase& one, const std::function<Tensor(const Tensor&)>& behind) {
  Graph g;
  const Tensor x = g.input("x", one.x);
  std::optional<Tensor> weight, bias;
  if (one.weight) weight = g.input("weight", {one.x[1]});
  if (one.bias) bias = g.input("bias", {one.x[1]});
  g.output("y", behind(group_norm(x, one.groups, weight, bias)));
  return g;
}
ref::Bindings norm_inputs(const Graph& graph) {
  Random r(5);
  ref::Bindings bindings;
  for (const char* name : {"x", "weight", "bias"}) {
    if (!graph.data()->find_leaf(name)) continue;
    Literal value(graph.leaf(name).type());
    for (double& v : value.f()) v = static_cast<double>(r.between(-300, 300)) / 100;
    bindings.emplace(name, std::move(value));
  }
  return bindings;
}

TEST(Rewriting, T38_group_norm_and_silu_are_one_kernel) {
  for (const NormCase& one : norm_cases()) {
    SCOPED_TRACE(one.x.str());
    const Graph both = norm_graph(one, [](const Tensor& y) { return silu(y); });
    const ref::Bindings inputs = norm_inputs(both);
    const plan::CompiledStep step = compile_graph(both, {.level = search::Level::egraph});
    EXPECT_EQ(step.plan.launches.size(), 1u);
    const std::vector<Literal> fused = run_compiled(both, step, inputs);

    const Graph norm = norm_graph(one, [](const Tensor& y) { return y * 1; });
    Graph activation;
    activation.output("y", silu(activation.input("x", one.x)));
    const std::vector<Literal> first = run_compiled(norm, inputs);
    EXPECT_EQ(differing(run_compiled(activation, {{"x", first[0]}}), fused, 1e-5), "");
    EXPECT_EQ(differing_bits(run_compiled(both, inputs, {.fuse = false}), fused), "");
    EXPECT_EQ(differing_bits(run_compiled(both, inputs, {.device = "kir"}), fused), "");
    EXPECT_EQ(differing(ref::evaluate(both, results_of(both), inputs), fused, 1e-5), "");
  }
}

// Nothing about it is a matter of SiLU, or of the shape of the result.
TEST(Rewriting, T38_what_stands_behind_a_norm_is_made_by_its_kernel) {
  using Behind = std::function<Tensor(const Tensor&)>;
  const NormCase one{{2, 8, 6, 4}, 4};
  for (const Behind& behind : std::vector<Behind>{
           [](const Tensor& y) { return gelu(y); }, [](const Tensor& y) { return relu(y) + 1; },
           [](const Tensor& y) { return silu(reshape(y, {4, 4, 24})); },
           [](const Tensor& y) { return silu(reshape(y, {16, 3, 8})); }}) {
    const Graph graph = norm_graph(one, behind);
    const ref::Bindings inputs = norm_inputs(graph);
    const plan::CompiledStep step = compile_graph(graph, {.level = search::Level::egraph});
    EXPECT_EQ(step.plan.launches.size(), 1u);
    EXPECT_EQ(differing_bits(run_compiled(graph, inputs, {.fuse = false}),
                             run_compiled(graph, step, inputs)),
              "");
  }
}

// With channels last around convolutions, the rows of the norm do not lie one behind the other.
TEST(Rewriting, T38_norms_between_convolutions_have_the_bits_of_single_ops) {
  for (const std::int64_t size : {5, 8}) {
    Graph g;
    const Tensor x = g.input("x", {2, 3, size, size}), w = g.input("w", {32, 3, 3, 3}),
                 v = g.input("v", {4, 32, 3, 3}), weight = g.input("weight", {32}),
                 bias = g.input("bias", {32});
    const Tensor y = conv2d(x, w, {}, {.padding = {1}});
    g.output("y", conv2d(silu(group_norm(y, 2, weight, bias)), v, {}, {.padding = {1}}));
    ref::Bindings inputs = norm_inputs(g);
    Random r(6);
    for (const char* name : {"w", "v"}) {
      Literal value(g.leaf(name).type());
      for (double& e : value.f()) e = static_cast<double>(r.between(-100, 100)) / 100;
      inputs.emplace(name, std::move(value));
    }
    EXPECT_EQ(differing_bits(run_compiled(g, inputs, {.fuse = false}), run_compiled(g, inputs)),
              "");
    EXPECT_EQ(differing_bits(run_compiled(g, inputs, {.device = "kir"}), run_compiled(g, inputs)),
              "");
  }
}

// The parameters after 20 steps, and the losses on the way.
std::vector<Literal> trained(const CompileOptions& options,
                             decltype(&build_session) build = build_session) {
  const TwoLayers m;
  Session session = build(m.graph, m.loss, options, {});
  Random r(7);
  std::vector<Literal> results;
  for (int step = 0; step < 20; ++step) {
    Literal x(m.graph.leaf("x").type()), labels(m.graph.leaf("labels").type());
    for (double& value : x.f()) value = static_cast<double>(r.between(-100, 100)) / 64;
    for (std::int64_t& label : labels.i()) label = r.below(10);
    session.set_input("x", x);
    session.set_input("labels", labels);
    session.step();
    results.push_back(Literal::scalar(session.loss(), f32));
  }
  for (const char* name : {"w1", "b1", "w2"}) results.push_back(session.parameter(name));
  return results;
}

TEST(Rewriting, T40_strict_steps_have_the_bits_of_unoptimized_ones) {
  CompileOptions options{.optimizer = optim::adam(0.01)};
  const TwoLayers m;
  EXPECT_TRUE(build_session_unoptimized(m.graph, m.loss, options).report().rules.empty());
  const std::vector<Literal> plain = trained(options, build_session_unoptimized);
  options.numerics = Numerics::strict;
  EXPECT_EQ(differing_bits(plain, trained(options)), "");
  options.rewrite = Rewrite::none;
  EXPECT_EQ(differing_bits(plain, trained(options)), "");
}

}  // namespace
}  // namespace pantala::tests::rewriting_test
