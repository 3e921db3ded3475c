// The verifier: a graph built by append() passes; every kind of damage is found. The damage is done
// through const_cast and past the checks of Graph, because nothing else offers a way to do it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/graph.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using ::testing::HasSubstr;
using tests::message_of;

// %0 x, %1 p, %2 mul, %3 sum (axis 1), with an output and an update.
Graph sample() {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), p = g.parameter("p", {2, 3});
  const Tensor y = x * p;
  g.output("loss", sum(y, {1}));
  g.update(p, y);
  return g;
}

std::string found(const std::function<void(std::vector<ir::Node*>&, ir::GraphData&)>& damage) {
  Graph g = sample();
  verify(g);
  std::vector<ir::Node*> nodes;
  for (const ir::Node& node : g.data()->nodes()) nodes.push_back(const_cast<ir::Node*>(&node));
  damage(nodes, *g.data());
  return message_of<InternalError>([&] { verify(g); });
}

TEST(Verify, accepts_a_graph_that_was_built) {
  verify(sample());
  verify(Graph());
}

TEST(Verify, finds_a_node_without_an_op) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[2]->op = nullptr; }),
            "verify: node %2: has no op");
}

TEST(Verify, finds_sugar) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->op = &ops::table().get("transpose"); }),
            "verify: node %3: transpose is sugar and must have been expanded");
}

TEST(Verify, finds_an_input_behind_its_use) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[2]->inputs[1].node = 3; }),
            "verify: node %2: reads %3, which is not before it");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[2]->inputs[1].node = 2; }),
            "verify: node %2: reads %2, which is not before it");
}

TEST(Verify, finds_a_result_that_does_not_exist) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[2]->inputs[1].result = 1; }),
            "verify: node %2 reads %1:1, which does not exist");
}

TEST(Verify, finds_a_wrong_number_of_inputs) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[2]->inputs.pop_back(); }),
            "verify: node %2: mul has 1 inputs");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->inputs.push_back({0, 0}); }),
            "verify: node %3: sum has 2 inputs");
}

TEST(Verify, finds_wrong_attributes) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->attrs.pop_back(); }),
            "verify: node %3: sum has 1 attributes instead of 2");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->attrs[1] = std::int64_t{0}; }),
            "verify: node %3: sum: attribute keepdims is not a bool");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->attrs[0] = ir::Ints{-1}; }),
            "verify: node %3: sum: attribute axes is not in its normal form");
}

TEST(Verify, finds_types_that_do_not_follow) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->results[0].shape = {3}; }),
            "verify: node %3: sum: the shape rule gives other types than the node has");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->results.push_back({f32, {}}); }),
            "verify: node %3: sum: the shape rule gives other types than the node has");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[3]->attrs[0] = ir::Ints{7}; }),
            "verify: node %3: sum: axis 7 is out of range [-2, 2) (x f32[2,3])");
}

TEST(Verify, finds_names_used_twice) {
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[1]->attrs[0] = std::string("x"); }),
            "verify: node %1: name 'x' is used twice");
  EXPECT_EQ(found([](auto& nodes, auto&) { nodes[1]->attrs[0] = std::string("q"); }),
            "verify: node %1: is not found by its name 'q'");
  EXPECT_EQ(found([](auto&, auto& g) { g.add_output("loss", g.outputs()[0].second); }),
            "verify: output 'loss' is named twice");
}

TEST(Verify, finds_equal_nodes) {
  Graph g;
  const Tensor x = g.input("x", {2}), a = exp(x), b = log(x);
  const_cast<ir::Node&>(g.data()->node(b.id().node)).op = g.data()->node(a.id().node).op;
  EXPECT_EQ(message_of<InternalError>([&] { verify(g); }), "verify: node %2: is the same as %1");
}

// What verify() finds if the only update is another one.
std::string found_with_update(std::optional<std::uint32_t> leaf, std::optional<ValueId> value) {
  return found([&](auto&, auto& g) {
    const auto [old_leaf, old_value] = g.updates()[0];
    g.clear_updates();
    g.add_update(leaf.value_or(old_leaf), value.value_or(old_value));
  });
}

TEST(Verify, finds_broken_outputs_and_updates) {
  EXPECT_EQ(found([](auto&, auto& g) {
              g.clear_outputs();
              g.add_output("loss", {9, 0});
            }),
            "verify: output 'loss' reads %9:0, which does not exist");
  EXPECT_EQ(found_with_update({}, ValueId{9, 0}),
            "verify: an update reads %9:0, which does not exist");
  EXPECT_EQ(found_with_update(9, {}), "verify: an update reads %9:0, which does not exist");
  EXPECT_EQ(found_with_update(0, {}), "verify: node %0: is updated, but is no parameter or state");
  EXPECT_EQ(found_with_update({}, ValueId{3, 0}), "verify: node %1: is updated with another type");
  EXPECT_EQ(
      found([](auto&, auto& g) { g.add_update(g.updates()[0].first, g.updates()[0].second); }),
      "verify: node %1: is updated twice");
}

}  // namespace
}  // namespace pantala
