// Hash-consing: equal op, attributes and inputs are one node, and nothing else is.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "pantala/graph.h"
#include "pantala/ops.h"

namespace pantala {
namespace {

class HashConsing : public ::testing::Test {
 protected:
  Graph g;
  Tensor x = g.input("x", {4, 6});
  Tensor y = g.input("y", {4, 6});
};

TEST_F(HashConsing, equal_subexpressions_are_one_node) {
  const Tensor a = exp(x * y + 1.0);
  const std::size_t size = g.size();
  EXPECT_EQ(exp(x * y + 1.0), a);
  EXPECT_EQ(g.size(), size);
}

TEST_F(HashConsing, the_order_of_inputs_counts) {
  EXPECT_FALSE(x - y == y - x);
  EXPECT_FALSE(x + y == y + x);  // addition of floats in another order is another program
}

TEST_F(HashConsing, the_source_place_does_not) {
  const Tensor a = relu(x);
  const Tensor b = relu(x);
  EXPECT_EQ(a, b);
  ir::GraphData::Scope scope(*g.data(), {"net.cpp", 7, "fc1"});
  EXPECT_EQ(relu(x), a);
}

TEST_F(HashConsing, attributes_count) {
  EXPECT_FALSE(slice(x, {0, 0}, {4, 6}, {1, 2}) == slice(x, {0, 0}, {4, 6}, {1, 3}));
  EXPECT_FALSE(sum(x, {0}) == sum(x, {1}));
  EXPECT_FALSE(sum(x, {0}, true) == sum(x, {0}, false));
  EXPECT_FALSE(leaky_relu(x, 0.1) == leaky_relu(x, 0.2));
}

TEST_F(HashConsing, attributes_are_compared_in_their_normal_form) {
  EXPECT_EQ(sum(x, {-1}), sum(x, {1}));
  EXPECT_EQ(sum(x), sum(x, {0, 1}));
  EXPECT_EQ(slice(x, {0}, {100}), slice(x, {0, 0}, {4, 6}, {1, 1}));
}

TEST_F(HashConsing, minus_zero_is_not_zero) {
  EXPECT_FALSE(g.constant(0.0) == g.constant(-0.0));
  EXPECT_FALSE(leaky_relu(x, 0.0) == leaky_relu(x, -0.0));
  EXPECT_FALSE(g.constant(Literal::scalar(0.0)) == g.constant(Literal::scalar(-0.0)));
}

TEST_F(HashConsing, nan_is_one_value) {
  EXPECT_EQ(g.constant(NAN), g.constant(-NAN));
  EXPECT_EQ(leaky_relu(x, NAN), leaky_relu(x, -NAN));
}

TEST_F(HashConsing, constants_differ_by_value_shape_and_dtype) {
  const Tensor c = g.constant(2.0, {3});
  EXPECT_EQ(g.constant(2.0, {3}), c);
  EXPECT_FALSE(g.constant(2.5, {3}) == c);
  EXPECT_FALSE(g.constant(2.0, {3, 1}) == c);
  EXPECT_FALSE(g.constant(2.0, {3}, f64) == c);
  EXPECT_EQ(g.constant(Literal::floats({2}, {1, 2})), g.constant(Literal::floats({2}, {1, 2})));
  EXPECT_FALSE(g.constant(Literal::floats({2}, {1, 2})) ==
               g.constant(Literal::floats({2}, {2, 1})));
}

TEST_F(HashConsing, two_convolutions_that_differ_in_one_option_are_two) {
  const Tensor image = g.input("image", {1, 2, 8, 8}), w = g.parameter("w", {2, 2, 3, 3});
  const Tensor a = conv2d(image, w);
  EXPECT_EQ(conv2d(image, w), a);
  EXPECT_FALSE(conv2d(image, w, {}, {.stride = {2}}) == a);
  EXPECT_FALSE(conv2d(image, w, {}, {.padding = {1}}) == a);
  EXPECT_FALSE(conv2d(image, w, {}, {.dilation = {2}}) == a);
}

TEST_F(HashConsing, two_dropouts_stay_two) {
  const Tensor a = dropout(x, 0.5), b = dropout(x, 0.5);
  EXPECT_FALSE(a == b);
  Graph copy = g;  // and a third one in a copy takes a number of its own
  const Tensor c = dropout(copy.leaf("x"), 0.5);
  EXPECT_NE(c.id(), a.id());
  EXPECT_NE(c.id(), b.id());
}

TEST_F(HashConsing, hashes_and_equality_agree) {
  exp(x), sum(x, {0}), slice(x, {1}, {3}), g.constant(NAN), x* y;
  const auto& nodes = g.data()->nodes();
  for (const ir::Node& a : nodes)
    for (const ir::Node& b : nodes) {
      EXPECT_EQ(ir::same_node(a, b), &a == &b);
      if (ir::same_node(a, b)) { EXPECT_EQ(ir::hash_node(a), ir::hash_node(b)); }
    }
}

}  // namespace
}  // namespace pantala
