// grid_sample, defined by gathers: an element of the result is a sum of elements of the image, one
// per corner around its position, with weights that depend on the position.
#include "ops/grid.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/define.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "grid";
};

// One axis of the image: how positions along it are found.
struct GridAxis {
  double size;
  GridPadding padding;
  bool align_corners;

  // From [-1, 1] to positions of elements.
  Tensor position(const Tensor& grid) const {
    return align_corners ? (grid + 1.0) * ((size - 1) / 2) : ((grid + 1.0) * size - 1.0) * 0.5;
  }

  // Positions outside of the image as those inside that stand for them; with zeros they stay.
  Tensor padded(const Tensor& at) const {
    if (padding == GridPadding::zeros) return at;
    return clamp(padding == GridPadding::reflection ? reflected(at) : at, 0, size - 1);
  }

  // An integral position as an index; those outside, which do not count, are any.
  Tensor index(const Tensor& at) const { return cast(clamp(at, 0, size - 1), i64); }
  Tensor inside(const Tensor& at) const { return logical_and(ge(at, 0.0), le(at, size - 1)); }

 private:
  // Mirrored at the outer elements, or at their edges, any number of times.
  Tensor reflected(const Tensor& at) const {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? size - 1 : size;
    if (span == 0) return zeros_like(at);
    const Tensor distance = abs(at - low), turns = floor(distance / span);
    const Tensor rest = distance - turns * span;
    const Tensor is_even = eq(turns * 0.5, floor(turns * 0.5));
    return where(is_even, rest, span - rest) + low;
  }
};

// The image as rows [batch, channels, height * width], to be read at positions [batch, 1, places].
class Image {
 public:
  Image(const Tensor& x, const Shape& grid, GridPadding padding, bool align_corners)
      : across{static_cast<double>(x.dim(3)), padding, align_corners},
        down{static_cast<double>(x.dim(2)), padding, align_corners},
        rows_(reshape(x, {x.dim(0), x.dim(1), x.dim(2) * x.dim(3)})),
        places_{x.dim(0), x.dim(1), grid[1] * grid[2]},
        width_(across.size) {}

  // The elements at integral positions times a weight (invalid: 1); 0 outside.
  Tensor at(const Tensor& x, const Tensor& y, const Tensor& weight) const {
    const Tensor index = down.index(y) * width_ + across.index(x);
    const Tensor value = gather(rows_, broadcast_to(index, places_), 2);
    return where(logical_and(across.inside(x), down.inside(y)),
                 weight.valid() ? value * weight : value, 0.0);
  }

  const GridAxis across, down;

 private:
  Tensor rows_;
  Shape places_;
  double width_;
};

// A position among its neighbours along one axis.
struct Neighbour {
  Tensor at, weight;
};

std::vector<Neighbour> linear_neighbours(const GridAxis& axis, const Tensor& position) {
  const Tensor at = axis.padded(position), first = floor(at), rest = at - first;
  return {{first, 1.0 - rest}, {first + 1.0, rest}};
}

// Cubic convolution with PyTorch's a = -0.75. The neighbours are padded, not the position.
std::vector<Neighbour> cubic_neighbours(const GridAxis& axis, const Tensor& position) {
  constexpr double kA = -0.75;
  const auto near = [](const Tensor& d) { return ((d * (kA + 2) - (kA + 3)) * d) * d + 1.0; };
  const auto far = [](const Tensor& d) { return ((d * kA - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  const Tensor first = floor(position), rest = position - first;
  const auto at = [&](double offset) { return axis.padded(first + offset); };
  return {{at(-1), far(rest + 1.0)},
          {at(0), near(rest)},
          {at(1), near(1.0 - rest)},
          {at(2), far(2.0 - rest)}};
}

struct GridSample : op::GridSample, Family {
  static constexpr OpInfo info{
      name, "(x, grid) -> y",
      "x [batch, channels, height, width] at the positions grid [batch, out height, out width, 2], "
      "(x, y) from -1 to 1.",
      "GridSample"};
  static void infer(InferContext& c, const Attrs&) {
    c.require_float(0);
    c.require_same_dtype(0, 1);
    c.require_rank(0, 4);
    c.require_rank(1, 4);
    const Shape &x = c.shape(0), &grid = c.shape(1);
    if (grid[0] != x[0] || grid[3] != 2)
      c.fail("grid must be [batch of x, height, width, 2]: " + c.describe_inputs());
    if (x[2] == 0 || x[3] == 0) c.fail("x has no elements to read: " + c.describe_inputs());
    c.result({c.in(0).dtype, {x[0], x[1], grid[1], grid[2]}});
  }
  // Positions need more digits than halves have.
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    const Tensor &x = c.in(0), &grid = c.in(1);
    if (x.dtype() != f16 && x.dtype() != bf16) return sampled(x, grid, a);
    return cast(sampled(cast(x, f32), cast(grid, f32), a), x.dtype());
  }
  static Tensor sampled(const Tensor& x, const Tensor& grid, const Attrs& a) {
    const Shape& places = grid.shape();
    const Image image(x, places, a.padding, a.align_corners);
    const auto coordinate = [&](std::int64_t k) {
      return reshape(slice_axis(grid, 3, k, k + 1), {places[0], 1, places[1] * places[2]});
    };
    const Tensor across = image.across.position(coordinate(0)),
                 down = image.down.position(coordinate(1));
    const IntList shape{x.dim(0), x.dim(1), places[1], places[2]};
    if (a.mode == GridMode::nearest)
      return reshape(
          image.at(round(image.across.padded(across)), round(image.down.padded(down)), {}), shape);
    const auto neighbours = a.mode == GridMode::bilinear ? linear_neighbours : cubic_neighbours;
    const std::vector<Neighbour> columns = neighbours(image.across, across),
                                 rows = neighbours(image.down, down);
    std::vector<Tensor> parts;
    for (const Neighbour& row : rows)
      for (const Neighbour& column : columns)
        parts.push_back(image.at(column.at, row.at, column.weight * row.weight));
    return reshape(add_n(parts), shape);
  }
  static std::vector<Sample> samples() {
    const auto with = [](Shape x, Shape grid, const Attrs& a) {
      return sample({floats(std::move(x)), floats(std::move(grid), -1.4, 1.4)}, a);
    };
    return {with({2, 3, 4, 5}, {2, 3, 2, 2}, {}),
            with({1, 2, 3, 3}, {1, 2, 4, 2}, {GridMode::bilinear, GridPadding::border, true}),
            with({1, 1, 3, 4}, {1, 3, 3, 2}, {GridMode::bilinear, GridPadding::reflection, false}),
            with({1, 2, 3, 4}, {1, 2, 3, 2}, {GridMode::nearest, GridPadding::reflection, true}),
            with({2, 1, 4, 4}, {2, 2, 2, 2}, {GridMode::bicubic, GridPadding::zeros, true}),
            with({1, 1, 1, 1}, {1, 0, 2, 2}, {GridMode::nearest, GridPadding::border, false})};
  }
};

}  // namespace

std::vector<const OpDef*> grid_ops() { return family<GridSample>(); }

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor grid_sample(Operand x, Operand grid, const GridSampleOptions& o) {
  return make<GridSample>({x, grid}, {o.mode, o.padding, o.align_corners});
}

}  // namespace pantala
