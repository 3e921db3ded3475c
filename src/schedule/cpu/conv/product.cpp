#include "schedule/cpu/conv/product.h"

#include <algorithm>

namespace pantala::schedule::cpu {

namespace {

// The stride from one place to the next over images and places, for an image with its channels
// next to each other; nothing if places do not follow each other.
std::optional<std::int64_t> place_stride(const std::vector<std::int64_t>& strides,
                                         const ConvSizes& sizes, std::int64_t channels) {
  if (channels > 1 && strides[1] != 1) return std::nullopt;
  std::int64_t stride = 0, extent = 1;
  const auto walks_on = [&](std::int64_t size, std::int64_t by) {
    if (size == 1) return true;
    if (extent == 1) stride = by;
    if (by != stride * extent) return false;
    extent *= size;
    return true;
  };
  for (std::size_t axis = sizes.axes.size(); axis-- > 0;)
    if (!walks_on(sizes.axes[axis].x, strides[axis + 2])) return std::nullopt;
  if (!walks_on(sizes.batch, strides[0])) return std::nullopt;
  return extent == 1 ? channels : stride;
}

std::vector<int> places(int rank) {
  std::vector<int> dims{0};
  for (int d = 2; d < rank; ++d) dims.push_back(d);
  return dims;
}

}  // namespace

std::optional<ConvProduct> conv_product(ConvDirection direction, DType dtype,
                                        const ConvSizes& sizes, const ConvStrides& strides,
                                        const ElementwiseBody& body, const Target& target) {
  const auto x = place_stride(strides.x, sizes, sizes.in),
             y = place_stride(strides.y, sizes, sizes.out);
  if (!x || !y || sizes.positions() == 0) return std::nullopt;
  if (strides.weight[1] != 1 && sizes.in > 1) return std::nullopt;
  const std::int64_t weight = strides.weight[0];
  const std::vector<Affine> walks = all_walks(body);
  const auto loops = [&](const std::vector<int>& dims) {
    return collapse(body.domain, dims, walks, body.footprint.counted);
  };
  ConvProduct p;
  switch (direction) {
    case ConvDirection::forward:  // y[place, out] of x[place, in] and weight[out, in]
      p.spec = {dtype, true, true, true};
      p.sizes = {1, sizes.positions(), sizes.out, sizes.in};
      p.strides = {0, *x, 0, weight, 0, *y};
      break;
    case ConvDirection::input_grad:  // x[place, in] of y[place, out] and weight[out, in]
      p.spec = {dtype, true, false, true};
      p.sizes = {1, sizes.positions(), sizes.in, sizes.out};
      p.strides = {0, *y, 0, weight, 0, *x};
      break;
    case ConvDirection::weight_grad:  // weight[out, in] of x[place, in] and y[place, out]
      p.spec = {dtype, false, false, false};
      p.sizes = {1, sizes.in, sizes.out, sizes.positions()};
      p.strides = {0, *x, 0, *y, 0, weight};
      break;
  }
  const bool is_weight = direction == ConvDirection::weight_grad;
  p.m = is_weight ? loops({1}) : loops(places(sizes.rank()));
  p.n = is_weight ? loops({0}) : loops({1});
  if (p.m.size() > 1 || p.n.size() > 1) return std::nullopt;
  p.order = reduction_order(p.sizes, false, false, dtype, target);
  return p;
}

ResultSite conv_site(const ConvProduct& product, int rank, const ResultSite& at) {
  ResultSite site = at;
  site.coordinates.assign(static_cast<std::size_t>(rank), kir::Var());
  const auto enter = [&](const std::vector<Loop>& loops, kir::Var index, bool has_lanes) {
    if (loops.empty()) return;
    site.coordinates[loops[0].dim.index()] = index;
    if (has_lanes) site.lane_dim = static_cast<int>(loops[0].dim.index());
  };
  enter(product.m, at.m, !at.lanes_along_n);
  enter(product.n, at.n, at.lanes_along_n);
  return site;
}

}  // namespace pantala::schedule::cpu
