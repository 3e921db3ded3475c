// Pools and resampling of [batch, channels, height, width]. Max pool keeps the positions of its
// maxima, by which its gradient is scattered; average pool and its adjoint are each other's
// gradients. The rest is written with other ops.
#include "ops/pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/define.h"
#include "ops/window.h"

namespace pantala::ops {
namespace {

using op::AvgPoolAttrs;
using op::PoolAttrs;

struct Family {
  static constexpr std::string_view kFamily = "pool";
};

WindowAxis window_axis(const PoolAttrs& a, std::size_t k, std::int64_t size) {
  return {size, a.kernel[k], a.stride[k], a.padding[k], 1};
}

// Checks the attributes and gives the sizes of the result for a plane of the given sizes. No window
// lies in the padding alone: the padding is at most half a window, and the plane is not empty.
Ints infer_windows(const InferContext& c, PoolAttrs& a, const Ints& plane) {
  a.kernel = per_axis(c, "kernel", a.kernel, 2, 1);
  a.stride = a.stride.empty() ? a.kernel : per_axis(c, "stride", a.stride, 2, 1);
  a.padding = per_axis(c, "padding", a.padding, 2, 0);
  Ints sizes;
  for (std::size_t k = 0; k < 2; ++k) {
    if (a.padding[k] > a.kernel[k] / 2)
      c.fail(fmt::format("padding {} is more than half the kernel {}", a.padding[k], a.kernel[k]));
    if (plane[k] < 1) c.fail("an empty plane cannot be pooled: " + c.describe_inputs());
    sizes.push_back(
        checked_outputs(c, static_cast<int>(k) + 2, window_axis(a, k, plane[k]), a.ceil_mode));
  }
  return sizes;
}

Shape with_plane(const Shape& shape, const Ints& plane) {
  return {shape[0], shape[1], plane[0], plane[1]};
}

// What one window covers along an axis: the elements of x, and how many with the padding (but not
// what sticks out behind it).
struct Cover {
  Span inside;
  std::int64_t with_padding;
};
Cover cover(const WindowAxis& axis, std::int64_t output) {
  const std::int64_t begin = axis.position(output, 0), end = begin + axis.kernel;
  return {{std::max<std::int64_t>(begin, 0), std::min(end, axis.size)},
          std::min(end, axis.size + axis.padding) - begin};
}

// Calls f(x, y, rows, columns) for each window: the offset of its plane in x, its own offset in y,
// and what it covers.
template <class F>
void for_each_window(const Shape& x, const Shape& y, const PoolAttrs& a, F&& f) {
  const WindowAxis high = window_axis(a, 0, x[2]), wide = window_axis(a, 1, x[3]);
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane)
    for (std::int64_t h = 0; h < y[2]; ++h)
      for (std::int64_t w = 0; w < y[3]; ++w)
        f(plane * x[2] * x[3], at++, cover(high, h), cover(wide, w));
}

// dy must be a pooled plane of these sizes.
void require_pooled(const InferContext& c, const Ints& input_sizes, const Ints& expected) {
  if (spatial_sizes(c.shape(0)) != expected)
    c.fail(fmt::format("a plane of [{}] is pooled to [{}], but dy is another: {}",
                       fmt::join(input_sizes, ","), fmt::join(expected, ","), c.describe_inputs()));
}

struct MaxPool2dGrad : op::MaxPool2dGrad, Family {
  static constexpr OpInfo info{
      name, "(dy, indices) -> dx",
      "The gradient of max_pool2d: each dy added at the position of its maximum, which lies in its "
      "window."};
  static constexpr int kIndexInputs[] = {1};
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_rank(0, 4);
    c.require_dtype(1, i32);
    c.require_shape(1, c.shape(0));
    a.input_sizes = per_axis(c, "input_sizes", a.input_sizes, 2, 1);
    require_pooled(c, a.input_sizes, infer_windows(c, a.window, a.input_sizes));
    c.result({c.in(0).dtype, with_plane(c.shape(0), a.input_sizes)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Shape& y = c.in(0).shape();
    const Shape flat_y{y[0], y[1], y[2] * y[3]},
        flat_x{y[0], y[1], a.input_sizes[0] * a.input_sizes[1]};
    const Tensor dx =
        scatter_add_elements(full_beside(c.in(0), flat_x, 0), reshape(c.in(1), flat_y.vec()),
                             reshape(c.in(0), flat_y.vec()), 2);
    return reshape(dx, with_plane(y, a.input_sizes).vec());
  }
  // A position must lie in the window that names it: the samples have one window, the whole plane.
  static std::vector<Sample> samples() {
    return {sample({floats({1, 1, 1, 1}), ints({1, 1, 1, 1}, 0, 1, i32)},
                   Attrs{{1}, {{1}, {}, {0}, false}}),
            sample({floats({2, 3, 1, 1}), ints({2, 3, 1, 1}, 0, 6, i32)},
                   Attrs{{2, 3}, {{2, 3}, {}, {0}, false}}),
            sample({floats({2, 2, 1, 1}), ints({2, 2, 1, 1}, 0, 9, i32)},
                   Attrs{{3, 3}, {{3}, {}, {0}, false}}),
            sample({floats({0, 2, 2, 2}), ints({0, 2, 2, 2}, 0, 4, i32)},
                   Attrs{{4, 4}, {{2}, {}, {0}, false}})};
  }
};

struct MaxPool2d : op::MaxPool2d, Family {
  static constexpr OpInfo info{
      name, "(x) -> (y, indices)",
      "The largest element of each window, NaN if there is one, and its position h * width + w in "
      "the plane, the first of equals, as i32. Padding is never chosen.",
      "MaxPool"};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_rank(0, 4);
    const Shape& x = c.shape(0);
    const Shape y = with_plane(x, infer_windows(c, a, spatial_sizes(x)));
    if (x[2] * x[3] > std::numeric_limits<std::int32_t>::max())
      c.fail("the plane is too large for positions in i32: " + c.describe_inputs());
    c.result({c.in(0).dtype, y});
    c.result({i32, y});
  }
  static std::vector<Literal> eval(const EvalContext& c, const Attrs& a) {
    const Literal& x = c.in(0);
    Literal y(c.result_type(0)), indices(c.result_type(1));
    for_each_window(
        x.shape(), y.shape(), a,
        [&](std::int64_t plane, std::int64_t at, const Cover& rows, const Cover& columns) {
          const double* from = x.f().data() + plane;
          std::int64_t best = rows.inside.begin * x.shape()[3] + columns.inside.begin;
          for (std::int64_t h = rows.inside.begin; h < rows.inside.end; ++h)
            for (std::int64_t w = columns.inside.begin; w < columns.inside.end; ++w) {
              const std::int64_t k = h * x.shape()[3] + w;
              if (!std::isnan(from[best]) && (std::isnan(from[k]) || from[k] > from[best]))
                best = k;
            }
          y.f()[at] = from[best];
          indices.i()[at] = best;
        });
    return {y, indices};
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return make<MaxPool2dGrad>({g.dy(), g.out(1)}, {spatial_sizes(g.in().shape()), a});
    });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 5, 4})}, Attrs{{2}, {}, {0}, false}),
            sample({floats({1, 2, 7, 6})}, Attrs{{3, 2}, {2, 1}, {1, 1}, false}),
            sample({floats({2, 1, 4, 4})}, Attrs{{3}, {2}, {0}, true}),
            sample({floats({1, 2, 6, 5})}, Attrs{{2, 3}, {3, 2}, {1, 0}, true}),
            sample({floats({1, 1, 1, 1})}, Attrs{{1}, {}, {0}, false}),
            sample({floats({0, 2, 4, 4})}, Attrs{{2}, {}, {0}, false})};
  }
};

// The divisor of one window.
double window_count(const Cover& rows, const Cover& columns, bool include_pad) {
  const auto length = [&](const Cover& part) {
    return include_pad ? part.with_padding : part.inside.end - part.inside.begin;
  };
  return static_cast<double>(length(rows)) * static_cast<double>(length(columns));
}

Tensor avg_pool2d_grad(const Tensor& dy, const Ints& input_sizes, const AvgPoolAttrs& a);

struct AvgPool2d : op::AvgPool2d, Family {
  static constexpr OpInfo info{name, "(x) -> y", "The mean of each window.", "AveragePool"};
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_rank(0, 4);
    c.result({c.in(0).dtype,
              with_plane(c.shape(0), infer_windows(c, a.window, spatial_sizes(c.shape(0))))});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Literal& x = c.in(0);
    Literal y(c.result_type());
    for_each_window(
        x.shape(), y.shape(), a.window,
        [&](std::int64_t plane, std::int64_t at, const Cover& rows, const Cover& columns) {
          double total = 0;
          for (std::int64_t h = rows.inside.begin; h < rows.inside.end; ++h)
            for (std::int64_t w = columns.inside.begin; w < columns.inside.end; ++w)
              total += x.f()[plane + h * x.shape()[3] + w];
          y.f()[at] = total / window_count(rows, columns, a.count_include_pad);
        });
    return y;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return avg_pool2d_grad(g.dy(), spatial_sizes(g.in().shape()), a); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 5, 4})}, Attrs{{{2}, {}, {0}, false}, true}),
            sample({floats({1, 2, 7, 6})}, Attrs{{{3, 2}, {2, 1}, {1, 1}, false}, true}),
            sample({floats({1, 2, 7, 6})}, Attrs{{{3, 2}, {2, 1}, {1, 1}, false}, false}),
            sample({floats({2, 1, 4, 4})}, Attrs{{{3}, {2}, {1}, true}, true}),
            sample({floats({1, 2, 6, 5})}, Attrs{{{2, 3}, {3, 2}, {1, 0}, true}, false}),
            sample({floats({1, 1, 1, 1})}, Attrs{{{1}, {}, {0}, false}, true}),
            sample({floats({0, 2, 4, 4})}, Attrs{{{2}, {}, {0}, false}, true})};
  }
};

struct AvgPool2dGrad : op::AvgPool2dGrad, Family {
  static constexpr OpInfo info{name, "(dy) -> dx",
                               "The gradient of avg_pool2d: each dy shared out over its window."};
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_rank(0, 4);
    a.input_sizes = per_axis(c, "input_sizes", a.input_sizes, 2, 1);
    require_pooled(c, a.input_sizes, infer_windows(c, a.pool.window, a.input_sizes));
    c.result({c.in(0).dtype, with_plane(c.shape(0), a.input_sizes)});
  }
  static Literal eval(const EvalContext& c, const Attrs& a) {
    const Literal& dy = c.in(0);
    Literal dx(c.result_type());
    for_each_window(
        dx.shape(), dy.shape(), a.pool.window,
        [&](std::int64_t plane, std::int64_t at, const Cover& rows, const Cover& columns) {
          const double share = dy.f()[at] / window_count(rows, columns, a.pool.count_include_pad);
          for (std::int64_t h = rows.inside.begin; h < rows.inside.end; ++h)
            for (std::int64_t w = columns.inside.begin; w < columns.inside.end; ++w)
              dx.f()[plane + h * dx.shape()[3] + w] += share;
        });
    return dx;
  }
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] { return make<AvgPool2d>({g.dy()}, a.pool); });
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 2, 2})}, Attrs{{5, 4}, {{{2}, {}, {0}, false}, true}}),
            sample({floats({1, 2, 4, 7})}, Attrs{{7, 6}, {{{3, 2}, {2, 1}, {1, 1}, false}, false}}),
            sample({floats({2, 1, 3, 3})}, Attrs{{4}, {{{3}, {2}, {1}, true}, true}}),
            sample({floats({1, 1, 1, 1})}, Attrs{{1}, {{{1}, {}, {0}, false}, true}})};
  }
};

Tensor avg_pool2d_grad(const Tensor& dy, const Ints& input_sizes, const AvgPoolAttrs& a) {
  return make<AvgPool2dGrad>({dy}, {input_sizes, a});
}

struct GlobalAvgPool : Family {
  static constexpr OpInfo info{"global_avg_pool", "(x) -> y",
                               "The mean over all spatial axes: [batch, channels]."};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c) {
    c.require_float(0);
    if (c.shape(0).rank() < 3)
      c.fail("x needs spatial axes behind batch and channels: " + c.describe_inputs());
    c.result({c.in(0).dtype, {c.shape(0)[0], c.shape(0)[1]}});
  }
  static Tensor expand(const ExpandContext& c) {
    Ints axes(static_cast<std::size_t>(c.in(0).rank() - 2));
    std::iota(axes.begin(), axes.end(), 2);
    return mean(c.in(0), axes);
  }
  static std::vector<Sample> samples() {
    return {sample({floats({2, 3, 4, 5})}), sample({floats({2, 3, 7})}),
            sample({floats({1, 1, 1, 1})}), sample({floats({2, 2, 2, 3, 2})})};
  }
};

void infer_upsample(InferContext& c) {
  c.require_float(0);
  c.require_rank(0, 4);
  const Shape& x = c.shape(0);
  c.result({c.in(0).dtype, with_plane(x, {2 * x[2], 2 * x[3]})});
}
std::vector<Sample> upsample_samples() {
  return {sample({floats({2, 3, 4, 5})}), sample({floats({1, 1, 1, 1})}),
          sample({floats({2, 1, 3, 3})}), sample({floats({1, 2, 1, 6})}),
          sample({floats({0, 2, 2, 2})})};
}

struct UpsampleNearest2x : Family {
  static constexpr OpInfo info{"upsample_nearest2x", "(x) -> y",
                               "Height and width doubled, each element repeated."};
  static void infer(InferContext& c) { infer_upsample(c); }
  static Tensor expand(const ExpandContext& c) {
    const Shape& s = c.in(0).shape();
    const Tensor repeated = broadcast_to(reshape(c.in(0), {s[0], s[1], s[2], 1, s[3], 1}),
                                         {s[0], s[1], s[2], 2, s[3], 2});
    return reshape(repeated, {s[0], s[1], 2 * s[2], 2 * s[3]});
  }
  static std::vector<Sample> samples() { return upsample_samples(); }
};

// One axis doubled: the new elements lie a quarter before and a quarter behind the old ones,
// between those and their neighbours; beyond the edges the outermost elements go on.
Tensor interpolate_axis(const Tensor& x, int axis) {
  const std::int64_t size = x.dim(axis);
  const Tensor before = concat({slice_axis(x, axis, 0, 1), slice_axis(x, axis, 0, size - 1)}, axis);
  const Tensor behind =
      concat({slice_axis(x, axis, 1, size), slice_axis(x, axis, size - 1, size)}, axis);
  const Tensor even = before * 0.25 + x * 0.75, odd = x * 0.75 + behind * 0.25;
  return reshape(stack({even, odd}, axis + 1), x.shape().with(axis, 2 * size).vec());
}

struct UpsampleBilinear2x : Family {
  static constexpr OpInfo info{"upsample_bilinear2x", "(x) -> y",
                               "Height and width doubled by linear interpolation between the "
                               "centres of elements (align_corners = false)."};
  static void infer(InferContext& c) { infer_upsample(c); }
  static Tensor expand(const ExpandContext& c) {
    return interpolate_axis(interpolate_axis(c.in(0), 2), 3);
  }
  static std::vector<Sample> samples() { return upsample_samples(); }
};

}  // namespace

std::vector<const OpDef*> pool_ops() {
  return family<MaxPool2d, MaxPool2dGrad, AvgPool2d, AvgPool2dGrad, GlobalAvgPool,
                UpsampleNearest2x, UpsampleBilinear2x>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

std::pair<Tensor, Tensor> max_pool2d_with_indices(Operand x, const IntList& kernel,
                                                  const PoolOptions& o) {
  const std::vector<Tensor> results =
      make_all<MaxPool2d>({x}, {kernel, o.stride, o.padding, o.ceil_mode});
  return {results[0], results[1]};
}
Tensor max_pool2d(Operand x, const IntList& kernel, const PoolOptions& o) {
  return max_pool2d_with_indices(x, kernel, o).first;
}
Tensor avg_pool2d(Operand x, const IntList& kernel, const PoolOptions& o) {
  return make<AvgPool2d>({x}, {{kernel, o.stride, o.padding, o.ceil_mode}, o.count_include_pad});
}
Tensor global_avg_pool(Operand x) { return make<GlobalAvgPool>({x}); }
Tensor upsample_nearest2x(Operand x) { return make<UpsampleNearest2x>({x}); }
Tensor upsample_bilinear2x(Operand x) { return make<UpsampleBilinear2x>({x}); }

}  // namespace pantala
