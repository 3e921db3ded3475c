// topk, grid_sample and recurrent ops: ties, NaN, gradients, borders, shape rules. Their
// values stand against PyTorch in tests/fixtures/layers.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::topk_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Topk, of_equals_the_first_comes_first_and_nan_is_the_largest) {
  Graph g;
  const Tensor x = g.input("x", {6});
  const ref::Bindings values{{"x", floats({6}, {2, NAN, 5, 2, 5, -1})}};
  EXPECT_THAT(value_of(g, topk(x, 4).indices, values), ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(value_of(g, topk(x, 6, {.largest = false}).indices, values),
              ElementsAre(5, 0, 3, 2, 4, 1));
}

TEST(Topk, the_gradient_goes_to_what_was_taken) {
  Graph g;
  const Tensor x = g.input("x", {5}), weights = g.input("w", {2});
  const Tensor loss = sum(topk(x, 2).values * weights);
  EXPECT_THAT(gradients_of(g, loss, {x},
                           {{"x", floats({5}, {1, 9, 3, 8, 2})}, {"w", floats({2}, {10, 20})}})[0],
              ElementsAre(0, 10, 0, 20, 0));
}

TEST(Topk, takes_no_more_than_there_is) {
  Graph g;
  const Tensor x = g.input("x", {3, 4});
  EXPECT_EQ(topk(x, 0).values.type().str(), "f32[3,0]");
  EXPECT_THAT(message_of<TypeError>([&] { topk(x, 5); }),
              HasSubstr("k must be within the 4 elements of axis 1, got 5"));
  EXPECT_THAT(message_of<TypeError>([&] { topk(g.input("b", {2}, boolean), 1); }),
              HasSubstr("needs numbers"));
}

TEST(GridSample, the_corners_are_centres_or_edges) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 2}), grid = g.input("g", {1, 1, 2, 2});
  const ref::Bindings values{{"x", floats({1, 1, 2, 2}, {1, 2, 3, 4})},
                             {"g", floats({1, 1, 2, 2}, {-1, -1, 1, 1})}};
  EXPECT_THAT(value_of(g, grid_sample(x, grid, {.align_corners = true}), values),
              ElementsAre(1, 4));
  EXPECT_THAT(value_of(g, grid_sample(x, grid), values), ElementsAre(0.25, 1));
  EXPECT_THAT(value_of(g, grid_sample(x, grid, {.padding = GridPadding::border}), values),
              ElementsAre(1, 4));
}

TEST(GridSample, positions_that_are_no_numbers_read_nothing) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 2}), grid = g.input("g", {1, 1, 3, 2});
  const ref::Bindings values{{"x", floats({1, 1, 2, 2}, {1, 2, 3, 4})},
                             {"g", floats({1, 1, 3, 2}, {NAN, 0, INFINITY, 0, 1e30, 1e30})}};
  EXPECT_THAT(value_of(g, grid_sample(x, grid), values), ElementsAre(0, 0, 0));
  EXPECT_THAT(value_of(g, grid_sample(x, grid, {.mode = GridMode::nearest}), values),
              ElementsAre(0, 0, 0));
}

TEST(GridSample, a_grid_of_another_shape_is_refused) {
  Graph g;
  const Tensor x = g.input("x", {2, 1, 2, 2});
  EXPECT_THAT(message_of<TypeError>([&] { grid_sample(x, g.input("g", {1, 3, 3, 2})); }),
              HasSubstr("grid must be [batch of x, height, width, 2]"));
  EXPECT_THAT(message_of<TypeError>([&] { grid_sample(x, g.input("h", {2, 3, 3, 3})); }),
              HasSubstr("grid must be [batch of x, height, width, 2]"));
}

TEST(RecurrentOps, shapes_that_do_not_fit_are_refused) {
  Graph g;
  const Tensor x = g.input("x", {3, 2, 8}), w = g.input("w", {2, 8}), h = g.input("h", {2, 2});
  EXPECT_EQ(lstm(x, w, h, h).c.type().str(), "f32[3,2,2]");
  EXPECT_THAT(message_of<TypeError>([&] { gru(x, w, g.input("b", {2}), h); }), HasSubstr("gru"));
  EXPECT_THAT(message_of<TypeError>([&] { lstm(x, w, h, g.input("c", {2, 3})); }),
              HasSubstr("lstm"));
  EXPECT_THAT(message_of<TypeError>([&] { lstm(g.input("e", {0, 2, 8}), w, h, h); }),
              HasSubstr("needs at least one step and one hidden unit"));
}

TEST(RecurrentOps, only_definitions_have_a_limit_of_steps) {
  Graph g;
  const Tensor h = g.input("h", {1, 1});
  const Tensor y = rnn(g.input("x", {1 << 20, 1, 1}), g.input("w", {1, 1}), h);
  const Gradients first = differentiate(g, sum(y), {h});
  EXPECT_THAT(message_of<TypeError>(
                  [&] { differentiate(first.graph, sum(first.gradients[0]), {first.at(h)}); }),
              HasSubstr("1048576 steps of a recurrent layer are too many to unroll"));
}

}  // namespace
}  // namespace pantala::tests::topk_test
