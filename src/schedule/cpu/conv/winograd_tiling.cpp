// How Winograd's convolutions are cut: the order of their sums, which is part of their meaning, and
// the tiling, which is not; and what both cost.
#include <algorithm>
#include <limits>

#include "schedule/cpu/conv/winograd_parts.h"

namespace pantala::schedule::cpu {

namespace {

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up_to(std::int64_t a, std::int64_t b) { return up(a, b) * b; }

// Parts of nearly equal size, multiples of `multiple`, of about `most` at most.
std::int64_t even_part(std::int64_t size, std::int64_t most, std::int64_t multiple) {
  if (size <= most) return size;
  return round_up_to(up(size, up(size, most)), multiple);
}

// Tiles that one item of a kernel transforms: some thousand cycles of work.
std::int64_t image_tiles(std::int64_t channels, int lanes) {
  return std::clamp<std::int64_t>(32 / up(channels, lanes), 1, 16);
}

std::int64_t slice_tiles(const WinogradOrder& order, const WinogradView& v, std::int64_t slice) {
  return std::min(order.slice_tiles, v.tiles - slice * order.slice_tiles);
}

}  // namespace

bool has_winograd(const ConvSizes& sizes, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  if (sizes.axes.size() != 2 || sizes.groups != 1) return false;
  if (sizes.batch < 1 || sizes.in < 1 || sizes.out < 1) return false;
  return std::ranges::all_of(sizes.axes, [](const ConvAxis& a) {
    return a.kernel == 3 && a.stride == 1 && a.dilation == 1;
  });
}

WinogradSpec winograd_spec(ConvDirection direction, DType dtype, const ConvSizes& sizes,
                           const ConvStrides& strides, int side) {
  const std::vector<std::int64_t>& w = strides.weight;
  WinogradSpec spec{.conv = conv_spec(direction, dtype, sizes, strides), .side = side};
  if (spec.conv.second_contiguous)
    spec.weights = WinogradWeights::lanes;
  else if (w[2] == 3 && w[3] == 1)
    spec.weights = direction == ConvDirection::forward && w[1] == 9 ? WinogradWeights::rows
                                                                    : WinogradWeights::kernels;
  return spec;
}

WinogradView winograd_view(const WinogradSpec& spec, const ConvSizes& s) {
  const bool is_input = spec.conv.direction == ConvDirection::input_grad;
  WinogradView v{.batch = s.batch,
                 .channels = is_input ? s.out : s.in,
                 .lane_channels = is_input ? s.in : s.out,
                 .window = {},
                 .result = {},
                 .padding = {},
                 .tiles_of = {},
                 .tiles = s.batch};
  for (std::size_t k = 0; k < 2; ++k) {
    const ConvAxis& a = s.axes[k];
    v.window[k] = is_input ? a.y() : a.x;
    v.result[k] = is_input ? a.x : a.y();
    v.padding[k] = is_input ? 2 - a.padding : a.padding;
    v.tiles_of[k] = up(v.result[k], spec.side);
    v.tiles *= v.tiles_of[k];
  }
  return v;
}

WinogradOrder winograd_order(const WinogradSpec& spec, const ConvSizes& sizes) {
  const WinogradView v = winograd_view(spec, sizes);
  WinogradOrder order;
  // The transformed weights of a block and a panel of lanes leave room in L2 for the sums.
  order.channels = even_part(v.channels, 64, 16);
  if (spec.conv.direction != ConvDirection::weight_grad) return order;
  // Both transformed operands of a slice stay in L3.
  constexpr std::int64_t kSliceBytes = 4 << 20, kLeast = 128;
  const std::int64_t bytes =
      spec.points() * (v.channels + v.lane_channels) * dtype_bytes(spec.conv.dtype);
  order.slice_tiles = even_part(v.tiles, std::max(kLeast, kSliceBytes / bytes), 1);
  order.slices = up(v.tiles, order.slice_tiles);
  order.tiles = even_part(order.slice_tiles, 256, 1);
  return order;
}

WinogradTiling complete(WinogradTiling t, const WinogradSpec& spec, const ConvSizes& sizes,
                        const WinogradOrder& order) {
  const WinogradView v = winograd_view(spec, sizes);
  const bool is_weight = spec.conv.direction == ConvDirection::weight_grad;
  if (is_weight) t.shared_window = t.shared_weight = true;
  t.single_block = is_weight ? order.tiles >= order.slice_tiles : order.channels >= v.channels;
  // Rows that a register tile reads beyond the channels, and no power of two between tiles.
  t.pitch = round_up_to(v.channels, t.lanes) + round_up_to(t.rows, t.lanes);
  t.chunk = is_weight || t.shared_weight ? 0 : std::min(order.channels, v.channels);
  return t;
}

namespace {

// What the launches are made of; cycles per vector, measured on cores with two fma units.
class Costs {
 public:
  Costs(const WinogradSpec& spec, const ConvSizes& sizes, const WinogradOrder& order,
        const WinogradTiling& t, const Target& target, int workers)
      : spec_(spec),
        v_(winograd_view(spec, sizes)),
        order_(order),
        t_(t),
        target_(target),
        workers_(workers),
        bytes_(static_cast<double>(dtype_bytes(spec.conv.dtype))) {}

  double of(WinogradKernel kernel) const {
    const bool is_weight = spec_.conv.direction == ConvDirection::weight_grad;
    const double tiles = static_cast<double>(is_weight ? order_.slice_tiles : v_.tiles);
    switch (kernel) {
      case WinogradKernel::window:
        return t_.shared_window ? shared(tiles * vectors(v_.channels) * window()) : 0;
      case WinogradKernel::gradient:
        return shared(tiles * vectors(v_.lane_channels) * gradient());
      case WinogradKernel::weight:
        return t_.shared_weight
                   ? shared(static_cast<double>(v_.channels) * vectors(v_.lane_channels) * weight())
                   : 0;
      case WinogradKernel::result:
        return result();
      case WinogradKernel::weight_gradient:
        break;
    }
    return weight_gradient();
  }

 private:
  static constexpr double kItem = 400, kFarByte = 1.0 / 12, kBlock = 20, kLaunch = 1500;
  double points() const { return spec_.points(); }
  double vectors(std::int64_t channels) const {
    return static_cast<double>(up(channels, t_.lanes));
  }
  // A launch whose cycles are shared out evenly.
  double shared(double cycles) const { return cycles / workers_ + kLaunch; }
  // Of one vector of channels; transforms, and what is loaded and stored.
  double window() const { return (spec_.side == 4 ? 75 : 20) + 2 * points(); }
  double gradient() const { return (spec_.side == 4 ? 55 : 16) + 1.5 * points(); }
  double finish() const { return (spec_.side == 4 ? 65 : 20) + 2.5 * points(); }
  double weight() const {
    constexpr double kLoad[] = {10, 60, 90, 500};
    return (spec_.side == 4 ? 45 : 25) + points() + kLoad[static_cast<int>(spec_.weights)];
  }
  double step() const {
    const double loads = t_.rows + t_.vectors;
    return std::max({0.5 * t_.rows * t_.vectors, 0.5 * loads, 4.0}) + 0.1 * loads;
  }
  // Products of one point for register tiles over `depth` in blocks.
  double products(double tiles, double depth, double blocks) const {
    return tiles * (depth * step() + blocks * (kBlock + 2.5 * t_.rows * t_.vectors));
  }
  double beyond(double footprint) const {
    return footprint * bytes_ > 0.75 * static_cast<double>(target_.l2_bytes) ? 1.3 : 1;
  }

  double result() const {
    const double rows = static_cast<double>(std::min(t_.row_block, round_up_to(v_.tiles, t_.rows)));
    const double panels =
        static_cast<double>(up(std::min(t_.lane_block, v_.lane_channels), t_.columns()));
    const double channels = static_cast<double>(v_.channels);
    const double blocks = static_cast<double>(up(v_.channels, order_.channels));
    const double columns = t_.columns();
    double cycles = kItem;
    if (!t_.shared_window) cycles += rows * vectors(v_.channels) * window();
    if (!t_.shared_weight) cycles += panels * channels * t_.vectors * weight();
    cycles += panels * points() * products(rows / t_.rows, channels, blocks);
    cycles += panels * t_.vectors * rows * finish();
    // Every panel reads all rows, and an item all of its weights.
    const double window_size = points() * rows * channels;
    if (t_.shared_weight) cycles += panels * points() * channels * columns * bytes_ * kFarByte;
    if (t_.shared_window) cycles += panels * window_size * bytes_ * kFarByte;
    const double chunk = static_cast<double>(std::min(order_.channels, v_.channels));
    cycles *= beyond(points() * (rows * columns + chunk * columns) +
                     (t_.shared_window ? 0 : window_size));
    return cycles *
               static_cast<double>(
                   up(up(v_.tiles, t_.row_block) * up(v_.lane_channels, t_.lane_block), workers_)) +
           kLaunch;
  }

  double weight_gradient() const {
    const double rows =
        static_cast<double>(std::min(t_.row_block, round_up_to(v_.channels, t_.rows)));
    const double panels =
        static_cast<double>(up(std::min(t_.lane_block, v_.lane_channels), t_.columns()));
    const double depth = static_cast<double>(order_.slice_tiles), columns = t_.columns();
    const double blocks = static_cast<double>(up(order_.slice_tiles, order_.tiles));
    double cycles = kItem + points() * panels * products(rows / t_.rows, depth, blocks);
    cycles += rows * panels * t_.vectors *
              (finish() + (spec_.conv.result_contiguous ? 9
                           : spec_.result_rows          ? 60
                                                        : 160));
    cycles += points() * depth * (rows + panels * columns) * bytes_ * kFarByte;
    cycles *= beyond(points() * rows * panels * columns + 2 * depth * (rows + panels * columns));
    return cycles *
               static_cast<double>(up(
                   up(v_.channels, t_.row_block) * up(v_.lane_channels, t_.lane_block), workers_)) +
           kLaunch;
  }

  const WinogradSpec& spec_;
  const WinogradView v_;
  const WinogradOrder& order_;
  const WinogradTiling& t_;
  const Target& target_;
  const int workers_;
  const double bytes_;
};

// Multiples of `unit` that cut `size` into ever fewer parts.
std::vector<std::int64_t> blocks_of(std::int64_t size, std::int64_t unit) {
  std::vector<std::int64_t> list;
  for (std::int64_t parts = up(size, unit); parts >= 1;
       parts = parts > 8 ? parts * 3 / 4 : parts - 1) {
    const std::int64_t block = round_up_to(up(size, parts), unit);
    if (list.empty() || list.back() != block) list.push_back(block);
  }
  return list;
}

}  // namespace

double estimate(WinogradKernel kernel, const WinogradSpec& spec, const ConvSizes& sizes,
                const WinogradOrder& order, const WinogradTiling& tiling, const Target& target,
                int workers) {
  return Costs(spec, sizes, order, tiling, target, workers).of(kernel);
}

double estimate(const WinogradSpec& spec, const ConvSizes& sizes, const WinogradOrder& order,
                const WinogradTiling& tiling, const Target& target, int workers) {
  const Costs costs(spec, sizes, order, tiling, target, workers);
  double cycles = 0;
  for (const WinogradLaunch& launch : winograd_launches(spec, order))
    cycles += costs.of(launch.kernel);
  return cycles;
}

std::vector<WinogradLaunch> winograd_launches(const WinogradSpec& spec,
                                              const WinogradOrder& order) {
  using enum WinogradKernel;
  if (spec.conv.direction != ConvDirection::weight_grad)
    return {{window, 0}, {weight, 0}, {result, 0}};
  std::vector<WinogradLaunch> list;
  for (std::int64_t slice = 0; slice < order.slices; ++slice)
    for (const WinogradKernel kernel : {window, gradient, weight_gradient})
      list.push_back({kernel, slice});
  return list;
}

std::vector<WinogradTiling> best_of_each_kind(const WinogradSpec& spec, const ConvSizes& sizes,
                                              const WinogradOrder& order, const Target& target,
                                              int workers) {
  const WinogradView v = winograd_view(spec, sizes);
  const bool is_weight = spec.conv.direction == ConvDirection::weight_grad;
  std::vector<std::pair<double, WinogradTiling>> list;
  const auto blocked = [&](WinogradTiling t) {
    WinogradTiling best;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int64_t row_block : blocks_of(is_weight ? v.channels : v.tiles, t.rows))
      for (const std::int64_t lane_block : blocks_of(v.lane_channels, t.columns())) {
        t.row_block = row_block, t.lane_block = lane_block;
        const double cycles = estimate(spec, sizes, order, t, target, workers);
        if (cycles < least) least = cycles, best = t;
      }
    list.emplace_back(least, complete(best, spec, sizes, order));
  };
  WinogradTiling t{.lanes = target.lanes(spec.conv.dtype)};
  for (t.vectors = 1; t.vectors <= 2; ++t.vectors) {
    if (t.vectors > 1 && t.lanes >= v.lane_channels) break;
    const int most = std::min(14, (target.vector_registers - t.vectors - 1) / t.vectors);
    for (t.rows = std::max(1, most / 2); t.rows <= most; ++t.rows)
      for (const int sharing : is_weight ? std::vector{3} : std::vector{0, 1, 2, 3}) {
        t.shared_window = (sharing & 1) != 0, t.shared_weight = (sharing & 2) != 0;
        blocked(t);
      }
  }
  std::ranges::stable_sort(list, {}, [](const auto& one) { return one.first; });
  std::vector<WinogradTiling> tilings;
  for (const auto& [cycles, tiling] : list) tilings.push_back(tiling);
  return tilings;
}

WinogradTiling choose_winograd_tiling(const WinogradSpec& spec, const ConvSizes& sizes,
                                      const WinogradOrder& order, const Target& target,
                                      int workers) {
  return best_of_each_kind(spec, sizes, order, target, workers)[0];
}

std::vector<std::int64_t> winograd_params(WinogradKernel kernel, const WinogradSpec& spec,
                                          const ConvSizes& sizes, const ConvStrides& strides,
                                          const WinogradOrder& order, const WinogradTiling& t,
                                          std::int64_t slice) {
  const WinogradView v = winograd_view(spec, sizes);
  const bool is_input = spec.conv.direction == ConvDirection::input_grad,
             is_weight = spec.conv.direction == ConvDirection::weight_grad,
             is_gradient = kernel == WinogradKernel::gradient;
  const std::vector<std::int64_t>& image = is_gradient || is_input ? strides.y : strides.x;
  const std::vector<std::int64_t> result = !is_weight         ? is_input ? strides.x : strides.y
                                           : order.slices > 1 ? partial_strides(sizes)
                                                              : strides.weight;
  const std::vector<std::int64_t>& w = strides.weight;
  WinogradNumbers<std::int64_t> n{};
  n.channels = is_gradient ? v.lane_channels : v.channels, n.lane_channels = v.lane_channels;
  const auto& window = is_gradient ? v.result : v.window;
  n.window_h = window[0], n.window_w = window[1];
  n.padding_h = is_gradient ? 0 : v.padding[0], n.padding_w = is_gradient ? 0 : v.padding[1];
  n.result_h = v.result[0], n.result_w = v.result[1];
  n.tiles_h = v.tiles_of[0], n.tiles_w = v.tiles_of[1];
  n.tile0 = is_weight ? slice * order.slice_tiles : 0;
  n.tiles = is_weight ? slice_tiles(order, v, slice) : v.tiles;
  n.window_outer = image[0], n.window_channel = image[1];
  n.window_row = image[2], n.window_column = image[3];
  // The gradient of the input takes the kernel turned by half.
  n.weight_at = is_input ? 2 * (w[2] + w[3]) : 0;
  n.weight_lane = w[is_input ? 1 : 0], n.weight_channel = w[is_input ? 0 : 1];
  n.weight_row = is_input ? -w[2] : w[2], n.weight_column = is_input ? -w[3] : w[3];
  n.result_at = is_weight && order.slices > 1 ? slice * sizes.in * sizes.out * 9 : 0;
  n.result_outer = result[0], n.result_channel = result[1];
  n.result_row = result[2], n.result_column = result[3];
  n.channel_block = is_weight ? order.tiles : order.channels;
  n.row_block = t.row_block, n.lane_block = t.lane_block;
  n.lane_blocks = up(v.lane_channels, t.lane_block);
  if (kernel == WinogradKernel::window || is_gradient)
    n.row_block = image_tiles(n.channels, t.lanes);
  if (kernel == WinogradKernel::weight)
    n.row_block = t.lanes, n.lane_blocks = up(v.lane_channels, t.columns());
  const std::int64_t tiles = is_weight ? order.slice_tiles : v.tiles;
  n.window_point = round_up_to(tiles, t.rows) * t.pitch + kPointGap;
  if (is_weight) {
    n.weight_panel = tiles * t.columns();
    n.weight_point = up(v.lane_channels, t.columns()) * n.weight_panel + kPointGap;
  } else {
    n.weight_point = v.channels * t.columns() + kPointGap;
    n.weight_panel = spec.points() * n.weight_point;
  }
  std::vector<std::int64_t> list;
  WinogradNumbers<std::int64_t>::fields(
      [&](const char*, std::int64_t value) { list.push_back(value); }, n);
  return list;
}

std::int64_t winograd_items(WinogradKernel kernel, const WinogradSpec& spec, const ConvSizes& sizes,
                            const WinogradOrder& order, const WinogradTiling& t,
                            std::int64_t slice) {
  const WinogradView v = winograd_view(spec, sizes);
  const bool is_weight = spec.conv.direction == ConvDirection::weight_grad;
  const std::int64_t tiles = is_weight ? slice_tiles(order, v, slice) : v.tiles;
  switch (kernel) {
    case WinogradKernel::window:
      return t.shared_window ? up(tiles, image_tiles(v.channels, t.lanes)) : 0;
    case WinogradKernel::gradient:
      return up(tiles, image_tiles(v.lane_channels, t.lanes));
    case WinogradKernel::weight:
      return t.shared_weight ? up(v.lane_channels, t.columns()) * up(v.channels, t.lanes) : 0;
    case WinogradKernel::result:
      return up(v.tiles, t.row_block) * up(v.lane_channels, t.lane_block);
    case WinogradKernel::weight_gradient:
      break;
  }
  return up(v.channels, t.row_block) * up(v.lane_channels, t.lane_block);
}

std::int64_t winograd_elements(WinogradKernel kernel, const WinogradSpec& spec,
                               const ConvSizes& sizes, const WinogradOrder& order,
                               const WinogradTiling& t) {
  const WinogradView v = winograd_view(spec, sizes);
  const bool is_weight = spec.conv.direction == ConvDirection::weight_grad;
  const std::int64_t tiles = is_weight ? order.slice_tiles : v.tiles;
  const std::int64_t panels = up(v.lane_channels, t.columns());
  switch (kernel) {
    case WinogradKernel::window:
      return spec.points() * (round_up_to(tiles, t.rows) * t.pitch + kPointGap);
    case WinogradKernel::gradient:
      return spec.points() * (panels * tiles * t.columns() + kPointGap);
    default:
      return spec.points() * panels * (v.channels * t.columns() + kPointGap);
  }
}

}  // namespace pantala::schedule::cpu
