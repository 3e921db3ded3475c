// Flattening leaves primitives and pointwise ops only, and changes no value.
#include "ref/flatten.h"

#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "support/gradcheck.h"

namespace pantala::ref {
namespace {

TEST(Flatten, keeps_only_what_is_needed_and_the_names_of_leaves) {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), p = g.parameter("p", {2, 3});
  exp(p);
  const Tensor y = mean(x);
  const Flat flat = flatten(g, {y.id()});
  EXPECT_TRUE(flat.graph.find("x").has_value());
  EXPECT_FALSE(flat.graph.find("p").has_value());
  verify(flat.graph);
}

TEST(Flatten, expands_definitions_within_definitions) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Tensor y = var(x, {1});  // of mean
  const Flat flat = flatten(g, {y.id()});
  for (const ir::Node& node : flat.graph.data()->nodes())
    EXPECT_TRUE(node.op->leaf || node.op->eval || node.op->scalar) << node.op->name;
  EXPECT_EQ(flat.graph.value(flat.values[0]).type(), y.type());
}

TEST(Flatten, an_input_given_twice_is_one_value) {
  Graph g;
  const Tensor x = g.input("x", {2, 2});
  const Tensor y = prod(concat({x, x}), {0});
  EXPECT_EQ(evaluate(g, {y}, {{"x", Literal::floats({2, 2}, {1, 2, 3, 4})}})[0],
            Literal::floats({2}, {9, 64}));
}

TEST(Flatten, a_wanted_leaf_or_a_value_wanted_twice) {
  Graph g;
  const Tensor x = g.input("x", {1}), y = mean(x);
  const Flat flat = flatten(g, {y.id(), x.id(), y.id()});
  ASSERT_EQ(flat.values.size(), 3u);
  EXPECT_EQ(flat.values[0], flat.values[2]);
  EXPECT_TRUE(flatten(g, {}).values.empty());
}

// Every composite of the table, over all its samples: the flat graph holds primitives only, is
// valid and has the same types.
TEST(Flatten, every_op_of_the_table_comes_down_to_primitives) {
  for (const ir::OpDef* op : ops::table().all()) {
    if (!op->samples) continue;
    for (const ir::Sample& sample : op->samples()) {
      const tests::Subject s = tests::make_subject(*op, sample);
      std::vector<ValueId> wanted;
      for (const Tensor& t : s.results) wanted.push_back(t.id());
      const Flat flat = flatten(s.graph, wanted);
      verify(flat.graph);
      for (const ir::Node& node : flat.graph.data()->nodes())
        EXPECT_TRUE(node.op->leaf || node.op->eval || node.op->scalar)
            << op->name << " -> " << node.op->name;
      for (std::size_t k = 0; k < wanted.size(); ++k)
        EXPECT_EQ(flat.graph.value(flat.values[k]).type(), s.results[k].type()) << op->name;
    }
  }
}

}  // namespace
}  // namespace pantala::ref
