// What must hold for any graph: the verifier accepts it and its gradients, and it evaluates to
// literals of its types.
#include "support/random_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/text.h"

namespace pantala::tests {
namespace {

TEST(RandomGraphs, are_valid_and_so_are_their_gradients) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomGraph r = random_graph(seed);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ASSERT_NO_THROW(verify(r.graph));
    const Gradients d = differentiate(r.graph, r.loss, r.wrt);
    ASSERT_NO_THROW(verify(d.graph));
    ASSERT_EQ(d.gradients.size(), r.wrt.size());
    for (std::size_t k = 0; k < r.wrt.size(); ++k)
      ASSERT_EQ(d.gradients[k].type(), r.wrt[k].type());
  }
}

TEST(RandomGraphs, evaluate_to_their_types_with_a_finite_loss) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGraph r = random_graph(seed, {.steps = 10, .differentiable = seed % 3 != 0});
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::vector<Tensor> outputs;
    for (const auto& [name, t] : r.graph.outputs()) outputs.push_back(t);
    const std::vector<Literal> values = ref::evaluate(r.graph, outputs, r.bindings);
    for (std::size_t k = 0; k < outputs.size(); ++k) ASSERT_EQ(values[k].type(), outputs[k].type());
    ASSERT_TRUE(std::isfinite(values.back().at(0))) << to_text(r.graph);
  }
}

TEST(RandomGraphs, are_the_same_for_the_same_seed) {
  EXPECT_EQ(to_text(random_graph(5).graph), to_text(random_graph(5).graph));
  EXPECT_NE(to_text(random_graph(5).graph), to_text(random_graph(6).graph));
}

// The generator reaches most of the table: what it never draws, it never tests.
TEST(RandomGraphs, hold_most_ops_of_the_table) {
  std::set<std::string> seen, possible;
  for (const ir::OpDef* op : sampled_ops())
    if (!op->sugar) possible.insert(op->name);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGraph r = random_graph(seed, {.steps = 20, .differentiable = false});
    for (const ir::Node& node : r.graph.data()->nodes()) seen.insert(node.op->name);
  }
  for (const std::string& name : possible) EXPECT_TRUE(seen.contains(name)) << name;
}

}  // namespace
}  // namespace pantala::tests
