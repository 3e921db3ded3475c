// Graphs: leaves and their names, outputs, updates, copies and moves.
#include "pantala/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::message_of;

std::vector<std::string> names(const std::vector<Leaf>& leaves) {
  std::vector<std::string> result;
  for (const Leaf& leaf : leaves) result.push_back(leaf.name);
  return result;
}

TEST(Graph, leaves_are_listed_in_order_and_by_kind) {
  Graph g;
  g.input("x", {2, 3});
  g.parameter("w", {3}, init::ones(), f64);
  g.scalar("lr", 0.1);
  g.state("m", {}, init::zeros(), i64);
  g.constant(1.0);
  EXPECT_THAT(names(g.leaves()), ElementsAre("x", "w", "lr", "m"));
  EXPECT_THAT(names(g.leaves(LeafKind::parameter)), ElementsAre("w"));
  EXPECT_EQ(g.leaf("w").type(), (Type{f64, {3}}));
  EXPECT_EQ(g.leaf("lr").type(), (Type{f64, {}}));
  EXPECT_EQ(g.leaf("m").dtype(), i64);
  EXPECT_EQ(g.size(), 5u);
}

TEST(Graph, an_unknown_leaf_or_output_is_answered_with_the_nearest) {
  Graph g;
  g.output("loss", g.parameter("fc1.weight", {2}));
  EXPECT_EQ(g.find("fc1.wieght"), std::nullopt);
  EXPECT_EQ(message_of<TypeError>([&] { g.leaf("fc1.wieght"); }),
            "the graph has no leaf named 'fc1.wieght'; did you mean 'fc1.weight'?");
  EXPECT_EQ(message_of<TypeError>([&] { g.output("los"); }),
            "the graph has no output named 'los'; did you mean 'loss'?");
  EXPECT_EQ(message_of<TypeError>([&] { g.output("accuracy"); }),
            "the graph has no output named 'accuracy'");
}

TEST(Graph, a_name_used_twice_changes_nothing) {
  Graph g;
  g.input("x", {2});
  EXPECT_THAT(message_of<TypeError>([&] { g.parameter("x", {2}); }),
              HasSubstr("the name 'x' is used twice, first by input (graph_test.cpp:"));
  EXPECT_EQ(g.size(), 1u);
  EXPECT_THAT(names(g.leaves()), ElementsAre("x"));
  EXPECT_EQ(g.parameter("y", {2}).id().node, 1u);
}

TEST(Graph, names_of_leaves_and_outputs_are_apart) {
  Graph g;
  const Tensor x = g.input("x", {2});
  g.output("x", x);
  EXPECT_EQ(g.output("x"), g.leaf("x"));
}

TEST(Graph, outputs_keep_their_order_and_may_share_a_value) {
  Graph g;
  const Tensor x = g.input("x", {2});
  g.output("b", x);
  g.output("a", x);
  ASSERT_EQ(g.outputs().size(), 2u);
  EXPECT_EQ(g.outputs()[0].first, "b");
  EXPECT_EQ(g.outputs()[1].first, "a");
  EXPECT_EQ(g.outputs()[0].second, x);
}

TEST(Graph, outputs_are_checked) {
  Graph g, other;
  const Tensor x = g.input("x", {2}), foreign = other.input("x", {2});
  g.output("y", x);
  EXPECT_THAT(message_of<TypeError>([&] { g.output("y", x); }),
              HasSubstr("the name 'y' is used twice"));
  EXPECT_THAT(message_of<TypeError>([&] { g.output("", x); }), HasSubstr("a name cannot be empty"));
  EXPECT_THAT(message_of<TypeError>([&] { g.output("z", foreign); }),
              HasSubstr("the value belongs to another graph"));
  EXPECT_THAT(message_of<TypeError>([&] { g.output("z", Tensor()); }),
              HasSubstr("the value is an empty handle"));
  EXPECT_EQ(g.outputs().size(), 1u);
}

TEST(Graph, updates_are_for_parameters_and_states_once_with_their_type) {
  Graph g;
  const Tensor x = g.input("x", {2}), p = g.parameter("p", {2}), s = g.state("s", {2}),
               h = g.scalar("h", 1);
  g.update(p, p + x);
  g.update(s, x);
  EXPECT_EQ(g.updates().size(), 2u);
  EXPECT_EQ(g.updates()[0].first, p);
  EXPECT_THAT(message_of<TypeError>([&] { g.update(p, x); }), HasSubstr("'p' is updated twice"));
  EXPECT_THAT(message_of<TypeError>([&] { g.update(x, x); }),
              HasSubstr("only a parameter or a state can be updated, not the result of input"));
  EXPECT_THAT(message_of<TypeError>([&] { g.update(h, h); }),
              HasSubstr("not the result of scalar"));
  EXPECT_THAT(message_of<TypeError>([&] { g.update(g.state("t", {3}), x); }),
              HasSubstr("'t' is f32[3], its new value is f32[2]"));
  EXPECT_THAT(message_of<TypeError>([&] { g.update(g.state("u", {2}, init::zeros(), f64), x); }),
              HasSubstr("'u' is f64[2], its new value is f32[2]"));
}

TEST(Graph, a_copy_keeps_ids_and_goes_its_own_way) {
  Graph g;
  const Tensor x = g.input("x", {2}), y = relu(x);
  g.output("y", y);
  Graph copy = g;
  EXPECT_EQ(to_text(copy), to_text(g));
  EXPECT_FALSE(copy.value(y.id()) == y);  // a handle of the copy is not one of the original
  EXPECT_EQ(copy.value(y.id()).type(), y.type());
  EXPECT_EQ(relu(copy.leaf("x")).id(), y.id());  // hash-consing works on in the copy
  copy.output("z", exp(copy.value(y.id())));
  EXPECT_EQ(copy.size(), 3u);
  EXPECT_EQ(g.size(), 2u);
  g = copy;
  EXPECT_EQ(g.size(), 3u);
  EXPECT_THROW(copy.leaf("x") + g.leaf("x"), TypeError);
}

TEST(Graph, handles_survive_a_move) {
  Graph g;
  const Tensor x = g.input("x", {2});
  Graph moved = std::move(g);
  moved.output("y", relu(x));
  EXPECT_EQ(moved.leaf("x"), x);
  EXPECT_EQ(x.shape(), (Shape{2}));
}

TEST(Graph, handles_survive_the_graph) {
  Tensor x;
  {
    Graph g;
    x = g.input("x", {2, 3});
  }
  EXPECT_EQ(relu(x).type(), (Type{f32, {2, 3}}));
}

TEST(Graph, types_stay_where_they_are_while_the_graph_grows) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Type& type = x.type();
  Tensor y = x;
  for (int k = 0; k < 1000; ++k) y = y + static_cast<double>(k);
  EXPECT_EQ(&x.type(), &type);
  EXPECT_EQ(type, (Type{f32, {2, 3}}));
}

TEST(Graph, value_checks_its_id) {
  Graph g;
  g.input("x", {2});
  EXPECT_EQ(message_of<TypeError>([&] { g.value({1, 0}); }), "the graph has no value %1:0");
  EXPECT_EQ(message_of<TypeError>([&] { g.value({0, 1}); }), "the graph has no value %0:1");
}

TEST(Graph, random_counters_are_made_once) {
  Graph g;
  EXPECT_EQ(g.rng_seed(), g.rng_seed());
  EXPECT_EQ(g.rng_draw().type(), (Type{i64, {}}));
  EXPECT_THAT(names(g.leaves(LeafKind::state)), ElementsAre("rng.seed", "rng.draw"));
}

TEST(Tensor, sizes_by_axis) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 5});
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-1), 5);
  EXPECT_EQ(x.numel(), 30);
  EXPECT_EQ(message_of<TypeError>([&] { x.dim(3); }), "axis 3 is out of range for f32[2,3,5]");
  EXPECT_EQ(message_of<TypeError>([&] { x.dim(-4); }), "axis -4 is out of range for f32[2,3,5]");
}

TEST(Tensor, an_empty_handle_has_no_type) {
  EXPECT_FALSE(Tensor().valid());
  EXPECT_EQ(message_of<TypeError>([] { Tensor().shape(); }), "an empty tensor handle has no type");
}

TEST(Operand, an_empty_handle_is_not_the_number_0) {
  Graph g;
  const Tensor x = g.input("x", {2});
  EXPECT_THAT(message_of<TypeError>([&] { x + Tensor(); }),
              HasSubstr("input 1 is an empty handle"));
  EXPECT_THAT(message_of<TypeError>([&] { relu(Tensor()); }),
              HasSubstr("input 0 is an empty handle"));
  EXPECT_THAT(message_of<TypeError>([&] { reshape(Tensor(), {1}); }),
              HasSubstr("a tensor is needed here"));
  EXPECT_EQ(g.size(), 1u);
}

TEST(Operand, numbers_take_the_dtype_of_the_tensor_beside_them) {
  Graph g;
  EXPECT_EQ((g.input("a", {2}, f16) * 0.5).dtype(), f16);
  EXPECT_EQ((3 - g.input("b", {2}, i32)).dtype(), i32);
  EXPECT_THAT(message_of<TypeError>([&] { g.leaf("b") + 0.5; }),
              HasSubstr("the number 0.5 does not fit the dtype of i32[2]"));
  EXPECT_THAT(message_of<TypeError>([&] { g.leaf("b") + 1e300; }),
              HasSubstr("the number 1e+300 does not fit the dtype of i32[2]"));
  EXPECT_THAT(message_of<TypeError>([&] { g.leaf("b") + NAN; }),
              HasSubstr("the number nan does not fit the dtype of i32[2]"));
}

TEST(Graph, with_other_outputs_is_a_copy_with_the_same_nodes_and_updates) {
  Graph g;
  const Tensor p = g.parameter("p", {2}), y = p * 2.0;
  g.output("y", y);
  g.update(p, y);
  const Graph other = g.with_outputs({{"z", p}, {"twice", y}});
  EXPECT_EQ(other.size(), g.size());
  EXPECT_EQ(other.output("twice"), other.value(y.id()));
  EXPECT_EQ(other.outputs().size(), 2u);
  EXPECT_EQ(other.updates().size(), 1u);
  EXPECT_EQ(g.output("y"), y);
  EXPECT_EQ(g.outputs().size(), 1u);
  // Handles to the graph that it is a copy of are as good.
  EXPECT_EQ(other.with_outputs({{"y", y}}).outputs().size(), 1u);
  // Of one that nobody else needs nothing is copied: handles stay.
  const Graph moved = std::move(g).with_outputs({{"last", y}});
  EXPECT_EQ(moved.output("last"), y);
}

TEST(Graph, other_outputs_must_be_values_of_the_graph) {
  Graph g, h;
  g.input("x", {2});
  const Tensor y = h.input("y", {3});
  EXPECT_EQ(message_of<TypeError>([&] { g.with_outputs({{"y", y}}); }),
            "the output 'y' is not a value of this graph");
  EXPECT_EQ(message_of<TypeError>([&] { g.with_outputs({{"y", y * 2.0}}); }),
            "the output 'y' is not a value of this graph");
  EXPECT_THAT(message_of<TypeError>([&] { g.with_outputs({{"y", Tensor()}}); }),
              HasSubstr("the value is an empty handle"));
  EXPECT_FALSE(g.has(y));
  EXPECT_FALSE(g.has(Tensor()));
  EXPECT_TRUE(h.has(y));
  EXPECT_TRUE(Graph(h).has(y));
}

TEST(Graph, without_updates_is_a_copy_with_the_same_outputs) {
  Graph g;
  const Tensor p = g.parameter("p", {2}), y = p * 2.0;
  g.output("y", y);
  g.update(p, y);
  const Graph other = g.without_updates();
  EXPECT_TRUE(other.updates().empty());
  EXPECT_EQ(other.outputs().size(), 1u);
  EXPECT_EQ(g.updates().size(), 1u);
  EXPECT_EQ(std::move(g).without_updates().output("y"), y);
}

// Who may only look at a graph gets at no part of it that could be changed.
TEST(Graph, a_constant_graph_gives_constant_storage) {
  static_assert(std::is_same_v<decltype(std::declval<const Graph&>().data()),
                               std::shared_ptr<const ir::GraphData>>);
}

TEST(Graph, what_was_moved_from_is_an_empty_graph) {
  Graph g;
  const Tensor x = g.input("x", {2});
  const Graph moved = std::move(g);
  EXPECT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved.leaf("x"), x);
  EXPECT_EQ(g.size(), 0u);  // NOLINT(bugprone-use-after-move)
  g.input("x", {3});
  EXPECT_EQ(g.size(), 1u);
}

}  // namespace
}  // namespace pantala
