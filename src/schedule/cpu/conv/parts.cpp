#include "schedule/cpu/conv/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pantala/error.h"

namespace pantala::schedule::cpu {

namespace {

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The inverse of a modulo m; a and m have no common divisor.
std::int64_t inverse_modulo(std::int64_t a, std::int64_t m) {
  for (std::int64_t i = 0; i < m; ++i)
    if (a % m * i % m == 1 % m) return i;
  return 0;
}

// Of a stride in front of the spatial ones: axes that a tensor does not have.
std::int64_t spatial_stride(const std::vector<std::int64_t>& strides, std::size_t axis) {
  const std::size_t missing = 5 - strides.size();
  return axis < missing ? 0 : strides[axis - missing + 2];
}

std::vector<std::int64_t> row_major_strides(std::int64_t outer, std::int64_t channels,
                                            std::vector<std::int64_t> spatial) {
  std::vector<std::int64_t> sizes{outer, channels};
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t k = sizes.size() - 1; k > 0; --k) strides[k - 1] = strides[k] * sizes[k];
  return strides;
}
std::vector<std::int64_t> channels_last_strides(std::int64_t channels,
                                                const std::vector<std::int64_t>& spatial) {
  std::vector<std::int64_t> strides(spatial.size() + 2, 1);
  std::int64_t step = channels;
  for (std::size_t k = spatial.size(); k > 0; --k) {
    strides[k + 1] = step;
    step *= spatial[k - 1];
  }
  strides[0] = step;
  return strides;
}
// Elements of a block of the weight's panels.
std::int64_t panel_block(const ConvView& v, const ConvOrder& order, const ConvTiling& t) {
  return std::min(order.taps, v.all_taps()) * std::min(order.channels, v.channels) * t.vectors *
         t.lanes;
}

template <class F>
std::vector<std::int64_t> per_axis(const ConvSizes& sizes, const F& f) {
  std::vector<std::int64_t> list;
  for (const ConvAxis& a : sizes.axes) list.push_back(f(a));
  return list;
}

}  // namespace

ConvStrides ConvStrides::row_major(const ConvSizes& s) {
  return {row_major_strides(s.batch, s.in, per_axis(s, [](const ConvAxis& a) { return a.x; })),
          row_major_strides(s.out, s.in / s.groups,
                            per_axis(s, [](const ConvAxis& a) { return a.kernel; })),
          row_major_strides(s.batch, s.out, per_axis(s, [](const ConvAxis& a) { return a.y(); }))};
}
ConvStrides ConvStrides::channels_last(const ConvSizes& s) {
  return {channels_last_strides(s.in, per_axis(s, [](const ConvAxis& a) { return a.x; })),
          row_major(s).weight,
          channels_last_strides(s.out, per_axis(s, [](const ConvAxis& a) { return a.y(); }))};
}

std::vector<std::int64_t> partial_strides(const ConvSizes& s) {
  std::vector<std::int64_t> strides = row_major_strides(
      1, s.in / s.groups, per_axis(s, [](const ConvAxis& a) { return a.kernel; }));
  for (std::int64_t& stride : strides) stride *= s.out;
  strides[0] = 1;
  return strides;
}

void keep_sums(kir::Builder& b, kir::BufferId into, const std::vector<kir::Var>& sums, kir::Var at,
               kir::Var is_first) {
  const auto write = [&](bool add) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const int lanes = sums[i].lanes();
      const kir::Var to = at + static_cast<std::int64_t>(i) * lanes;
      b.store(into, to, add ? b.load(into, to, lanes) + sums[i] : sums[i]);
    }
    return std::vector<kir::Var>{};
  };
  if (!is_first.valid())
    write(false);
  else
    b.branch(is_first, [&] { return write(false); }, [&] { return write(true); });
}

void check_sizes(const ConvSizes& s) {
  if (s.axes.empty() || s.axes.size() > 3)
    throw InternalError(fmt::format("a convolution over {} spatial axes", s.axes.size()));
  if (s.batch < 0 || s.groups < 1 || s.in < 0 || s.out < 0 || s.in % s.groups != 0 ||
      s.out % s.groups != 0)
    throw InternalError(fmt::format("a convolution of {} images, {} -> {} channels in {} groups",
                                    s.batch, s.in, s.out, s.groups));
  for (const ConvAxis& a : s.axes)
    if (a.x < 1 || a.kernel < 1 || a.stride < 1 || a.padding < 0 || a.dilation < 1 || a.y() < 1 ||
        a.x + 2 * a.padding < a.dilation * (a.kernel - 1) + 1)
      throw InternalError(fmt::format(
          "a convolution along an axis of size {}, kernel {}, stride {}, padding {}, dilation {}",
          a.x, a.kernel, a.stride, a.padding, a.dilation));
}

ConvSpec conv_spec(ConvDirection direction, DType dtype, const ConvSizes& sizes,
                   const ConvStrides& s) {
  check_sizes(sizes);
  const auto rank = static_cast<std::size_t>(sizes.rank());
  if (s.x.size() != rank || s.weight.size() != rank || s.y.size() != rank)
    throw InternalError(fmt::format("strides of ranks {}, {} and {} for a convolution of rank {}",
                                    s.x.size(), s.weight.size(), s.y.size(), rank));
  ConvSpec spec{
      .direction = direction, .dtype = dtype, .rank = sizes.rank(), .depthwise = sizes.depthwise()};
  std::int64_t step = 1;
  for (std::size_t k = rank; k > 1; --k) {
    const std::int64_t size = k == 2 ? sizes.in / sizes.groups : sizes.axes[k - 3].kernel;
    spec.weight_dense = spec.weight_dense && (size == 1 || s.weight[k - 1] == step);
    step *= size;
  }
  switch (direction) {
    case ConvDirection::forward:
      spec.first_contiguous = s.x[1] == 1;
      spec.second_contiguous = s.weight[0] == 1;
      spec.result_contiguous = s.y[1] == 1;
      break;
    case ConvDirection::input_grad:
      spec.first_contiguous = s.y[1] == 1;
      spec.second_contiguous = s.weight[sizes.depthwise() ? 0 : 1] == 1;
      spec.result_contiguous = s.x[1] == 1;
      break;
    case ConvDirection::weight_grad:
      spec.first_contiguous = s.x[1] == 1;
      spec.second_contiguous = s.y[1] == 1;
      spec.result_contiguous = s.weight[0] == 1;
      break;
  }
  return spec;
}

ConvView conv_view(ConvDirection direction, const ConvSizes& s) {
  const bool grad = direction == ConvDirection::input_grad;
  ConvView v{};
  v.batch = s.batch;
  v.groups = s.depthwise() ? 1 : s.groups;
  v.channels = s.depthwise() ? 1 : (grad ? s.out : s.in) / s.groups;
  v.lane_channels = (grad ? s.in : s.out) / v.groups;
  for (std::size_t k = 0; k < s.axes.size(); ++k) v.axes[3 - s.axes.size() + k] = s.axes[k];
  for (std::size_t k = 0; k < 3; ++k) {
    const ConvAxis& a = v.axes[k];
    const std::int64_t common = std::gcd(a.stride, a.dilation);
    v.phases[k] = grad ? a.stride : 1;
    v.positions[k] = grad ? up(a.x, a.stride) : a.y();
    v.taps[k] = grad ? up(a.kernel, a.stride / common) : a.kernel;
    const std::int64_t row = grad ? 1 : a.stride;
    const std::int64_t tap = v.taps[k] == 1 ? 0 : grad ? a.dilation / common : a.dilation;
    v.gap[k] = std::gcd(row, tap);
    v.row_step[k] = row / v.gap[k];
    v.tap_step[k] = tap / v.gap[k];
  }
  return v;
}

std::array<std::int64_t, 4> conv_boxes(const ConvView& v, const std::array<std::int64_t, 4>& box) {
  return {up(v.batch, box[0]), up(v.positions[0], box[1]), up(v.positions[1], box[2]),
          up(v.positions[2], box[3])};
}

std::int64_t slab_plane(const ConvView& v, const std::array<std::int64_t, 4>& box) {
  std::int64_t plane = 1;
  for (std::size_t k = 0; k < 3; ++k)
    plane *= v.row_step[k] * (std::min(box[k + 1], v.positions[k]) - 1) +
             v.tap_step[k] * (v.taps[k] - 1) + 1;
  return plane;
}

ConvNumbers<std::int64_t> conv_numbers(const ConvSpec& spec, const ConvSizes& sizes,
                                       const ConvStrides& strides, const ConvOrder& order,
                                       const ConvTiling& tiling) {
  const ConvDirection direction = spec.direction;
  const bool grad = direction == ConvDirection::input_grad,
             weight = direction == ConvDirection::weight_grad;
  const ConvView v = conv_view(direction, sizes);
  const std::vector<std::int64_t>& window = grad ? strides.y : strides.x;
  const std::vector<std::int64_t>& second = weight ? strides.y : strides.weight;
  const std::vector<std::int64_t> result = order.slices > 1 ? partial_strides(sizes)
                                           : weight         ? strides.weight
                                           : grad           ? strides.x
                                                            : strides.y;
  ConvNumbers<std::int64_t> n{};
  n.batch = v.batch, n.groups = v.groups;
  n.channels = v.channels, n.lane_channels = v.lane_channels;
  for (std::size_t k = 0; k < 3; ++k) {
    const ConvAxis& a = v.axes[k];
    const std::int64_t common = std::gcd(a.stride, a.dilation), step = a.stride / common;
    n.axes[k] = {.window = grad ? a.y() : a.x,
                 .results = grad ? a.x : a.y(),
                 .kernel = a.kernel,
                 .stride = a.stride,
                 .padding = a.padding,
                 .dilation = a.dilation,
                 .gap = v.gap[k],
                 .row_step = v.row_step[k],
                 .tap_step = v.tap_step[k],
                 .common = common,
                 .kernel_step = step,
                 .reach = a.dilation / common,
                 .inverse = inverse_modulo(a.dilation / common, step),
                 .window_stride = spatial_stride(window, k),
                 .second_stride = spatial_stride(second, k),
                 .result_stride = spatial_stride(result, k)};
  }
  n.window_outer = window[0], n.window_channel = window[1];
  n.second_outer = second[0], n.second_channel = second[1];
  n.result_outer = result[0], n.result_channel = result[1];
  n.channel_block = weight ? tiling.channel_block : order.channels;
  n.tap_block = order.taps;
  n.lane_block = tiling.lane_block;
  n.box = weight ? order.box : tiling.box;
  n.channel_blocks = up(v.channels, n.channel_block);
  n.lane_blocks = up(v.lane_channels, n.lane_block);
  n.boxes = conv_boxes(v, n.box);
  n.slices = order.slices, n.slice_blocks = order.slice_blocks;
  n.slice_stride = conv_partials(sizes, order) / order.slices;
  n.tap_blocks = up(v.all_taps(), order.taps);
  n.block_size = panel_block(v, order, tiling);
  return n;
}

kir::Var take_digit(kir::Var& rest, kir::Var count) {
  const kir::Var digit = rest % count;
  rest = rest / count;
  return digit;
}

ConvNumbers<kir::Var> declare_numbers(kir::Builder& b, int rank) {
  ConvNumbers<kir::Var> n;
  int count = 0;
  ConvNumbers<kir::Var>::fields(
      [&](const char* field, kir::Var& value) {
        value = b.param(fmt::format("{}_{}", field, count++));
      },
      n);
  for (std::size_t k = 0; k < 3; ++k) {
    if (static_cast<int>(k) >= 5 - rank) continue;
    ConvAxisNumbers<kir::Var>::fields([&](const char*, kir::Var& value) { value = b.i64(1); },
                                      n.axes[k]);
    for (kir::Var* none : {&n.axes[k].padding, &n.axes[k].tap_step, &n.axes[k].window_stride,
                           &n.axes[k].second_stride, &n.axes[k].result_stride})
      *none = b.i64(0);
    n.box[k + 1] = n.boxes[k + 1] = b.i64(1);
  }
  return n;
}

PhaseTaps taps_of_phase(kir::Builder& b, const ConvAxisNumbers<kir::Var>& a, kir::Var phase) {
  const kir::Var distance = phase + a.padding;
  const kir::Var first = distance / a.common % a.kernel_step * a.inverse % a.kernel_step;
  return {first, b.select(eq(distance % a.common, 0),
                          max(ceil_div(a.kernel - first, a.kernel_step), 0), b.i64(0))};
}

std::vector<std::int64_t> conv_params(const ConvSpec& spec, const ConvSizes& sizes,
                                      const ConvStrides& strides, const ConvOrder& order,
                                      const ConvTiling& tiling) {
  std::vector<std::int64_t> list;
  const ConvNumbers<std::int64_t> n = conv_numbers(spec, sizes, strides, order, tiling);
  ConvNumbers<std::int64_t>::fields([&](const char*, std::int64_t value) { list.push_back(value); },
                                    n);
  return list;
}

std::int64_t conv_items(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                        const ConvTiling& tiling) {
  const ConvView v = conv_view(spec.direction, sizes);
  std::int64_t items = v.groups * up(v.lane_channels, tiling.lane_block);
  if (spec.direction == ConvDirection::weight_grad)
    return items * order.slices * up(v.channels, tiling.channel_block);
  for (const std::int64_t boxes : conv_boxes(v, tiling.box)) items *= boxes;
  return items * v.all_phases();
}

std::int64_t conv_panels(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                         const ConvTiling& tiling) {
  const ConvView v = conv_view(spec.direction, sizes);
  const std::int64_t columns = std::int64_t{tiling.vectors} * tiling.lanes;
  return std::max<std::int64_t>(v.groups * v.all_phases() * up(v.lane_channels, columns) *
                                    up(v.channels, order.channels) * up(v.all_taps(), order.taps) *
                                    panel_block(v, order, tiling),
                                1);
}

std::int64_t conv_weights_items(const ConvSpec& spec, const ConvSizes& sizes,
                                const ConvOrder& order, const ConvTiling& tiling) {
  const ConvView v = conv_view(spec.direction, sizes);
  return v.groups * up(v.lane_channels, std::int64_t{tiling.vectors} * tiling.lanes) *
         up(v.channels, order.channels);
}

std::int64_t conv_partials(const ConvSizes& sizes, const ConvOrder& order) {
  return order.slices * sizes.out * (sizes.in / sizes.groups) * sizes.taps();
}

}  // namespace pantala::schedule::cpu
