// Convolutions. One trilinear form, the sum over x * weight * y, has three partial derivatives: the
// convolution itself, the gradient of its input and the gradient of its weight. These are the
// primitives; each one's gradients are the other two, so derivatives of any order stay among them.
// The user's convolutions, plain and transposed, are sugar.
#include "ops/conv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ops/define.h"
#include "ops/window.h"

namespace pantala::ops {
namespace {

using op::ConvAttrs;

struct Family {
  static constexpr std::string_view kFamily = "conv";
};

ConvOptions options(const ConvAttrs& a) { return {a.stride, a.padding, a.dilation, a.groups}; }
ConvAttrs attrs(const ConvOptions& o) {
  return {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups};
}

WindowAxis window_axis(const ConvAttrs& a, std::size_t k, std::int64_t size, std::int64_t kernel) {
  return {size, kernel, a.stride[k], a.padding[k], a.dilation[k]};
}

// Both inputs have batch (or output channels), channels and 1 to 3 spatial axes, or exactly `axes`
// of them.
int check_inputs(const InferContext& c, int axes = 0) {
  c.require_float(0);
  c.require_same_dtype(0, 1);
  const int rank = c.shape(0).rank();
  if (axes != 0) c.require_rank(0, axes + 2);
  if (rank < 3 || rank > 5)
    c.fail(fmt::format("{} must have 1 to 3 spatial axes behind batch and channels, got {}",
                       c.name_of(0), c.in(0).str()));
  c.require_rank(1, rank);
  return rank - 2;
}

void normalise(const InferContext& c, ConvAttrs& a, int axes) {
  a.stride = per_axis(c, "stride", a.stride, axes, 1);
  a.padding = per_axis(c, "padding", a.padding, axes, 0);
  a.dilation = per_axis(c, "dilation", a.dilation, axes, 1);
  constexpr std::string_view kAlgorithms[] = {"direct", "planar", "product", "winograd2",
                                              "winograd4"};
  if (std::ranges::find(kAlgorithms, a.algorithm) == std::end(kAlgorithms))
    c.fail(
        fmt::format("algorithm must be {}, got '{}'", fmt::join(kAlgorithms, ", "), a.algorithm));
  if (a.groups < 1 || a.groups > kMostWindow)
    c.fail(fmt::format("groups must be between 1 and {}, got {}", kMostWindow, a.groups));
}

void check_divisible(const InferContext& c, std::string_view what, std::int64_t channels,
                     std::int64_t groups) {
  if (channels % groups != 0)
    c.fail(fmt::format("{} {} channels cannot be divided into {} groups: {}", channels, what,
                       groups, c.describe_inputs()));
}

Ints output_sizes(const InferContext& c, const ConvAttrs& a, const Ints& sizes,
                  const Ints& kernel) {
  Ints outputs;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    outputs.push_back(
        checked_outputs(c, static_cast<int>(k) + 2, window_axis(a, k, sizes[k], kernel[k])));
  return outputs;
}

Shape with_spatial(std::int64_t first, std::int64_t second, const Ints& spatial) {
  Ints sizes{first, second};
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  return Shape(sizes);
}

// The type of a convolution of input 0 with the weight, input 1.
Type infer_convolution(const InferContext& c, ConvAttrs& a, int axes = 0) {
  axes = check_inputs(c, axes);
  normalise(c, a, axes);
  const Shape &x = c.shape(0), &weight = c.shape(1);
  check_divisible(c, "input", x[1], a.groups);
  check_divisible(c, "output", weight[0], a.groups);
  if (weight[1] != x[1] / a.groups)
    c.fail(fmt::format("weight must have {} input channels ({} in {} groups), got {}: {}",
                       x[1] / a.groups, x[1], a.groups, weight[1], c.describe_inputs()));
  return {c.in(0).dtype, with_spatial(x[0], weight[0],
                                      output_sizes(c, a, spatial_sizes(x), spatial_sizes(weight)))};
}

// The channels that a weight [o, c / groups, ...] reads.
std::int64_t all_channels(const InferContext& c, std::int64_t per_group, std::int64_t groups) {
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(per_group, groups, &channels))
    c.fail(fmt::format("too many channels in {} groups: {}", groups, c.describe_inputs()));
  return channels;
}

// The sizes of one convolution for the loops below; missing spatial axes are filled with size 1 in
// front.
struct ConvSizes {
  std::int64_t batch, in_channels, out_channels, in_per_group, out_per_group;
  std::array<WindowAxis, 3> axes;
  std::array<std::int64_t, 3> outputs{1, 1, 1};

  ConvSizes(const Shape& x, const Shape& weight, const Shape& y, const ConvAttrs& a)
      : batch(x[0]),
        in_channels(x[1]),
        out_channels(y[1]),
        in_per_group(x[1] / a.groups),
        out_per_group(y[1] / a.groups) {
    const auto count = static_cast<std::size_t>(x.rank() - 2);
    for (std::size_t k = 0; k < count; ++k) {
      const auto at = static_cast<int>(k) + 2;
      axes[3 - count + k] = window_axis(a, k, x[at], weight[at]);
      outputs[3 - count + k] = y[at];
    }
  }
  std::int64_t x_plane() const { return axes[0].size * axes[1].size * axes[2].size; }
  std::int64_t weight_plane() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  std::int64_t y_plane() const { return outputs[0] * outputs[1] * outputs[2]; }
  std::int64_t step() const { return axes[2].stride; }
};

// The rows of one plane of y and one plane of x that meet under each element of one kernel: row(x,
// weight, y, count), offsets counted from the starts of the planes.
template <class F>
void for_each_row_of_planes(const ConvSizes& s, F&& row) {
  const auto& [d, h, w] = s.axes;
  std::int64_t weight = 0;
  for (std::int64_t kd = 0; kd < d.kernel; ++kd)
    for (std::int64_t kh = 0; kh < h.kernel; ++kh)
      for (std::int64_t kw = 0; kw < w.kernel; ++kw, ++weight) {
        const Span depth = d.outputs_inside(kd, s.outputs[0]),
                   height = h.outputs_inside(kh, s.outputs[1]),
                   width = w.outputs_inside(kw, s.outputs[2]);
        for (std::int64_t od = depth.begin; od < depth.end; ++od)
          for (std::int64_t oh = height.begin; oh < height.end; ++oh) {
            const std::int64_t x = (d.position(od, kd) * h.size + h.position(oh, kh)) * w.size +
                                   w.position(width.begin, kw);
            const std::int64_t y = (od * s.outputs[1] + oh) * s.outputs[2] + width.begin;
            row(x, weight, y, width.end - width.begin);
          }
      }
}

// Every product of the trilinear form, in rows: `count` neighbours of y from offset y on, elements
// of x from offset x on that lie step() apart, and one element of the weight.
template <class F>
void for_each_row(const ConvSizes& s, F&& row) {
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t k = 0; k < s.in_per_group; ++k) {
        const std::int64_t c = o / s.out_per_group * s.in_per_group + k;
        const std::int64_t x0 = (n * s.in_channels + c) * s.x_plane(),
                           w0 = (o * s.in_per_group + k) * s.weight_plane(),
                           y0 = (n * s.out_channels + o) * s.y_plane();
        for_each_row_of_planes(s, [&](std::int64_t x, std::int64_t w, std::int64_t y,
                                      std::int64_t count) { row(x0 + x, w0 + w, y0 + y, count); });
      }
}

struct Convolution : op::Convolution, Family {
  static constexpr OpInfo info{
      name, "(x, weight) -> y",
      "x [n, c, ...] convolved with weight [o, c / groups, ...] over 1 to 3 spatial axes."};
  static void infer(InferContext& c, Attrs& a) { c.result(infer_convolution(c, a)); }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    const ConvSizes s(c.in(0).shape(), c.in(1).shape(), out.shape(), a);
    const double *x = c.in(0).f().data(), *w = c.in(1).f().data();
    double* y = out.f().data();
    const std::int64_t step = s.step();
    for_each_row(s, [=](std::int64_t ix, std::int64_t iw, std::int64_t iy, std::int64_t count) {
      const double factor = w[iw];
      for (std::int64_t j = 0; j < count; ++j) y[iy + j] += factor * x[ix + j * step];
    });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return convolution_input_grad(g.dy(), g.in(1), spatial_sizes(g.in(0).shape()), options(a));
    });
    g.give(1, [&] {
      return convolution_weight_grad(g.in(0), g.dy(), spatial_sizes(g.in(1).shape()), options(a));
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 5, 4}), floats({4, 3, 3, 3})}, Attrs{{1}, {1}, {1}, 1}),
            sample({floats({1, 4, 5, 7}), floats({6, 2, 3, 2})}, Attrs{{2, 3}, {1, 0}, {1, 2}, 2}),
            sample({floats({2, 3, 3, 3}), floats({3, 1, 3, 3})}, Attrs{{1}, {2}, {1}, 3}),
            sample({floats({1, 1, 1, 1}), floats({1, 1, 1, 1})}, Attrs{}),
            sample({floats({2, 5, 3, 3}), floats({2, 5, 1, 1})}, Attrs{{2}, {0}, {1}, 1}),
            sample({floats({2, 2, 9}), floats({3, 2, 4})}, Attrs{{2}, {3}, {2}, 1}),
            sample({floats({1, 2, 3, 4, 3}), floats({2, 1, 2, 3, 2})},
                   Attrs{{1, 2, 1}, {0, 1, 1}, {1, 1, 2}, 2}),
            sample({floats({0, 2, 4, 4}), floats({3, 2, 3, 3})}, Attrs{})};
  }
};

struct ConvolutionInputGrad : op::ConvolutionInputGrad, Family {
  static constexpr OpInfo info{
      name, "(dy, weight) -> dx",
      "The gradient of a convolution's input: the adjoint of x -> convolution(x, weight)."};
  static void infer(InferContext& c, Attrs& a) {
    const int axes = check_inputs(c);
    normalise(c, a.window, axes);
    a.input_sizes = per_axis(c, "input_sizes", a.input_sizes, axes, 0);
    const Shape &dy = c.shape(0), &weight = c.shape(1);
    check_divisible(c, "output", weight[0], a.window.groups);
    const Shape expected = with_spatial(
        dy[0], weight[0], output_sizes(c, a.window, a.input_sizes, spatial_sizes(weight)));
    if (!(dy == expected))
      c.fail(fmt::format("an input of sizes [{}] gives {}, but dy is another: {}",
                         fmt::join(a.input_sizes, ","), expected.str(), c.describe_inputs()));
    c.result({c.in(0).dtype,
              with_spatial(dy[0], all_channels(c, weight[1], a.window.groups), a.input_sizes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    const ConvSizes s(out.shape(), c.in(1).shape(), c.in(0).shape(), a.window);
    const double *dy = c.in(0).f().data(), *w = c.in(1).f().data();
    double* dx = out.f().data();
    const std::int64_t step = s.step();
    for_each_row(s, [=](std::int64_t ix, std::int64_t iw, std::int64_t iy, std::int64_t count) {
      const double factor = w[iw];
      for (std::int64_t j = 0; j < count; ++j) dx[ix + j * step] += factor * dy[iy + j];
    });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return convolution(g.dy(), g.in(1), options(a.window)); });
    g.give(1, [&] {
      return convolution_weight_grad(g.dy(), g.in(0), spatial_sizes(g.in(1).shape()),
                                     options(a.window));
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 4, 3, 2}), floats({4, 3, 3, 3})}, Attrs{{5, 4}, {}}),
            sample({floats({1, 6, 2, 2}), floats({6, 2, 3, 2})},
                   Attrs{{4, 6}, {{2, 3}, {1, 0}, {1, 2}, 2}}),
            sample({floats({2, 3, 4}), floats({3, 2, 4})}, Attrs{{8}, {{2}, {3}, {2}, 1}}),
            sample({floats({1, 2, 2, 3, 3}), floats({2, 1, 2, 2, 1})}, Attrs{{3, 4, 3}, {}}),
            sample({floats({1, 1, 1, 1}), floats({1, 1, 1, 1})}, Attrs{{1}, {}})};
  }
};

struct ConvolutionWeightGrad : op::ConvolutionWeightGrad, Family {
  static constexpr OpInfo info{
      name, "(x, dy) -> dweight",
      "The gradient of a convolution's weight: the adjoint of weight -> convolution(x, weight)."};
  static void infer(InferContext& c, Attrs& a) {
    const int axes = check_inputs(c);
    normalise(c, a.window, axes);
    a.kernel_sizes = per_axis(c, "kernel_sizes", a.kernel_sizes, axes, 1);
    const Shape &x = c.shape(0), &dy = c.shape(1);
    check_divisible(c, "input", x[1], a.window.groups);
    check_divisible(c, "output", dy[1], a.window.groups);
    const Shape expected =
        with_spatial(x[0], dy[1], output_sizes(c, a.window, spatial_sizes(x), a.kernel_sizes));
    if (!(dy == expected))
      c.fail(fmt::format("a kernel of sizes [{}] gives {}, but dy is another: {}",
                         fmt::join(a.kernel_sizes, ","), expected.str(), c.describe_inputs()));
    c.result({c.in(0).dtype, with_spatial(dy[1], x[1] / a.window.groups, a.kernel_sizes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    Literal out(c.result_type());
    const ConvSizes s(c.in(0).shape(), out.shape(), c.in(1).shape(), a.window);
    const double *x = c.in(0).f().data(), *dy = c.in(1).f().data();
    double* dw = out.f().data();
    const std::int64_t step = s.step();
    for_each_row(s, [=](std::int64_t ix, std::int64_t iw, std::int64_t iy, std::int64_t count) {
      double total = 0;
      for (std::int64_t j = 0; j < count; ++j) total += x[ix + j * step] * dy[iy + j];
      dw[iw] += total;
    });
    return out;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return convolution_input_grad(g.in(1), g.dy(), spatial_sizes(g.in(0).shape()),
                                    options(a.window));
    });
    g.give(1, [&] { return convolution(g.in(0), g.dy(), options(a.window)); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 5, 4}), floats({2, 4, 3, 2})}, Attrs{{3}, {}}),
            sample({floats({1, 4, 4, 6}), floats({1, 6, 2, 2})},
                   Attrs{{3, 2}, {{2, 3}, {1, 0}, {1, 2}, 2}}),
            sample({floats({2, 2, 8}), floats({2, 3, 4})}, Attrs{{4}, {{2}, {3}, {2}, 1}}),
            sample({floats({1, 1, 3, 4, 3}), floats({1, 2, 2, 3, 3})}, Attrs{{2, 2, 1}, {}}),
            sample({floats({1, 1, 1, 1}), floats({1, 1, 1, 1})}, Attrs{{1}, {}})};
  }
};

void check_bias(const InferContext& c, std::int64_t channels) {
  if (!c.has(2)) return;
  c.require_same_dtype(0, 2);
  c.require_shape(2, {channels});
}

// y [n, o, spatial...] plus one number per channel.
Tensor with_bias(const Tensor& y, const ExpandContext& c) {
  if (!c.has(2)) return y;
  IntList sizes(static_cast<std::size_t>(y.rank() - 1), 1);
  sizes[0] = y.dim(1);
  return y + reshape(c.in(2), sizes);
}

template <int axes>
struct Conv : Family {
  using Attrs = ConvAttrs;
  static constexpr bool kSugar = true;
  static void infer(InferContext& c, Attrs& a) {
    const Type y = infer_convolution(c, a, axes);
    check_bias(c, y.shape[1]);
    c.result(y);
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    return with_bias(convolution(c.in(0), c.in(1), options(a)), c);
  }
};

struct Conv1d : Conv<1> {
  static constexpr OpInfo info{
      "conv1d", "(x, weight, bias?) -> y",
      "x [n, c, length] convolved with weight [o, c / groups, kernel], plus bias [o].", "Conv"};
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 7}), floats({4, 3, 3}), floats({4})}, Attrs{{2}, {1}, {1}, 1}),
            sample({floats({1, 4, 9}), floats({2, 2, 3})}, Attrs{{1}, {2}, {3}, 2}),
            sample({floats({1, 1, 1}), floats({1, 1, 1}), floats({1})}, Attrs{}),
            sample({floats({3, 3, 3}), floats({3, 3, 3}), floats({3})}, Attrs{})};
  }
};

struct Conv2d : Conv<2> {
  static constexpr OpInfo info{"conv2d", "(x, weight, bias?) -> y",
                               "x [n, c, height, width] convolved with weight [o, c / groups, "
                               "kernel, kernel], plus bias [o].",
                               "Conv"};
  static std::vector<Sample> samples() {
    return {
        sample({floats({2, 3, 5, 4}), floats({4, 3, 3, 3}), floats({4})}, Attrs{{1}, {1}, {1}, 1}),
        sample({floats({1, 4, 6, 7}), floats({4, 2, 3, 2}), floats({4})},
               Attrs{{2, 1}, {1, 0}, {1, 2}, 2}),
        sample({floats({2, 3, 3, 3}), floats({3, 3, 1, 1})}, Attrs{}),
        sample({floats({1, 1, 1, 1}), floats({1, 1, 1, 1}), floats({1})}, Attrs{})};
  }
};

// The transposed convolution is the gradient of a convolution's input: its x is that convolution's
// y.
struct TransposeAttrs {
  Ints stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  std::int64_t groups = 1;
  static void fields(auto&& f, auto& a) {
    f("stride", a.stride, "distance of the windows, per spatial axis or one for all");
    f("padding", a.padding, "elements cut off around the result");
    f("output_padding", a.output_padding,
      "elements added at the end of the result, less than stride or dilation");
    f("dilation", a.dilation, "distance of the elements under a window");
    f("groups", a.groups, "channels are convolved in this many separate groups");
  }
  ConvAttrs window() const {
    return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
  }
};

template <int axes>
struct ConvTranspose : Family {
  using Attrs = TransposeAttrs;
  static constexpr bool kSugar = true;

  // The size of the result along one axis. Sizes are at most 2^30 here.
  static std::int64_t result_size(const Attrs& a, std::size_t k, std::int64_t size,
                                  std::int64_t kernel) {
    return (size - 1) * a.stride[k] - 2 * a.padding[k] + a.dilation[k] * (kernel - 1) +
           a.output_padding[k] + 1;
  }
  static Ints result_sizes(const Attrs& a, const Shape& x, const Shape& weight) {
    Ints sizes;
    for (std::size_t k = 0; k < axes; ++k)
      sizes.push_back(
          result_size(a, k, x[static_cast<int>(k) + 2], weight[static_cast<int>(k) + 2]));
    return sizes;
  }
  static void check_axis(const InferContext& c, const Attrs& a, std::size_t k) {
    const int axis = static_cast<int>(k) + 2;
    const std::int64_t size = c.shape(0)[axis], kernel = c.shape(1)[axis];
    if (size < 1 || kernel < 1)
      c.fail(fmt::format("axis {} is empty: {}", axis, c.describe_inputs()));
    if (size > kMostWindow || kernel > kMostWindow)
      c.fail(fmt::format("axis {} is longer than {}: {}", axis, kMostWindow, c.describe_inputs()));
    if (a.output_padding[k] >= std::max(a.stride[k], a.dilation[k]))
      c.fail(fmt::format("output_padding {} must be less than stride {} or dilation {}",
                         a.output_padding[k], a.stride[k], a.dilation[k]));
    const std::int64_t result = result_size(a, k, size, kernel);
    if (result < 1 || result > kMostWindow)
      c.fail(fmt::format("the result would have size {} along axis {}: {}", result, axis,
                         c.describe_inputs()));
  }
  static void infer(InferContext& c, Attrs& a) {
    check_inputs(c, axes);
    ConvAttrs window = a.window();
    normalise(c, window, axes);
    a = {window.stride, window.padding, per_axis(c, "output_padding", a.output_padding, axes, 0),
         window.dilation, window.groups};
    const Shape &x = c.shape(0), &weight = c.shape(1);
    if (weight[0] != x[1])
      c.fail(fmt::format("weight must have {} input channels in front, got {}: {}", x[1], weight[0],
                         c.describe_inputs()));
    check_divisible(c, "input", x[1], a.groups);
    for (std::size_t k = 0; k < axes; ++k) check_axis(c, a, k);
    const std::int64_t channels = all_channels(c, weight[1], a.groups);
    check_bias(c, channels);
    c.result({c.in(0).dtype, with_spatial(x[0], channels, result_sizes(a, x, weight))});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    // An output padding of a stride or more makes room for further windows: x has nothing for them,
    // hence zeros.
    Ints none(axes + 2, 0), after(axes + 2, 0);
    for (std::size_t k = 0; k < axes; ++k) after[k + 2] = a.output_padding[k] / a.stride[k];
    const Tensor x = after == none ? c.in(0) : pad(c.in(0), none, after);
    return with_bias(
        convolution_input_grad(x, c.in(1), result_sizes(a, c.in(0).shape(), c.in(1).shape()),
                               options(a.window())),
        c);
  }
};

struct ConvTranspose1d : ConvTranspose<1> {
  static constexpr OpInfo info{"conv_transpose1d", "(x, weight, bias?) -> y",
                               "x [n, c, length] spread by weight [c, o / groups, kernel], plus "
                               "bias [o]: the adjoint of a convolution.",
                               "ConvTranspose"};
  static std::vector<Sample> samples() {
    return {
        sample({floats({2, 3, 4}), floats({3, 2, 3}), floats({2})}, Attrs{{2}, {1}, {1}, {1}, 1}),
        sample({floats({1, 4, 5}), floats({4, 1, 2})}, Attrs{{1}, {1}, {2}, {3}, 2}),
        sample({floats({1, 1, 1}), floats({1, 1, 1}), floats({1})}, Attrs{})};
  }
};

struct ConvTranspose2d : ConvTranspose<2> {
  static constexpr OpInfo info{"conv_transpose2d", "(x, weight, bias?) -> y",
                               "x [n, c, height, width] spread by weight [c, o / groups, kernel, "
                               "kernel], plus bias [o]: the adjoint of a convolution.",
                               "ConvTranspose"};
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4, 3}), floats({3, 2, 3, 3}), floats({2})},
                   Attrs{{2}, {1}, {1}, {1}, 1}),
            sample({floats({1, 4, 3, 3}), floats({4, 2, 2, 3})},
                   Attrs{{3, 1}, {0, 1}, {2, 0}, {1, 2}, 2}),
            sample({floats({1, 1, 1, 1}), floats({1, 1, 1, 1}), floats({1})}, Attrs{})};
  }
};

std::vector<Operand> with_optional(Operand x, Operand weight, const std::optional<Tensor>& bias) {
  std::vector<Operand> inputs{x, weight};
  if (bias) inputs.emplace_back(*bias, x.where());
  return inputs;
}
TransposeAttrs attrs(const ConvTransposeOptions& o) {
  return {o.stride, o.padding, o.output_padding, o.dilation, o.groups};
}

}  // namespace

std::vector<const OpDef*> conv_ops() {
  return family<Convolution, ConvolutionInputGrad, ConvolutionWeightGrad, Conv1d, Conv2d,
                ConvTranspose1d, ConvTranspose2d>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor convolution(Operand x, Operand weight, const ConvOptions& o) {
  return make<Convolution>({x, weight}, attrs(o));
}
Tensor convolution_input_grad(Operand dy, Operand weight, const IntList& input_sizes,
                              const ConvOptions& o) {
  return make<ConvolutionInputGrad>({dy, weight}, {input_sizes, attrs(o)});
}
Tensor convolution_weight_grad(Operand x, Operand dy, const IntList& kernel_sizes,
                               const ConvOptions& o) {
  return make<ConvolutionWeightGrad>({x, dy}, {kernel_sizes, attrs(o)});
}
Tensor conv1d(Operand x, Operand weight, const std::optional<Tensor>& bias, const ConvOptions& o) {
  return make<Conv1d>(with_optional(x, weight, bias), attrs(o));
}
Tensor conv2d(Operand x, Operand weight, const std::optional<Tensor>& bias, const ConvOptions& o) {
  return make<Conv2d>(with_optional(x, weight, bias), attrs(o));
}
Tensor conv_transpose1d(Operand x, Operand weight, const std::optional<Tensor>& bias,
                        const ConvTransposeOptions& o) {
  return make<ConvTranspose1d>(with_optional(x, weight, bias), attrs(o));
}
Tensor conv_transpose2d(Operand x, Operand weight, const std::optional<Tensor>& bias,
                        const ConvTransposeOptions& o) {
  return make<ConvTranspose2d>(with_optional(x, weight, bias), attrs(o));
}

}  // namespace pantala
