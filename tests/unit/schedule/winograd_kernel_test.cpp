// Winograd's convolutions: close to a plain sum in double, and the same bits whatever the tiling,
// the layout, the way to share transforms and the split of the items, interpreted and as machine
// code on memory that ends at a page that must not be touched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "schedule/cpu/conv/winograd.h"
#include "unit/schedule/kernel_runs.h"

namespace pantala::schedule::cpu::winograd_kernel_test {
namespace {

using codegen::Array;
using kernel_runs::expect_bits;
using kernel_runs::run_compiled;
using kernel_runs::run_interpreted;
using kernel_runs::target_of;
using kernel_runs::unique_name;
using kir::Builder;
using kir::Var;
using Ints = std::vector<std::int64_t>;

constexpr ConvDirection kDirections[] = {ConvDirection::forward, ConvDirection::input_grad,
                                         ConvDirection::weight_grad};

ConvSizes sizes_of(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t height,
                   std::int64_t width, std::int64_t padding) {
  return {
      batch, in, out, 1, {ConvAxis{height, 3, 1, padding, 1}, ConvAxis{width, 3, 1, padding, 1}}};
}
// A tensor of rank 4 in memory.
struct Tensor {
  Ints shape, strides;
  std::vector<float> values;  // row-major
  std::int64_t count() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  float* at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return &values[static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d)];
  }
  void each(const std::function<void(std::size_t flat, std::size_t place)>& f) const {
    std::size_t flat = 0;
    for (std::int64_t a = 0; a < shape[0]; ++a)
      for (std::int64_t b = 0; b < shape[1]; ++b)
        for (std::int64_t c = 0; c < shape[2]; ++c)
          for (std::int64_t d = 0; d < shape[3]; ++d)
            f(flat++, static_cast<std::size_t>(a * strides[0] + b * strides[1] + c * strides[2] +
                                               d * strides[3]));
  }
  Array memory() const {
    std::vector<float> list(values.size());
    each([&](std::size_t flat, std::size_t place) { list[place] = values[flat]; });
    return codegen::array_of(DType::f32, list);
  }
  std::vector<float> read(const Array& array) const {
    std::vector<float> list(values.size()), there(values.size());
    std::memcpy(there.data(), array.bytes.data(), array.bytes.size());
    each([&](std::size_t flat, std::size_t place) { list[flat] = there[place]; });
    return list;
  }
};

enum class Layout { channels_last, row_major, output_channels_last };

struct Problem {
  ConvDirection direction;
  ConvSizes sizes;
  ConvStrides strides;
  Tensor x, weight, y;  // the one that is asked for is empty

  Problem(ConvDirection way, const ConvSizes& s, Layout layout) : direction(way), sizes(s) {
    strides =
        layout == Layout::row_major ? ConvStrides::row_major(s) : ConvStrides::channels_last(s);
    if (layout == Layout::output_channels_last) {
      for (std::int64_t& stride : strides.weight) stride *= s.out;
      strides.weight[0] = 1;
    }
    x = {{s.batch, s.in, s.axes[0].x, s.axes[1].x}, strides.x, {}};
    weight = {{s.out, s.in, 3, 3}, strides.weight, {}};
    y = {{s.batch, s.out, s.axes[0].y(), s.axes[1].y()}, strides.y, {}};
    std::mt19937 random(static_cast<unsigned>(x.count() * 31 + weight.count()));
    std::normal_distribution<float> normal;
    for (Tensor* tensor : {&x, &weight, &y}) {
      tensor->values.resize(static_cast<std::size_t>(tensor->count()));
      if (tensor != &result())
        for (float& value : tensor->values) value = normal(random);
    }
  }
  Tensor& result() {
    return direction == ConvDirection::forward      ? y
           : direction == ConvDirection::input_grad ? x
                                                    : weight;
  }
  const Tensor& first() const { return direction == ConvDirection::input_grad ? y : x; }
  const Tensor& second() const { return direction == ConvDirection::weight_grad ? y : weight; }

  // Every result in double, and the sum of the products' squares: what its error is measured by.
  std::vector<double> exact() {
    std::vector<double> out(result().values.size());
    float* base = result().values.data();
    for (std::int64_t n = 0; n < sizes.batch; ++n)
      for (std::int64_t o = 0; o < sizes.out; ++o)
        for (std::int64_t h = 0; h < y.shape[2]; ++h)
          for (std::int64_t w = 0; w < y.shape[3]; ++w)
            for (std::int64_t c = 0; c < sizes.in; ++c)
              for (std::int64_t k = 0; k < 9; ++k) {
                const std::int64_t i = h + k / 3 - sizes.axes[0].padding,
                                   j = w + k % 3 - sizes.axes[1].padding;
                if (i < 0 || j < 0 || i >= x.shape[2] || j >= x.shape[3]) continue;
                float *a = x.at(n, c, i, j), *b = weight.at(o, c, k / 3, k % 3),
                      *r = y.at(n, o, h, w);
                double* to =
                    &out[static_cast<std::size_t>((direction == ConvDirection::forward      ? r
                                                   : direction == ConvDirection::input_grad ? a
                                                                                            : b) -
                                                  base)];
                *to += direction == ConvDirection::forward      ? double{*a} * *b
                       : direction == ConvDirection::input_grad ? double{*r} * *b
                                                                : double{*a} * *r;
              }
    return out;
  }
};

// How kernels are run: (kernel, buffers, params, items).
using Run = std::function<void(const kir::Kernel&, std::vector<Array>&, const Ints&, std::int64_t)>;

Run machine_code(const codegen::HostTarget& host, bool split) {
  return [=](const kir::Kernel& kernel, std::vector<Array>& buffers, const Ints& params,
             std::int64_t items) {
    const std::int64_t cut = split ? items / 3 : 0;
    run_compiled(kernel, host, buffers, params, {{cut, items}, {0, cut}});
  };
}

class Launches {
 public:
  Launches(Problem& problem, int side, const WinogradOrder& order, const WinogradTiling& tiling,
           const Run& run, const Epilogue& hook = {}, bool rows = false)
      : p_(problem),
        spec_(winograd_spec(p_.direction, DType::f32, p_.sizes, p_.strides, side)),
        order_(order),
        t_(tiling),
        run_(run),
        hook_(hook) {
    spec_.result_rows = rows;
  }

  std::vector<float> result() {
    Array first = p_.first().memory(), second = p_.second().memory();
    if (p_.direction == ConvDirection::weight_grad) return weight_gradient(first, second);
    if (t_.shared_window) first = transformed(WinogradKernel::window, first);
    if (t_.shared_weight) second = transformed(WinogradKernel::weight, second);
    std::vector<Array> buffers{first, second, p_.result().memory()};
    launch(WinogradKernel::result, buffers, 0, hook_);
    return p_.result().read(buffers[2]);
  }

 private:
  void launch(WinogradKernel kernel, std::vector<Array>& buffers, std::int64_t slice,
              const Epilogue& hook = {}) {
    run_(build_winograd(unique_name("winograd"), kernel, spec_, order_, t_, hook), buffers,
         winograd_params(kernel, spec_, p_.sizes, p_.strides, order_, t_, slice),
         winograd_items(kernel, spec_, p_.sizes, order_, t_, slice));
  }
  Array transformed(WinogradKernel kernel, const Array& operand, std::int64_t slice = 0) {
    std::vector<Array> buffers{
        operand,
        codegen::zeros(DType::f32, winograd_elements(kernel, spec_, p_.sizes, order_, t_))};
    launch(kernel, buffers, slice);
    return buffers[1];
  }
  std::vector<float> weight_gradient(const Array& x, const Array& y) {
    Array sums = order_.slices == 1
                     ? p_.result().memory()
                     : codegen::zeros(DType::f32, order_.slices * p_.result().count());
    for (std::int64_t slice = 0; slice < order_.slices; ++slice) {
      std::vector<Array> buffers{transformed(WinogradKernel::window, x, slice),
                                 transformed(WinogradKernel::gradient, y, slice), sums};
      launch(WinogradKernel::weight_gradient, buffers, slice,
             order_.slices == 1 ? hook_ : Epilogue{});
      sums = buffers[2];
    }
    if (order_.slices == 1) return p_.result().read(sums);
    std::vector<Array> buffers{sums, p_.result().memory()};
    const Target target{.vector_bytes = 4 * t_.lanes};
    run_(build_conv_combine(unique_name("winograd"), spec_.conv, target, hook_), buffers,
         conv_combine_params(p_.sizes, p_.strides, {.slices = order_.slices}),
         conv_combine_items(p_.sizes));
    return p_.result().read(buffers[1]);
  }

  Problem& p_;
  WinogradSpec spec_;
  WinogradOrder order_;
  WinogradTiling t_;
  Run run_;
  Epilogue hook_;
};

std::string describe(const Problem& p, int side, const WinogradTiling& t) {
  return fmt::format(
      "direction {} F({}, 3) {} x {} -> {}, {} x {}, padding {}, {}x{}x{} sharing {}{} "
      "rows {} lanes {}",
      static_cast<int>(p.direction), side, p.sizes.batch, p.sizes.in, p.sizes.out,
      p.sizes.axes[0].x, p.sizes.axes[1].x, p.sizes.axes[0].padding, t.rows, t.vectors, t.lanes,
      t.shared_window, t.shared_weight, t.row_block, t.lane_block);
}

void expect_close(const std::vector<float>& got, const std::vector<double>& want,
                  const std::string& what) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  EXPECT_LT(std::sqrt(error), 3e-6 * std::sqrt(size) + 1e-6) << what;
}

// Orders that cut small problems into several blocks and slices, and the real one.
std::vector<WinogradOrder> orders_of(const WinogradSpec& spec, const ConvSizes& s) {
  const WinogradOrder real = winograd_order(spec, s);  // small problems have one slice
  WinogradOrder cut = real;
  cut.channels = 3;
  if (spec.conv.direction == ConvDirection::weight_grad) {
    cut.tiles = 2, cut.slice_tiles = 5;
    cut.slices = (real.slice_tiles + 4) / 5;
  }
  return {real, cut};
}

std::vector<WinogradTiling> small_tilings(const WinogradSpec& spec, const ConvSizes& s,
                                          const WinogradOrder& order) {
  std::vector<WinogradTiling> list;
  for (const int sharing : {0, 1, 2, 3}) {
    if (spec.conv.direction == ConvDirection::weight_grad && sharing > 1) break;
    WinogradTiling t{.shared_window = (sharing & 1) != 0,
                     .shared_weight = (sharing & 2) != 0,
                     .rows = 3 + sharing % 2,
                     .vectors = 1 + sharing % 2,
                     .lanes = 4,
                     .unroll = 1 + sharing};
    t.row_block = t.rows * (sharing < 2 ? 1 : 3);
    t.lane_block = t.columns() * (sharing % 2 == 0 ? 2 : 1);
    list.push_back(complete(t, spec, s, order));
  }
  return list;
}

void expect_right(ConvDirection direction, const ConvSizes& s, Layout layout, int side) {
  const codegen::HostTarget host = codegen::detect_host();
  Problem p(direction, s, layout);
  const std::vector<double> exact = p.exact();
  const WinogradSpec spec = winograd_spec(direction, DType::f32, s, p.strides, side);
  for (const WinogradOrder& order : orders_of(spec, s)) {
    std::vector<float> first;
    for (const WinogradTiling& t : small_tilings(spec, s, order)) {
      const std::string what = describe(p, side, t);
      const std::vector<float> got = Launches(p, side, order, t, machine_code(host, true)).result();
      if (first.empty()) {
        first = got;
        expect_close(got, exact, what);
      }
      ASSERT_NO_FATAL_FAILURE(expect_bits(got, first, what));
      ASSERT_NO_FATAL_FAILURE(expect_bits(Launches(p, side, order, t, run_interpreted).result(),
                                          first, what + ", interpreted"));
      if (direction != ConvDirection::weight_grad || order.slices > 1 || p.strides.weight[1] != 9)
        continue;
      for (const Run& run : {machine_code(host, true), Run(run_interpreted)})
        ASSERT_NO_FATAL_FAILURE(expect_bits(Launches(p, side, order, t, run, {}, true).result(),
                                            first, what + ", in rows"));
    }
  }
}

TEST(WinogradKernel, every_tiling_and_layout_has_the_same_bits_and_the_right_numbers) {
  int number = 0;
  for (const ConvSizes& s :
       {sizes_of(1, 1, 1, 1, 1, 1), sizes_of(2, 3, 5, 4, 7, 1), sizes_of(1, 9, 6, 3, 3, 0),
        sizes_of(3, 2, 4, 5, 6, 2), sizes_of(1, 4, 9, 13, 2, 1), sizes_of(2, 5, 3, 8, 9, 0)})
    for (const ConvDirection direction : kDirections)
      for (const int side : {2, 4})
        expect_right(direction, s, static_cast<Layout>(number++ % 3), side);
}

TEST(WinogradKernel, chosen_tilings_have_them_on_every_target) {
  for (const auto& [name, host] : codegen::runnable_targets()) {
    const Target target = target_of(host);
    for (const ConvSizes& s : {sizes_of(2, 33, 70, 11, 13, 1), sizes_of(1, 64, 32, 14, 14, 1),
                               sizes_of(3, 17, 16, 7, 7, 2)})
      for (const ConvDirection direction : kDirections)
        for (const int side : {2, 4}) {
          Problem p(direction, s, Layout::channels_last);
          const WinogradSpec spec = winograd_spec(direction, DType::f32, s, p.strides, side);
          const WinogradOrder order = winograd_order(spec, s);
          std::vector<float> first;
          for (const int workers : {1, 2, 7}) {
            const WinogradTiling t = choose_winograd_tiling(spec, s, order, target, workers);
            const std::string what = name + " " + describe(p, side, t);
            const std::vector<float> got =
                Launches(p, side, order, t, machine_code(host, true)).result();
            if (first.empty()) {
              first = got;
              expect_close(got, p.exact(), what);
            }
            ASSERT_NO_FATAL_FAILURE(expect_bits(got, first, what));
          }
        }
  }
}

// Sizes from 1 on and channels of all remainders, each with some of the others.
TEST(WinogradKernel, remainders_of_every_kind) {
  const codegen::HostTarget host = codegen::detect_host();
  const Target target = target_of(host);
  for (std::int64_t i = 1; i <= 70; i += i < 20 ? 2 : 7) {
    const std::int64_t padding = i % 3;
    const ConvSizes s =
        sizes_of(1 + i % 3, i, (i * 37 + 5) % 70 + 1, std::max(1 + i % 13, 3 - 2 * padding),
                 std::max(1 + i * 5 % 13, 3 - 2 * padding), padding);
    const int side = i % 4 == 1 ? 2 : 4;
    for (const ConvDirection direction : kDirections) {
      Problem p(direction, s, Layout::channels_last);
      const WinogradSpec spec = winograd_spec(direction, DType::f32, s, p.strides, side);
      const WinogradOrder order = winograd_order(spec, s);
      const WinogradTiling t = choose_winograd_tiling(spec, s, order, target, 2);
      expect_close(Launches(p, side, order, t, machine_code(host, false)).result(), p.exact(),
                   describe(p, side, t));
    }
  }
}

TEST(WinogradKernel, hooks_see_the_logical_coordinates_of_their_lanes) {
  const codegen::HostTarget host = codegen::detect_host();
  // value * 0 + coordinates in base 20.
  const Epilogue hook{.declare = {}, .apply = [](Builder& b, const ResultSite& s) {
                        const int lanes = s.value.lanes();
                        Var code = b.constant({DType::i64, lanes}, std::int64_t{0});
                        for (std::size_t k = 0; k < s.coordinates.size(); ++k) {
                          Var at = b.splat(s.coordinates[k], lanes);
                          if (static_cast<int>(k) == s.lane_dim)
                            at = at + b.iota({DType::i64, lanes});
                          code = code * 20 + at;
                        }
                        return s.value * 0.0 + b.cast(code, DType::f32);
                      }};
  const ConvSizes s = sizes_of(2, 6, 7, 5, 6, 1);
  for (const ConvDirection direction : kDirections) {
    Problem p(direction, s, Layout::channels_last);
    const WinogradSpec spec = winograd_spec(direction, DType::f32, s, p.strides, 4);
    for (const WinogradOrder& order : orders_of(spec, s))
      for (const WinogradTiling& t : small_tilings(spec, s, order)) {
        const std::vector<float> got =
            Launches(p, 4, order, t, machine_code(host, false), hook).result();
        const Ints shape = p.result().shape;
        for (std::size_t i = 0; i < got.size(); ++i) {
          std::int64_t rest = static_cast<std::int64_t>(i), code = 0, unit = 1;
          for (std::size_t k = 4; k-- > 0; unit *= 20) {
            code += rest % shape[k] * unit;
            rest /= shape[k];
          }
          ASSERT_EQ(got[i], static_cast<float>(code)) << describe(p, 4, t) << " at " << i;
        }
      }
  }
}

TEST(WinogradKernel, the_order_is_one_of_shape_alone) {
  const ConvSizes s = sizes_of(8, 64, 64, 56, 56, 1);
  const ConvStrides strides = ConvStrides::channels_last(s);
  const WinogradOrder forward =
      winograd_order(winograd_spec(ConvDirection::forward, DType::f32, s, strides, 4), s);
  EXPECT_EQ(forward.channels, 64);
  const WinogradOrder weight =
      winograd_order(winograd_spec(ConvDirection::weight_grad, DType::f32, s, strides, 4), s);
  EXPECT_GT(weight.slices, 1);
  EXPECT_GE(weight.slices * weight.slice_tiles, 8 * 14 * 14);
  EXPECT_LE(weight.tiles, weight.slice_tiles);
}

}  // namespace
}  // namespace pantala::schedule::cpu::winograd_kernel_test
