// Pools and upsampling: sizes, ties and NaN of max pool and where its gradient goes, divisors of
// average pool, ceil_mode, edges.
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::pool_test {
namespace {

using Values = std::vector<double>;

TEST(MaxPool, sizes_follow_the_rule) {
  Graph g;
  const Tensor x = g.input("x", {2, 64, 112, 112});
  EXPECT_EQ(max_pool2d(x, {3}, {.stride = {2}, .padding = {1}}).shape(), (Shape{2, 64, 56, 56}));
  EXPECT_EQ(max_pool2d(x, {2}).shape(), (Shape{2, 64, 56, 56}));
  EXPECT_EQ(max_pool2d(x, {2, 3}, {.stride = {2, 3}}).shape(), (Shape{2, 64, 56, 37}));
}

TEST(MaxPool, ceil_mode_keeps_a_last_window_that_starts_inside) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 5, 4});
  EXPECT_EQ(max_pool2d(x, {2}, {.ceil_mode = true}).shape(), (Shape{1, 1, 3, 2}));
  // The third window along the width would start at 4 - 0, behind the input: it is dropped.
  EXPECT_EQ(max_pool2d(x, {1}, {.stride = {3, 4}, .ceil_mode = true}).shape(), (Shape{1, 1, 2, 1}));
  EXPECT_EQ(max_pool2d(x, {2}, {.stride = {2}, .padding = {1}, .ceil_mode = true}).shape(),
            (Shape{1, 1, 3, 3}));
  // A window larger than the plane is kept if it is the first.
  EXPECT_EQ(
      max_pool2d(g.input("small", {1, 1, 2, 2}), {3}, {.stride = {2}, .ceil_mode = true}).shape(),
      (Shape{1, 1, 1, 1}));
}

TEST(MaxPool, gives_the_maximum_and_its_position_in_the_plane) {
  Graph g;
  const auto [y, indices] = max_pool2d_with_indices(g.input("x", {1, 2, 2, 4}), {2});
  EXPECT_EQ(indices.dtype(), i32);
  const ref::Bindings values{
      {"x", floats({1, 2, 2, 4}, {1, 2, 8, 3, 4, 3, 5, 6, -1, -2, -3, -4, -5, -6, -7, -0.5})}};
  EXPECT_EQ(value_of(g, y, values), (Values{4, 8, -1, -0.5}));
  EXPECT_EQ(value_of(g, indices, values), (Values{4, 2, 0, 7}));
}

TEST(MaxPool, padding_is_never_chosen) {
  Graph g;
  const auto [y, indices] =
      max_pool2d_with_indices(g.input("x", {1, 1, 2, 2}), {2}, {.stride = {2}, .padding = {1}});
  const ref::Bindings values{{"x", floats({1, 1, 2, 2}, {-5, -6, -7, -INFINITY})}};
  EXPECT_EQ(value_of(g, y, values), (Values{-5, -6, -7, -INFINITY}));
  EXPECT_EQ(value_of(g, indices, values), (Values{0, 1, 2, 3}));
}

TEST(MaxPool, nan_wins_and_the_first_one_is_named) {
  Graph g;
  const auto [y, indices] = max_pool2d_with_indices(g.input("x", {1, 1, 2, 2}), {2});
  const ref::Bindings values{{"x", floats({1, 1, 2, 2}, {1, NAN, 9, NAN})}};
  EXPECT_TRUE(std::isnan(value_of(g, y, values)[0]));
  EXPECT_EQ(value_of(g, indices, values), Values{1});
}

TEST(MaxPool, the_gradient_goes_to_the_first_of_equal_maxima) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 4});
  EXPECT_EQ(gradients_of(g, sum(max_pool2d(x, {2})), {x},
                         {{"x", floats({1, 1, 2, 4}, {3, 3, 0, 1, 3, 3, 1, 1})}})[0],
            (Values{1, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(MaxPool, the_gradient_goes_to_the_maxima_and_adds_up_where_windows_overlap) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 3, 3}), dy = g.input("dy", {1, 1, 2, 2});
  const ref::Bindings values{{"x", floats({1, 1, 3, 3}, {1, 2, 3, 4, 9, 5, 6, 7, 20})},
                             {"dy", floats({1, 1, 2, 2}, {1, 10, 100, 1000})}};
  EXPECT_EQ(gradients_of(g, sum(max_pool2d(x, {2}, {.stride = {1}}) * dy), {x}, values)[0],
            (Values{0, 0, 0, 0, 111, 0, 0, 0, 1000}));
}

TEST(AvgPool, divides_by_what_the_options_say) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 2});
  const ref::Bindings values{{"x", floats({1, 1, 2, 2}, {36, 72, 108, 144})}};
  EXPECT_EQ(value_of(g, avg_pool2d(x, {2}), values), Values{90});
  EXPECT_EQ(value_of(g, avg_pool2d(x, {3}, {.stride = {1}, .padding = {1}}), values),
            (Values{40, 40, 40, 40}));
  EXPECT_EQ(
      value_of(g, avg_pool2d(x, {3}, {.stride = {1}, .padding = {1}, .count_include_pad = false}),
               values),
      (Values{90, 90, 90, 90}));
  // What sticks out behind the padding never counts.
  EXPECT_EQ(
      value_of(g, avg_pool2d(x, {3}, {.stride = {2}, .padding = {1}, .ceil_mode = true}), values),
      (Values{40, 36, 42, 36}));
}

TEST(AvgPool, the_gradient_is_shared_out_over_the_window) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 3}), dy = g.input("dy", {1, 1, 1, 2});
  const ref::Bindings values{{"x", floats({1, 1, 2, 3}, Values(6, 0))},
                             {"dy", floats({1, 1, 1, 2}, {4, 8})}};
  EXPECT_EQ(gradients_of(g, sum(avg_pool2d(x, {2}, {.stride = {1}}) * dy), {x}, values)[0],
            (Values{1, 3, 2, 1, 3, 2}));
}

TEST(Pools, an_empty_batch_works) {
  Graph g;
  const Tensor x = g.input("x", {0, 2, 4, 4});
  const ref::Bindings values{{"x", floats({0, 2, 4, 4}, {})}};
  for (const Tensor& y : {max_pool2d(x, {2}), avg_pool2d(x, {2}), upsample_nearest2x(x),
                          upsample_bilinear2x(x), global_avg_pool(x)}) {
    EXPECT_EQ(y.dim(0), 0);
    EXPECT_TRUE(value_of(g, y, values).empty());
    EXPECT_TRUE(gradients_of(g, sum(y), {x}, values)[0].empty());
  }
}

TEST(Pools, say_what_is_wrong) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 4, 4});
  const auto complaint_of = [](auto&& build) {
    const std::string message = message_of<TypeError>(build);
    return message.substr(message.find("): ") + 3);
  };
  EXPECT_EQ(complaint_of([&] { max_pool2d(x, {5, 3}); }),
            "a window of 5 is larger than the padded input of 4 along axis 2: x f32[1,1,4,4]");
  EXPECT_EQ(complaint_of([&] { avg_pool2d(x, {3}, {.padding = {2}}); }),
            "padding 2 is more than half the kernel 3");
  EXPECT_EQ(complaint_of([&] { max_pool2d(x, {2}, {.stride = {0}}); }),
            "stride must be between 1 and 1073741824, got [0]");
  EXPECT_EQ(complaint_of([&] { max_pool2d(x, {INT64_MIN}); }),
            "kernel must be between 1 and 1073741824, got [-9223372036854775808]");
  EXPECT_EQ(complaint_of([&] { max_pool2d(x, {}); }),
            "kernel needs one entry or 2, got [] (x f32[1,1,4,4])");
  EXPECT_EQ(complaint_of([&] { max_pool2d(g.input("flat", {1, 1, 4}), {2}); }),
            "x must have 4 axes, got f32[1,1,4]");
  EXPECT_EQ(complaint_of([&] { avg_pool2d(g.input("empty", {1, 1, 0, 4}), {2}); }),
            "an empty plane cannot be pooled: x f32[1,1,0,4]");
  EXPECT_EQ(complaint_of([&] { max_pool2d(g.input("huge", {0, 1, 65536, 65536}), {2}); }),
            "the plane is too large for positions in i32: x f32[0,1,65536,65536]");
  EXPECT_EQ(complaint_of([&] { global_avg_pool(g.input("matrix", {2, 3})); }),
            "x needs spatial axes behind batch and channels: x f32[2,3]");
}

TEST(GlobalAvgPool, is_the_mean_over_all_spatial_axes) {
  Graph g;
  EXPECT_EQ(value_of(g, global_avg_pool(g.input("x", {1, 2, 2, 1})),
                     {{"x", floats({1, 2, 2, 1}, {1, 3, 10, 30})}}),
            (Values{2, 20}));
  EXPECT_EQ(value_of(g, global_avg_pool(g.input("v", {1, 2, 2})),
                     {{"v", floats({1, 2, 2}, {1, 3, 10, 30})}}),
            (Values{2, 20}));
}

TEST(Upsample, nearest_repeats_each_element) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 2, 2});
  EXPECT_EQ(value_of(g, upsample_nearest2x(x), {{"x", floats({1, 1, 2, 2}, {1, 2, 3, 4})}}),
            (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(Upsample, bilinear_takes_quarters_and_clamps_at_the_edges) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 1, 3});
  EXPECT_EQ(value_of(g, upsample_bilinear2x(x), {{"x", floats({1, 1, 1, 3}, {0, 4, 12})}}),
            (Values{0, 1, 3, 6, 10, 12, 0, 1, 3, 6, 10, 12}));
}

}  // namespace
}  // namespace pantala::tests::pool_test
