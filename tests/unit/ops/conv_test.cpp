// Convolutions: the size rule and its errors, channel order, groups, dilation and stride against
// the definition, and the three adjoints.
#include <gtest/gtest.h>

#include <numeric>

#include "ops/table.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests::conv_test {
namespace {

Literal random(const Shape& shape, const std::string& name) {
  return draw({shape, -1, 1, f32, false}, name);
}

// The sum over one window, term by term, with a test for every position.
std::vector<double> by_definition(const Literal& x, const Literal& w, const Shape& y,
                                  const ConvOptions& o) {
  const Shape &sx = x.shape(), &sw = w.shape();
  std::vector<double> result;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t out = 0; out < y[1]; ++out)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j) {
          double total = 0;
          for (std::int64_t c = 0; c < sw[1]; ++c)
            for (std::int64_t p = 0; p < sw[2]; ++p)
              for (std::int64_t q = 0; q < sw[3]; ++q) {
                const std::int64_t channel = out / (y[1] / o.groups) * sw[1] + c;
                const std::int64_t h = i * o.stride[0] + p * o.dilation[0] - o.padding[0],
                                   v = j * o.stride[1] + q * o.dilation[1] - o.padding[1];
                if (h < 0 || h >= sx[2] || v < 0 || v >= sx[3]) continue;
                total += x.f()[((n * sx[1] + channel) * sx[2] + h) * sx[3] + v] *
                         w.f()[((out * sw[1] + c) * sw[2] + p) * sw[3] + q];
              }
          result.push_back(total);
        }
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct Case {
  Shape x, weight;
  ConvOptions options;
};
std::vector<Case> cases() {
  return {{{2, 3, 8, 7}, {4, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
          {{2, 3, 9, 9}, {8, 3, 7, 7}, {{2, 2}, {3, 3}, {1, 1}, 1}},
          {{1, 4, 10, 9}, {6, 4, 3, 2}, {{1, 2}, {2, 0}, {2, 3}, 1}},
          {{2, 8, 5, 6}, {12, 2, 3, 3}, {{2, 3}, {1, 1}, {1, 1}, 4}},
          {{2, 6, 4, 4}, {6, 1, 3, 3}, {{1, 1}, {4, 3}, {1, 1}, 6}},
          {{1, 1, 1, 1}, {1, 1, 1, 1}, {{5, 5}, {0, 0}, {1, 1}, 1}}};
}

TEST(Convolution, is_the_sum_over_each_window) {
  for (const Case& k : cases()) {
    Graph g;
    const Tensor y = conv2d(g.input("x", k.x), g.input("w", k.weight), {}, k.options);
    const Literal x = random(k.x, "x"), w = random(k.weight, "w");
    SCOPED_TRACE(k.x.str() + " " + k.weight.str());
    expect_close(value_of(g, y, {{"x", x}, {"w", w}}), by_definition(x, w, y.shape(), k.options),
                 1e-13);
  }
}

TEST(Convolution, its_gradients_are_its_adjoints) {
  for (const Case& k : cases()) {
    Graph g;
    const Tensor x = g.input("x", k.x), w = g.input("w", k.weight),
                 y = convolution(x, w, k.options), dy = g.input("dy", y.shape());
    const ref::Bindings values{
        {"x", random(k.x, "x")}, {"w", random(k.weight, "w")}, {"dy", random(y.shape(), "dy")}};
    const std::vector<double> dx =
        value_of(g, convolution_input_grad(dy, w, {k.x[2], k.x[3]}, k.options), values);
    const std::vector<double> dw =
        value_of(g, convolution_weight_grad(x, dy, {k.weight[2], k.weight[3]}, k.options), values);
    const double form = dot(value_of(g, y, values), values.at("dy").to_doubles());
    SCOPED_TRACE(k.x.str() + " " + k.weight.str());
    EXPECT_NEAR(dot(dx, values.at("x").to_doubles()), form, 1e-11);
    EXPECT_NEAR(dot(dw, values.at("w").to_doubles()), form, 1e-11);
  }
}

TEST(Convolution, sizes_follow_the_rule) {
  Graph g;
  const Tensor image = g.input("image", {1, 3, 224, 224}),
               stem = conv2d(image, g.input("w7", {64, 3, 7, 7}), {}, {{2}, {3}, {1}, 1});
  EXPECT_EQ(stem.shape(), (Shape{1, 64, 112, 112}));
  EXPECT_EQ(conv2d(stem, g.input("w3", {64, 64, 3, 3}), {}, {{2}, {1}, {1}, 1}).shape(),
            (Shape{1, 64, 56, 56}));
  EXPECT_EQ(
      conv1d(g.input("sound", {2, 80, 3000}), g.input("w1", {384, 80, 3}), {}, {{2}, {1}, {1}, 1})
          .shape(),
      (Shape{2, 384, 1500}));
  EXPECT_EQ(convolution(g.input("volume", {1, 2, 9, 10, 11}), g.input("w5", {4, 2, 3, 3, 3}),
                        {{1, 2, 3}, {0}, {1, 1, 2}, 1})
                .shape(),
            (Shape{1, 4, 7, 4, 3}));
}

TEST(Convolution, one_entry_stands_for_all_axes) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 5, 5}), w = g.input("w", {1, 1, 3, 3});
  EXPECT_EQ(conv2d(x, w, {}, {{2}, {1}, {1}, 1}), conv2d(x, w, {}, {{2, 2}, {1, 1}, {1, 1}, 1}));
  EXPECT_EQ(ops::apply("conv2d", {x, w}, {{"stride", std::int64_t{2}}})[0],
            conv2d(x, w, {}, {{2, 2}, {0}, {1}, 1}));
}

TEST(Convolution, by_one_element_keeps_the_order_of_channels) {
  Graph g;
  const Tensor y =
      conv2d(g.input("x", {1, 3, 1, 2}), g.input("w", {2, 3, 1, 1}), g.input("b", {2}));
  const ref::Bindings values{{"x", floats({1, 3, 1, 2}, {1, 2, 10, 20, 100, 200})},
                             {"w", floats({2, 3, 1, 1}, {1, 2, 3, 4, 5, 6})},
                             {"b", floats({2}, {0.5, -0.5})}};
  EXPECT_EQ(value_of(g, y, values), (std::vector<double>{321.5, 642.5, 653.5, 1307.5}));
}

TEST(Convolution, groups_do_not_see_each_other) {
  Graph g;
  const Tensor y = conv1d(g.input("x", {1, 2, 2}), g.input("w", {4, 1, 1}), {}, {{1}, {0}, {1}, 2});
  EXPECT_EQ(
      value_of(g, y,
               {{"x", floats({1, 2, 2}, {1, 2, 30, 40})}, {"w", floats({4, 1, 1}, {1, 2, 3, 4})}}),
      (std::vector<double>{1, 2, 2, 4, 90, 120, 120, 160}));
}

TEST(Convolution, dilation_and_stride_count_from_the_padding) {
  Graph g;
  const Tensor y = conv1d(g.input("x", {1, 1, 7}), g.input("w", {1, 1, 2}), {}, {{3}, {1}, {2}, 1});
  // Windows start at -1, 2 and 5 and touch the element two further on; 7 is padding.
  EXPECT_EQ(value_of(g, y,
                     {{"x", floats({1, 1, 7}, {1, 2, 3, 4, 5, 6, 7})},
                      {"w", floats({1, 1, 2}, {10, 1})}}),
            (std::vector<double>{2, 35, 60}));
}

TEST(Convolution, zero_sized_axes_work) {
  Graph g;
  const Tensor w = g.parameter("w", {3, 2, 3, 3}, init::ones()),
               y = conv2d(g.input("x", {0, 2, 4, 4}), w);
  EXPECT_EQ(y.shape(), (Shape{0, 3, 2, 2}));
  EXPECT_EQ(gradients_of(g, sum(y), {w}, {{"x", floats({0, 2, 4, 4}, {})}})[0],
            std::vector<double>(54, 0.0));
  const Tensor none = conv2d(g.input("no_channels", {1, 0, 4, 4}), g.input("v", {2, 0, 3, 3}));
  EXPECT_EQ(value_of(g, none,
                     {{"no_channels", floats({1, 0, 4, 4}, {})}, {"v", floats({2, 0, 3, 3}, {})}}),
            std::vector<double>(8, 0.0));
  const Tensor padded =
      conv1d(g.input("empty", {1, 1, 0}), g.input("u", {1, 1, 2}), {}, {{1}, {1}, {1}, 1});
  EXPECT_EQ(
      value_of(g, padded, {{"empty", floats({1, 1, 0}, {})}, {"u", floats({1, 1, 2}, {1, 1})}}),
      std::vector<double>{0});
}

TEST(ConvTranspose, undoes_the_sizes_of_a_convolution) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 5, 5}), w = g.input("w", {4, 3, 3, 3});
  EXPECT_EQ(conv_transpose2d(x, w, {}, {{2}, {1}, {0}, {1}, 1}).shape(), (Shape{2, 3, 9, 9}));
  EXPECT_EQ(conv_transpose2d(x, w, {}, {{2}, {1}, {1}, {1}, 1}).shape(), (Shape{2, 3, 10, 10}));
  EXPECT_EQ(conv_transpose2d(x, w, {}, {{2, 3}, {0}, {0, 2}, {1}, 2}).shape(),
            (Shape{2, 6, 11, 17}));
}

TEST(ConvTranspose, spreads_each_element_by_the_kernel) {
  Graph g;
  const Tensor y = conv_transpose1d(g.input("x", {1, 1, 2}), g.input("w", {1, 2, 3}),
                                    g.input("b", {2}), {{2}, {0}, {1}, {1}, 1});
  const ref::Bindings values{{"x", floats({1, 1, 2}, {1, 10})},
                             {"w", floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})},
                             {"b", floats({2}, {0, 100})}};
  EXPECT_EQ(value_of(g, y, values),
            (std::vector<double>{1, 2, 13, 20, 30, 0, 104, 105, 146, 150, 160, 100}));
}

TEST(ConvTranspose, output_padding_up_to_the_dilation_adds_bias_only) {
  Graph g;
  const Tensor y = conv_transpose1d(g.input("x", {1, 1, 2}), g.input("w", {1, 1, 2}),
                                    g.input("b", {1}), {{1}, {0}, {2}, {3}, 1});
  EXPECT_EQ(value_of(g, y,
                     {{"x", floats({1, 1, 2}, {1, 2})},
                      {"w", floats({1, 1, 2}, {1, 10})},
                      {"b", floats({1}, {5})}}),
            (std::vector<double>{6, 7, 5, 15, 25, 5, 5}));
}

// The message behind the op's name and place.
template <class F>
std::string complaint_of(F&& build) {
  const std::string message = message_of<TypeError>(build);
  const std::size_t colon = message.find("): ");
  return colon == std::string::npos ? message : message.substr(colon + 3);
}

TEST(ConvolutionErrors, name_the_sizes) {
  Graph g;
  const Tensor x = g.input("x", {1, 4, 5, 5}), w = g.input("w", {6, 4, 7, 3}),
               narrow = g.input("narrow", {6, 3, 3, 3}), x1 = g.input("x1", {1, 4, 5});
  EXPECT_EQ(complaint_of([&] { conv2d(x, w); }),
            "a window of 7 is larger than the padded input of 5 along axis 2: x f32[1,4,5,5], "
            "weight f32[6,4,7,3]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{1}, {1}, {1, 4}, 1}); }),
            "a window of 9 is larger than the padded input of 7 along axis 3: x f32[1,4,5,5], "
            "weight f32[6,4,7,3]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, narrow); }),
            "weight must have 4 input channels (4 in 1 groups), got 3: x f32[1,4,5,5], weight "
            "f32[6,3,3,3]");
  EXPECT_EQ(
      complaint_of([&] { conv2d(x, narrow, {}, {{1}, {0}, {1}, 3}); }),
      "4 input channels cannot be divided into 3 groups: x f32[1,4,5,5], weight f32[6,3,3,3]");
  EXPECT_EQ(
      complaint_of([&] { conv2d(x, narrow, {}, {{1}, {0}, {1}, 4}); }),
      "6 output channels cannot be divided into 4 groups: x f32[1,4,5,5], weight f32[6,3,3,3]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{0}, {0}, {1}, 1}); }),
            "stride must be between 1 and 1073741824, got [0]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{1}, {-1, 0}, {1}, 1}); }),
            "padding must be between 0 and 1073741824, got [-1,0]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{1}, {0}, {INT64_MAX}, 1}); }),
            "dilation must be between 1 and 1073741824, got [9223372036854775807]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{1}, {0}, {1}, 0}); }),
            "groups must be between 1 and 1073741824, got 0");
  EXPECT_EQ(complaint_of([&] { conv2d(x, w, {}, {{1, 1, 1}, {0}, {1}, 1}); }),
            "stride needs one entry or 2, got [1,1,1] (x f32[1,4,5,5], weight f32[6,4,7,3])");
  EXPECT_EQ(complaint_of([&] { conv2d(x1, w); }), "x must have 4 axes, got f32[1,4,5]");
  EXPECT_EQ(complaint_of([&] { conv2d(x, g.input("w3", {6, 4, 3, 3}), g.input("b", {5})); }),
            "bias must have shape [6], got f32[5]");
}

TEST(ConvolutionErrors, of_the_gradients_and_transposes) {
  Graph g;
  const Tensor dy = g.input("dy", {1, 6, 3, 3}), w = g.input("w", {6, 4, 3, 3}),
               x = g.input("x", {1, 4, 5, 5});
  EXPECT_EQ(complaint_of([&] { convolution_input_grad(dy, w, {6, 5}); }),
            "an input of sizes [6,5] gives [1,6,4,3], but dy is another: dy f32[1,6,3,3], weight "
            "f32[6,4,3,3]");
  EXPECT_EQ(complaint_of([&] { convolution_weight_grad(x, dy, {2, 3}); }),
            "a kernel of sizes [2,3] gives [1,6,4,3], but dy is another: x f32[1,4,5,5], dy "
            "f32[1,6,3,3]");
  EXPECT_EQ(complaint_of([&] { conv_transpose2d(dy, w, {}, {{2}, {0}, {2, 0}, {1}, 1}); }),
            "output_padding 2 must be less than stride 2 or dilation 1");
  EXPECT_EQ(complaint_of([&] { conv_transpose2d(dy, w, {}, {{1}, {3}, {0}, {1}, 1}); }),
            "the result would have size -1 along axis 2: x f32[1,6,3,3], weight f32[6,4,3,3]");
  EXPECT_EQ(
      complaint_of([&] { conv_transpose2d(x, w); }),
      "weight must have 4 input channels in front, got 6: x f32[1,4,5,5], weight f32[6,4,3,3]");
}

}  // namespace
}  // namespace pantala::tests::conv_test
