// The kernels of convolutions against plain loops: every bit as the documented order says, for both
// layouts, odd sizes, every way to fill the slab, several tiles and splits of the items,
// interpreted and as machine code; and integers exactly as a naive sum has them. Memory ends at a
// page that must not be touched; gaps keep their contents.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "schedule/cpu/conv/kernel.h"
#include "unit/schedule/kernel_runs.h"

namespace pantala::schedule::cpu::conv_kernel_test {
namespace {

using codegen::Array;
using kernel_runs::expect_bits;
using kernel_runs::run_compiled;
using kernel_runs::run_interpreted;
using kernel_runs::target_of;
using kernel_runs::unique_name;
using kernel_runs::values;
using kir::Builder;
using kir::Var;
using Ints = std::vector<std::int64_t>;

constexpr ConvDirection kDirections[] = {ConvDirection::forward, ConvDirection::input_grad,
                                         ConvDirection::weight_grad};

Ints x_shape(const ConvSizes& s) {
  Ints shape{s.batch, s.in};
  for (const ConvAxis& a : s.axes) shape.push_back(a.x);
  return shape;
}
Ints weight_shape(const ConvSizes& s) {
  Ints shape{s.out, s.in / s.groups};
  for (const ConvAxis& a : s.axes) shape.push_back(a.kernel);
  return shape;
}
Ints y_shape(const ConvSizes& s) {
  Ints shape{s.batch, s.out};
  for (const ConvAxis& a : s.axes) shape.push_back(a.y());
  return shape;
}
std::int64_t count(const Ints& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

// Calls f(index, flat) for every index in row-major order.
void each_index(const Ints& shape, const std::function<void(const Ints&, std::int64_t)>& f) {
  Ints index(shape.size(), 0);
  for (std::int64_t flat = 0; flat < count(shape); ++flat) {
    f(index, flat);
    for (std::size_t k = shape.size(); k > 0; --k) {
      if (++index[k - 1] < shape[k - 1]) break;
      index[k - 1] = 0;
    }
  }
}
std::int64_t flat_index(const Ints& shape, const Ints& index) {
  std::int64_t flat = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) flat = flat * shape[k] + index[k];
  return flat;
}

// The first operand, the second and the result of a direction.
struct Roles {
  Ints first, second, result;
};
Roles shapes(ConvDirection direction, const ConvSizes& s) {
  switch (direction) {
    case ConvDirection::forward:
      return {x_shape(s), weight_shape(s), y_shape(s)};
    case ConvDirection::input_grad:
      return {y_shape(s), weight_shape(s), x_shape(s)};
    default:
      return {x_shape(s), y_shape(s), weight_shape(s)};
  }
}
Roles strides_of(ConvDirection direction, const ConvStrides& s) {
  switch (direction) {
    case ConvDirection::forward:
      return {s.x, s.weight, s.y};
    case ConvDirection::input_grad:
      return {s.y, s.weight, s.x};
    default:
      return {s.x, s.y, s.weight};
  }
}

enum class Layout { row_major, channels_last, with_gaps, output_channels_last };
ConvStrides layout_strides(const ConvSizes& s, Layout layout) {
  if (layout == Layout::row_major) return ConvStrides::row_major(s);
  ConvStrides strides = ConvStrides::channels_last(s);
  if (layout == Layout::with_gaps)
    for (Ints* list : {&strides.x, &strides.weight, &strides.y})
      for (std::size_t k = 0; k < list->size(); ++k)
        if (list == &strides.weight || k != 1) (*list)[k] = (*list)[k] * 2 + (k == 0 ? 3 : 0);
  if (layout == Layout::output_channels_last) {
    for (std::int64_t& stride : strides.weight) stride *= s.out;
    strides.weight[0] = 1;
  }
  return strides;
}

template <class T>
std::vector<T> laid_out(const std::vector<T>& values, const Ints& shape, const Ints& strides,
                        T gap) {
  std::int64_t size = count(shape) == 0 ? 0 : 1;
  for (std::size_t k = 0; k < shape.size() && size > 0; ++k) size += (shape[k] - 1) * strides[k];
  std::vector<T> out(static_cast<std::size_t>(size), gap);
  each_index(shape, [&](const Ints& index, std::int64_t flat) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) at += index[k] * strides[k];
    out[static_cast<std::size_t>(at)] = values[static_cast<std::size_t>(flat)];
  });
  return out;
}

template <class T>
class Problem {
 public:
  static constexpr T kUntouched = static_cast<T>(-12345);
  Problem(ConvDirection way, const ConvSizes& size, bool integers)
      : direction(way), sizes(size), shape(shapes(way, size)) {
    std::mt19937 random(static_cast<unsigned>(count(shape.first) * 31 + count(shape.second)));
    std::normal_distribution<double> normal;
    const auto fill = [&](std::vector<T>& v, const Ints& s) {
      v.resize(static_cast<std::size_t>(count(s)));
      for (T& x : v)
        x = integers ? static_cast<T>(static_cast<int>(random() % 15) - 7)
                     : static_cast<T>(normal(random));
    };
    fill(first, shape.first), fill(second, shape.second);
  }

  T first_at(const Ints& index) const {
    for (std::size_t k = 0; k < index.size(); ++k)
      if (index[k] < 0 || index[k] >= shape.first[k]) return T{0};
    return first[static_cast<std::size_t>(flat_index(shape.first, index))];
  }
  T second_at(const Ints& index) const {
    return second[static_cast<std::size_t>(flat_index(shape.second, index))];
  }

  using Pair = std::pair<T, T>;
  // The products of one result, block by block; weight_grad: slice by slice as well.
  std::vector<std::vector<Pair>> blocks(const ConvOrder& order, const Ints& at) const {
    return direction == ConvDirection::weight_grad ? position_blocks(order, at)
                                                   : tap_blocks(order, at);
  }
  std::vector<std::vector<Pair>> tap_blocks(const ConvOrder& order, const Ints& at) const {
    const bool grad = direction == ConvDirection::input_grad;
    const bool depthwise = sizes.depthwise();
    const std::int64_t groups = sizes.groups;
    const std::int64_t channels = (grad ? sizes.out : sizes.in) / groups;
    const std::int64_t group = at[1] / ((grad ? sizes.in : sizes.out) / groups);
    Ints kernel;
    for (const ConvAxis& a : sizes.axes) kernel.push_back(a.kernel);
    // The taps of this result: where they lie in the first operand, and which they are.
    std::vector<std::pair<Ints, Ints>> taps;
    each_index(kernel, [&](const Ints& tap, std::int64_t) {
      Ints from;
      for (std::size_t k = 0; k < tap.size(); ++k) {
        const ConvAxis& a = sizes.axes[k];
        const std::int64_t distance = at[k + 2] + a.padding - tap[k] * a.dilation;
        if (grad && distance % a.stride != 0) return;
        from.push_back(grad ? distance / a.stride
                            : at[k + 2] * a.stride - a.padding + tap[k] * a.dilation);
      }
      taps.emplace_back(from, tap);
    });
    std::vector<std::vector<Pair>> list;
    for (std::int64_t c0 = 0; c0 < channels; c0 += order.channels)
      for (std::size_t t0 = 0; t0 < taps.size(); t0 += static_cast<std::size_t>(order.taps)) {
        std::vector<Pair> block;
        for (std::size_t t = t0;
             t < std::min(taps.size(), t0 + static_cast<std::size_t>(order.taps)); ++t)
          for (std::int64_t c = c0; c < std::min(channels, c0 + order.channels); ++c) {
            Ints x{at[0], group * channels + c}, w{at[1], c};
            if (grad) w = {group * channels + c, at[1] % (sizes.in / groups)};
            if (depthwise) w = {at[1], 0};
            x.insert(x.end(), taps[t].first.begin(), taps[t].first.end());
            w.insert(w.end(), taps[t].second.begin(), taps[t].second.end());
            block.emplace_back(first_at(x), second_at(w));
          }
        list.push_back(block);
      }
    return list;
  }
  std::vector<std::vector<Pair>> position_blocks(const ConvOrder& order, const Ints& at) const {
    const std::int64_t group = at[0] / (sizes.out / sizes.groups);
    Ints positions{sizes.batch, 1, 1, 1};
    for (std::size_t k = 0; k < sizes.axes.size(); ++k)
      positions[4 - sizes.axes.size() + k] = sizes.axes[k].y();
    Ints counts;
    for (std::size_t k = 0; k < 4; ++k)
      counts.push_back((positions[k] + order.box[k] - 1) / order.box[k]);
    std::vector<std::vector<Pair>> list;
    each_index(counts, [&](const Ints& index, std::int64_t) {
      Ints here;
      for (std::size_t k = 0; k < 4; ++k)
        here.push_back(std::min(order.box[k], positions[k] - index[k] * order.box[k]));
      std::vector<Pair> block;
      each_index(here, [&](const Ints& inner, std::int64_t) {
        Ints y{index[0] * order.box[0] + inner[0], at[0]};
        Ints x{y[0], group * (sizes.in / sizes.groups) + at[1]};
        for (std::size_t k = 0; k < sizes.axes.size(); ++k) {
          const std::size_t full = 4 - sizes.axes.size() + k;
          const ConvAxis& a = sizes.axes[k];
          y.push_back(index[full] * order.box[full] + inner[full]);
          x.push_back(y.back() * a.stride - a.padding + at[k + 2] * a.dilation);
        }
        block.emplace_back(first_at(x), second_at(y));
      });
      list.push_back(block);
    });
    return list;
  }

  // The documented order.
  T sum(const ConvOrder& order, const Ints& at) const {
    T total = 0, slice = 0;
    std::int64_t number = 0;
    for (const std::vector<Pair>& block : blocks(order, at)) {
      T s = 0;
      for (const auto& [x, y] : block) s = std::fma(x, y, s);
      const bool weight = direction == ConvDirection::weight_grad;
      if (weight && number > 0 && number % order.slice_blocks == 0) {
        total = number == order.slice_blocks ? slice : total + slice;
        slice = s;
      } else {
        slice = number == 0 ? s : slice + s;
      }
      ++number;
    }
    const bool sliced = direction == ConvDirection::weight_grad && number > order.slice_blocks;
    return sliced ? total + slice : slice;
  }
  std::vector<T> expected(const ConvOrder& order) const {
    std::vector<T> out(static_cast<std::size_t>(count(shape.result)));
    each_index(shape.result, [&](const Ints& at, std::int64_t flat) {
      out[static_cast<std::size_t>(flat)] = sum(order, at);
    });
    return out;
  }

  ConvDirection direction;
  ConvSizes sizes;
  Roles shape;
  std::vector<T> first, second;
};

// The op itself, product by product, in double: y += x * w for every tap inside.
template <class T>
std::vector<double> naive(const Problem<T>& p) {
  const ConvSizes& s = p.sizes;
  std::vector<double> out(static_cast<std::size_t>(count(p.shape.result)));
  const Ints x = x_shape(s), w = weight_shape(s), y = y_shape(s);
  each_index(y, [&](const Ints& at, std::int64_t iy) {
    each_index(w, [&](const Ints& weight, std::int64_t iw) {
      if (weight[0] != at[1]) return;
      Ints from{at[0], at[1] / (s.out / s.groups) * (s.in / s.groups) + weight[1]};
      for (std::size_t k = 0; k < s.axes.size(); ++k) {
        const ConvAxis& a = s.axes[k];
        from.push_back(at[k + 2] * a.stride - a.padding + weight[k + 2] * a.dilation);
        if (from.back() < 0 || from.back() >= a.x) return;
      }
      const std::int64_t ix = flat_index(x, from);
      const auto get = [](const std::vector<T>& v, std::int64_t i) {
        return static_cast<double>(v[static_cast<std::size_t>(i)]);
      };
      const auto to = [&](std::int64_t i) -> double& { return out[static_cast<std::size_t>(i)]; };
      if (p.direction == ConvDirection::forward) to(iy) += get(p.first, ix) * get(p.second, iw);
      if (p.direction == ConvDirection::input_grad) to(ix) += get(p.first, iy) * get(p.second, iw);
      if (p.direction == ConvDirection::weight_grad) to(iw) += get(p.first, ix) * get(p.second, iy);
    });
  });
  return out;
}

std::string text(const Ints& list) {
  std::string s;
  for (const std::int64_t x : list) s += std::to_string(x) + " ";
  return s;
}
std::string describe(const Roles& shape, const ConvSizes& s, Layout layout, const ConvTiling& t) {
  std::ostringstream out;
  out << "[" << text(shape.first) << "] [" << text(shape.second) << "] -> [" << text(shape.result)
      << "] groups " << s.groups << " layout " << static_cast<int>(layout) << " fill "
      << static_cast<int>(t.fill) << " tile " << t.rows << 'x' << t.vectors << 'x' << t.lanes
      << " unroll " << t.unroll << t.whole_runs << t.short_runs << " merge " << t.merge_taps
      << " pack " << t.pack_lanes << " flat " << t.flat_result << " box "
      << text({t.box.begin(), t.box.end()}) << " lanes " << t.lane_block << " channels "
      << t.channel_block;
  return out.str();
}

// One problem, layout, order and tiling: the kernel and, if there are slices, the one that combines
// them. Kernels with equal code are compiled once.
template <class T>
class Runner {
 public:
  Runner(const Problem<T>& problem, Layout layout, const ConvOrder& order, const ConvTiling& tiling,
         const ContractHooks& hooks = {})
      : problem_(problem),
        strides_(layout_strides(problem.sizes, layout)),
        roles_(strides_of(problem.direction, strides_)),
        spec_(conv_spec(problem.direction, dtype(), problem.sizes, strides_)),
        order_(order),
        tiling_(tiling) {
    ContractHooks kernel_hooks = hooks;
    if (order.slices > 1) {
      kernel_hooks.result = {};
      const Target lanes{.vector_bytes = tiling.lanes * static_cast<int>(sizeof(T))};
      combine_ = build_conv_combine(unique_name("conv"), spec_, lanes, hooks.result);
    }
    if (has_panels()) {
      weights_ = build_conv_weights(unique_name("conv"), spec_, tiling, hooks.b);
      kernel_hooks.b = {};
    }
    kernel_ = build_conv(unique_name("conv"), spec_, order, tiling, kernel_hooks);
  }
  static constexpr DType dtype() { return sizeof(T) == 4 ? DType::f32 : DType::f64; }
  const ConvSpec& spec() const { return spec_; }

  // `run(kernel, buffers, params, items)` runs one kernel; `extra` buffers belong to the result
  // hook.
  template <class F>
  std::vector<Array> run(const F& run_kernel, const std::vector<Array>& extra = {}) {
    const ConvSizes& s = problem_.sizes;
    const std::vector<T> blank(static_cast<std::size_t>(count(problem_.shape.result)),
                               Problem<T>::kUntouched);
    const Array result = codegen::array_of(
        dtype(), laid_out(blank, problem_.shape.result, roles_.result, Problem<T>::kUntouched));
    std::vector<Array> buffers{
        codegen::array_of(dtype(),
                          laid_out(problem_.first, problem_.shape.first, roles_.first, T(NAN))),
        codegen::array_of(dtype(),
                          laid_out(problem_.second, problem_.shape.second, roles_.second, T(NAN))),
        order_.slices > 1 ? codegen::zeros(dtype(), conv_partials(s, order_)) : result};
    if (has_panels()) {
      std::vector<Array> weight{buffers[1],
                                codegen::zeros(dtype(), conv_panels(spec_, s, order_, tiling_))};
      run_kernel(weights_, weight, conv_params(spec_, s, strides_, order_, tiling_),
                 conv_weights_items(spec_, s, order_, tiling_));
      buffers[1] = weight[1];
    }
    if (order_.slices == 1) buffers.insert(buffers.end(), extra.begin(), extra.end());
    run_kernel(kernel_, buffers, conv_params(spec_, s, strides_, order_, tiling_),
               conv_items(spec_, s, order_, tiling_));
    if (order_.slices == 1) return {buffers.begin() + 2, buffers.end()};
    std::vector<Array> next{buffers[2], result};
    next.insert(next.end(), extra.begin(), extra.end());
    run_kernel(combine_, next, conv_combine_params(s, strides_, order_), conv_combine_items(s));
    return {next.begin() + 1, next.end()};
  }
  // Whether the weight is brought into panels first.
  bool has_panels() const { return problem_.direction != ConvDirection::weight_grad; }
  std::vector<T> placed(const std::vector<T>& want) const {
    return laid_out(want, problem_.shape.result, roles_.result, Problem<T>::kUntouched);
  }

  void expect_result(const std::vector<T>& want, const codegen::HostTarget& host, bool interpret,
                     const std::string& what) {
    const std::vector<T> there = placed(want);
    const auto whole = [&](const kir::Kernel& kernel, std::vector<Array>& buffers,
                           const Ints& params, std::int64_t items) {
      run_compiled(kernel, host, buffers, params, {{0, items}});
    };
    const auto split = [&](const kir::Kernel& kernel, std::vector<Array>& buffers,
                           const Ints& params, std::int64_t items) {
      const std::int64_t cut = items / 3;
      run_compiled(kernel, host, buffers, params, {{cut, items}, {0, cut}});
    };
    ASSERT_NO_FATAL_FAILURE(expect_bits(values<T>(run(whole)[0]), there, what));
    ASSERT_NO_FATAL_FAILURE(expect_bits(values<T>(run(split)[0]), there, what + ", split"));
    if (!interpret) return;
    ASSERT_NO_FATAL_FAILURE(
        expect_bits(values<T>(run(run_interpreted)[0]), there, what + ", interpreted"));
  }

 private:
  const Problem<T>& problem_;
  ConvStrides strides_;
  Roles roles_;
  ConvSpec spec_;
  ConvOrder order_;
  ConvTiling tiling_;
  kir::Kernel weights_, kernel_, combine_;
};

// Legal tilings with small tiles.
std::vector<ConvTiling> small_tilings(const ConvSpec& spec, const ConvSizes& s,
                                      const ConvStrides& strides, const ConvOrder& order) {
  std::vector<ConvTiling> list;
  for (const ConvFill fill :
       {ConvFill::channels, ConvFill::flat, ConvFill::columns, ConvFill::in_place})
    for (const int variant : {0, 1}) {
      const bool weight = spec.direction == ConvDirection::weight_grad;
      ConvTiling t{.fill = fill,
                   .pack_lanes = weight && variant == 0,
                   .rows = 3 + variant,
                   .vectors = 1 + variant,
                   .lanes = 4};
      t.lane_block = variant == 0 ? 8 : 16;
      t.channel_block = variant == 0 ? 2 : 64;
      t.box = variant == 0 ? std::array<std::int64_t, 4>{1, 1, 2, 5}
                           : std::array<std::int64_t, 4>{2, 2, 9, 9};
      if (weight) t.box = {0, 0, 0, 0};
      t = complete(t, spec, s, strides, order);
      if (weight && !broken_rule(spec, s, strides, order, t).empty()) {
        t.pack_lanes = true;
        t = complete(t, spec, s, strides, order);
      }
      if (!broken_rule(spec, s, strides, order, t).empty()) continue;
      list.push_back(t);
      t.flat_result = true;
      if (broken_rule(spec, s, strides, order, t).empty()) list.push_back(t);
    }
  return list;
}

// Odd sizes of every kind.
std::vector<ConvSizes> small_cases() {
  using A = ConvAxis;
  return {
      {2, 3, 5, 1, {A{5, 3, 1, 1, 1}, A{6, 3, 1, 1, 1}}},
      {1, 1, 9, 1, {A{7, 3, 1, 1, 1}, A{9, 3, 1, 1, 1}}},
      {3, 5, 8, 1, {A{4, 1, 1, 0, 1}, A{3, 1, 1, 0, 1}}},
      {2, 4, 6, 2, {A{7, 3, 2, 1, 1}, A{8, 2, 3, 0, 2}}},
      {1, 6, 3, 3, {A{9, 3, 2, 2, 2}, A{5, 1, 2, 0, 1}}},
      {2, 7, 7, 7, {A{6, 3, 1, 1, 1}, A{7, 3, 2, 1, 1}}},
      {2, 16, 16, 16, {A{5, 3, 1, 0, 1}, A{5, 2, 1, 0, 1}}},
      {2, 3, 4, 1, {A{11, 3, 3, 0, 2}}},
      {1, 2, 17, 1, {A{23, 4, 2, 3, 1}}},
      {1, 2, 3, 1, {A{3, 2, 1, 1, 1}, A{4, 3, 2, 1, 1}, A{3, 2, 1, 0, 2}}},
      {0, 3, 4, 1, {A{5, 3, 1, 1, 1}, A{5, 3, 1, 1, 1}}},
      {2, 17, 2, 1, {A{4, 2, 1, 0, 1}, A{4, 2, 2, 1, 3}}},
      {1, 3, 2, 1, {A{12, 3, 3, 2, 3}, A{6, 5, 1, 4, 1}}},
  };
}

// Orders that cut small problems into several blocks, and the real one.
std::vector<ConvOrder> small_orders(ConvDirection direction, const ConvSizes& s) {
  const Target target{.vector_bytes = 16, .vector_registers = 16};
  ConvOrder cut = reduction_order(direction, s, DType::f32, target), real = cut;
  cut.channels = 2, cut.taps = 4;
  if (direction == ConvDirection::weight_grad) {
    cut.box = {1, 1, 2, s.axes.back().y()};
    if (s.axes.size() == 1) cut.box = {1, 1, 1, 4};
    std::int64_t blocks = s.batch;
    for (std::size_t k = 0; k < s.axes.size(); ++k) {
      const std::size_t full = 4 - s.axes.size() + k;
      blocks *= (s.axes[k].y() + cut.box[full] - 1) / cut.box[full];
    }
    cut.slice_blocks = 3;
    cut.slices = std::max<std::int64_t>((blocks + 2) / 3, 1);
  }
  return {cut, real};
}

// Channels last and another layout, a different one from case to case.
std::vector<Layout> layouts_of(std::size_t number) {
  constexpr Layout kOthers[] = {Layout::row_major, Layout::with_gaps, Layout::output_channels_last};
  return {Layout::channels_last, kOthers[number % 3]};
}

// Every `step`-th case.
template <class T>
void check_small_cases(std::size_t step) {
  const codegen::HostTarget host = codegen::detect_host();
  const std::vector<ConvSizes> cases = small_cases();
  for (const ConvDirection direction : kDirections)
    for (std::size_t i = 0; i < cases.size(); i += step) {
      const ConvSizes& s = cases[i];
      for (const ConvOrder& order : small_orders(direction, s)) {
        const Problem<T> p(direction, s, false);
        const std::vector<T> want = p.expected(order);
        for (const Layout layout : layouts_of(i + static_cast<std::size_t>(direction))) {
          const ConvStrides strides = layout_strides(s, layout);
          const ConvSpec spec = conv_spec(direction, Runner<T>::dtype(), s, strides);
          const std::vector<ConvTiling> tilings = small_tilings(spec, s, strides, order);
          ASSERT_FALSE(tilings.empty());
          for (const ConvTiling& t : tilings) {
            Runner<T> runner(p, layout, order, t);
            ASSERT_NO_FATAL_FAILURE(
                runner.expect_result(want, host, true,
                                     std::to_string(static_cast<int>(direction)) + " " +
                                         describe(p.shape, s, layout, t)));
          }
        }
      }
    }
}

TEST(ConvKernel, every_layout_and_tiling_has_the_bits_of_the_plain_loop) {
  check_small_cases<float>(1);
}
TEST(ConvKernel, so_in_double_precision) { check_small_cases<double>(4); }

TEST(ConvKernel, chosen_tilings_have_the_bits_of_the_plain_loop_on_every_target) {
  using A = ConvAxis;
  const std::vector<ConvSizes> cases{
      {3, 1, 32, 1, {A{14, 3, 1, 1, 1}, A{14, 3, 1, 1, 1}}},
      {2, 19, 37, 1, {A{9, 3, 1, 1, 1}, A{8, 3, 1, 1, 1}}},
      {1, 3, 16, 1, {A{17, 7, 2, 3, 1}, A{19, 7, 2, 3, 1}}},
      {2, 40, 40, 40, {A{7, 3, 1, 1, 1}, A{6, 3, 2, 1, 1}}},
      {2, 100, 24, 1, {A{5, 3, 2, 1, 1}, A{6, 3, 2, 1, 1}}},
      {2, 20, 33, 1, {A{40, 3, 2, 1, 1}}},
  };
  for (const auto& [name, host] : codegen::runnable_targets()) {
    const Target target = target_of(host);
    for (const ConvDirection direction : kDirections)
      for (const ConvSizes& s : cases) {
        const ConvOrder order = reduction_order(direction, s, DType::f32, target);
        const Problem<float> p(direction, s, false);
        const std::vector<float> want = p.expected(order);
        for (const Layout layout : {Layout::channels_last, Layout::row_major}) {
          if (layout == Layout::row_major && name != "host") continue;
          const ConvStrides strides = layout_strides(s, layout);
          const ConvSpec spec = conv_spec(direction, DType::f32, s, strides);
          ConvTiling last;
          for (const int workers : {1, 3}) {
            const ConvTiling t =
                choose_conv_tiling(spec, s, strides, order, target, {.workers = workers});
            if (t == last) continue;
            last = t;
            EXPECT_EQ(broken_rule(spec, s, strides, order, t), "");
            Runner<float> runner(p, layout, order, t);
            ASSERT_NO_FATAL_FAILURE(runner.expect_result(
                want, host, false, name + " " + describe(p.shape, s, layout, t)));
          }
        }
      }
  }
}

TEST(ConvKernel, integers_are_exact_and_others_close_to_double_precision) {
  const codegen::HostTarget host = codegen::detect_host();
  const Target target = target_of(host);
  for (const ConvDirection direction : kDirections)
    for (const ConvSizes& s : small_cases())
      for (const bool integers : {true, false}) {
        const Problem<float> p(direction, s, integers);
        const std::vector<double> want = naive(p);
        const ConvOrder order = reduction_order(direction, s, DType::f32, target);
        const ConvStrides strides = ConvStrides::row_major(s);
        const ConvSpec spec = conv_spec(direction, DType::f32, s, strides);
        const ConvTiling t = choose_conv_tiling(spec, s, strides, order, target);
        Runner<float> runner(p, Layout::row_major, order, t);
        const std::vector<float> got =
            values<float>(runner.run([&](const kir::Kernel& kernel, std::vector<Array>& buffers,
                                         const Ints& params, std::int64_t items) {
              run_compiled(kernel, host, buffers, params, {{0, items}});
            })[0]);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], want[i], integers ? 0 : 1e-4)
              << describe(p.shape, s, Layout::row_major, t) << " at " << i;
      }
}

TEST(ConvKernel, the_order_is_one_of_shape_alone) {
  const Target target{.vector_bytes = 64, .vector_registers = 32};
  const ConvSizes s{64, 32, 64, 1, {ConvAxis{14, 3, 1, 1, 1}, ConvAxis{14, 3, 1, 1, 1}}};
  ConvSizes fewer = s;
  fewer.batch = 3;
  EXPECT_EQ(reduction_order(ConvDirection::forward, s, DType::f32, target),
            reduction_order(ConvDirection::forward, fewer, DType::f32, target));
  const ConvOrder weight = reduction_order(ConvDirection::weight_grad, s, DType::f32, target);
  EXPECT_GT(weight.slices, 1);
  EXPECT_GE(weight.slices * weight.slice_blocks * weight.box[0], 64);
  EXPECT_EQ(weight.box[3], 14);
  const ConvSizes empty{0, 1, 1, 1, {ConvAxis{}}};
  for (const ConvDirection direction : kDirections)
    EXPECT_EQ(reduction_order(direction, empty, DType::f32, target).slices, 1);
}

// value + coordinates in base 10, so that every site's coordinates show in the result.
Epilogue place_epilogue() {
  return {.declare = {}, .apply = [](Builder& b, const ResultSite& s) {
            const int lanes = s.value.lanes();
            Var code = b.constant({DType::i64, lanes}, std::int64_t{0});
            for (std::size_t k = 0; k < s.coordinates.size(); ++k) {
              Var at = b.splat(s.coordinates[k], lanes);
              if (static_cast<int>(k) == s.lane_dim) at = at + b.iota({DType::i64, lanes});
              code = code * 10 + at;
            }
            return s.value + b.cast(code, DType::f32);
          }};
}
// Twice the positive part plus one, times the index along the lanes' dimension plus one.
Prologue place_prologue() {
  return {.declare = {}, .apply = [](Builder& b, const OperandSite& s) {
            const int lanes = s.value.lanes();
            const Var at =
                s.coordinates[static_cast<std::size_t>(s.lane_dim)] + b.iota({DType::i64, lanes});
            const Var last = b.splat(s.coordinates.back() + 1, lanes);
            return (max(s.value, 0.0) + 1.0) * b.cast((at + 1) * last, DType::f32);
          }};
}

TEST(ConvKernel, hooks_see_the_logical_coordinates_of_their_lanes) {
  const codegen::HostTarget host = codegen::detect_host();
  const std::vector<ConvSizes> cases = small_cases();
  for (const ConvDirection direction : kDirections)
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const ConvSizes& s = cases[i];
      for (const ConvOrder& order : small_orders(direction, s)) {
        Problem<float> p(direction, s, true);
        Problem<float> changed = p;
        const auto change = [](std::vector<float>& v, const Ints& shape, std::size_t dim) {
          each_index(shape, [&](const Ints& at, std::int64_t flat) {
            float& x = v[static_cast<std::size_t>(flat)];
            x = (std::max(x, 0.0F) + 1) * static_cast<float>((at[dim] + 1) * (at.back() + 1));
          });
        };
        const bool outer_lanes = direction == ConvDirection::forward ||
                                 (direction == ConvDirection::input_grad && s.depthwise());
        change(changed.first, p.shape.first, 1);
        change(changed.second, p.shape.second, outer_lanes ? 0 : 1);
        std::vector<float> want = changed.expected(order);
        each_index(p.shape.result, [&](const Ints& at, std::int64_t flat) {
          std::int64_t code = 0;
          for (const std::int64_t index : at) code = code * 10 + index;
          want[static_cast<std::size_t>(flat)] += static_cast<float>(code);
        });
        {
          const Layout layout = layouts_of(i)[i % 2];
          const ConvStrides strides = layout_strides(s, layout);
          const ConvSpec spec = conv_spec(direction, DType::f32, s, strides);
          for (const ConvTiling& t : small_tilings(spec, s, strides, order)) {
            if (t.fill != ConvFill::channels) continue;
            if (direction == ConvDirection::weight_grad && !t.pack_lanes) continue;
            if (t.flat_result) continue;
            Runner<float> runner(
                p, layout, order, t,
                {.a = place_prologue(), .b = place_prologue(), .result = place_epilogue()});
            ASSERT_NO_FATAL_FAILURE(
                runner.expect_result(want, host, true, describe(p.shape, s, layout, t)));
          }
        }
      }
    }
}

// value + 1000 o + m, as the site says.
Epilogue flat_epilogue() {
  return {.declare = {}, .apply = [](Builder& b, const ResultSite& s) {
            const int lanes = s.value.lanes();
            const Var m = b.splat(s.coordinates.at(1), lanes) + b.iota({DType::i64, lanes});
            return s.value + b.cast(b.splat(s.coordinates.at(0), lanes) * 1000 + m, DType::f32);
          }};
}

TEST(ConvKernel, lanes_along_a_flat_weight_see_its_row_major_index) {
  const codegen::HostTarget host = codegen::detect_host();
  int flat = 0;
  for (const ConvSizes& s : small_cases()) {
    const ConvDirection direction = ConvDirection::weight_grad;
    const ConvStrides strides = layout_strides(s, Layout::channels_last);
    const ConvSpec spec = conv_spec(direction, DType::f32, s, strides);
    const Problem<float> p(direction, s, true);
    for (const ConvOrder& order : small_orders(direction, s)) {
      std::vector<float> want = p.expected(order);
      const std::int64_t row = count(p.shape.result) / std::max<std::int64_t>(s.out, 1);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        want[i] += static_cast<float>(at / row * 1000 + at % row);
      }
      for (const ConvTiling& t : small_tilings(spec, s, strides, order)) {
        if (!t.flat_result) continue;
        ++flat;
        Runner<float> runner(p, Layout::channels_last, order, t,
                             {.a = {}, .b = {}, .result = flat_epilogue()});
        ASSERT_NO_FATAL_FAILURE(
            runner.expect_result(want, host, true, describe(p.shape, s, Layout::channels_last, t)));
      }
    }
  }
  EXPECT_GT(flat, 0);
}

}  // namespace
}  // namespace pantala::schedule::cpu::conv_kernel_test
