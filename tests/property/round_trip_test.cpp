// The text form loses nothing: printing, parsing and printing again gives the same text, for every
// op of the table and for random graphs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/text.h"
#include "support/gradcheck.h"
#include "support/random_graph.h"

namespace pantala::tests {
namespace {

// Node by node the same graph, not only the same text.
void expect_round_trip(const Graph& graph, const std::string& what) {
  const std::string text = to_text(graph);
  const Graph parsed = parse_graph(text, "round_trip");
  ASSERT_EQ(to_text(parsed), text) << what;
  ASSERT_EQ(parsed.size(), graph.size()) << what;
  for (std::uint32_t id = 0; id < graph.size(); ++id) {
    const ir::Node &a = graph.data()->node(id), &b = parsed.data()->node(id);
    ASSERT_TRUE(ir::same_node(a, b) && a.results == b.results) << what << ", node " << id << "\n"
                                                               << text;
  }
  verify(parsed);
}

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, of_every_sample_and_of_its_gradients) {
  const ir::OpDef& op = ops::table().get(GetParam());
  const std::vector<ir::Sample> samples = op.samples();
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const Subject s = make_subject(op, samples[k]);
    expect_round_trip(s.graph, fmt::format("{}, sample {}", op.name, k));
    if (op.differentiable() && s.loss.valid() && op.name != "cast")
      expect_round_trip(differentiate(s.graph, s.loss, s.parameters).graph,
                        fmt::format("gradients of {}, sample {}", op.name, k));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ir::OpDef* op : sampled_ops()) result.push_back(op->name);
  return result;
}
const auto name_of = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Ops, RoundTrip, ::testing::ValuesIn(names()), name_of);

// A sugar op never becomes a node, so the graphs above do not hold its name; its text must parse to
// what building it gives.
TEST(RoundTripSugar, a_sugar_op_in_a_text_is_what_building_it_gives) {
  int checked = 0;
  for (const ir::OpDef* op : sampled_ops()) {
    if (!op->sugar) continue;
    for (const ir::Sample& sample : op->samples()) {
      Graph g;
      std::vector<Tensor> inputs;
      std::string text = "graph {\n", arguments, attributes;
      for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
        const ir::SampleInput& in = sample.inputs[k];
        inputs.push_back(g.input(fmt::format("x{}", k), in.shape, in.dtype));
        text += fmt::format("  %{} = input {{name=\"x{}\", dtype={}, shape={}}}\n", k, k,
                            dtype_name(in.dtype), in.shape.str());
        arguments += fmt::format("{}%{}", k == 0 ? "" : ", ", k);
      }
      for (std::size_t k = 0; k < sample.attrs.size(); ++k)
        attributes += fmt::format("{}{}={}", k == 0 ? "" : ", ", op->attrs[k].name,
                                  ir::to_text(sample.attrs[k]));
      text += fmt::format("  %y = {}({}) {{{}}}\n}}\n", op->name, arguments, attributes);
      g.data()->append(*op, inputs, sample.attrs, {});
      EXPECT_EQ(to_text(parse_graph(text)), to_text(g)) << text;
      ++checked;
    }
  }
  EXPECT_GT(checked, 20);
}

TEST(RoundTripRandom, graphs_and_their_gradients) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomGraph r = random_graph(seed, {.steps = 15, .differentiable = seed % 2 == 0});
    expect_round_trip(r.graph, fmt::format("seed {}", seed));
    if (seed % 2 == 0)
      expect_round_trip(differentiate(r.graph, r.loss, r.wrt).graph,
                        fmt::format("gradients of seed {}", seed));
    if (HasFatalFailure()) return;
  }
}

TEST(RoundTripLeaves, names_numbers_and_initialisers_keep_their_bits) {
  Graph g;
  g.input("a \"quoted\" \\ name\n\t\x01", {0, 1}, boolean);
  g.input("größe", {});
  g.scalar("tiny", 5e-324);
  g.scalar("huge", -1.7976931348623157e308);
  g.scalar("zero", -0.0);
  g.scalar("nan", NAN);
  g.scalar("infinite", -INFINITY);
  const Initializer all[] = {
      init::zeros(),
      init::ones(),
      init::constant(-0.0),
      init::uniform(-0.1, 1.0 / 3),
      init::normal(0, 0.02),
      init::truncated_normal(0, 1, -2.5, INFINITY),
      init::xavier_uniform(2),
      init::xavier_normal(),
      init::kaiming_uniform(std::sqrt(5)),
      init::kaiming_normal(),
      init::orthogonal(0.5),
      init::from_data(Literal::floats({2, 2}, {0.1, -0.0, NAN, 1e-310}, f16))};
  for (std::size_t k = 0; k < std::size(all); ++k)
    g.parameter(fmt::format("p{}", k), {2, 2}, all[k], f16);
  g.state("counter", {3}, init::from_data(Literal::ints({3}, {INT64_MIN, 0, INT64_MAX})), i64);
  g.constant(Literal::ints({2, 0}, {}, u8));
  g.constant(Literal::floats({3}, {INFINITY, -INFINITY, -NAN}, bf16));
  g.constant(-NAN, {2});
  g.constant(NAN, {2});
  expect_round_trip(g, "leaves");
}

}  // namespace
}  // namespace pantala::tests
