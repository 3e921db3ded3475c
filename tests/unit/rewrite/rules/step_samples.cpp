#include "ops/conv.h"
#include "ops/face.h"
#include "ops/pool.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::step_parts {

// --- pools

struct PoolSizes {
  std::int64_t batch, channels, height, width;
  IntList kernel;
  PoolOptions options;
};
PoolSizes some_pool(Random& r) {
  PoolSizes n{r.between(0, 2), r.between(1, 3), r.between(4, 9), r.between(4, 9), {2}, {}};
  if (r.chance(0.5)) n.kernel = {3, 2};
  if (r.chance(0.5)) n.options.stride = {1, 2};
  if (r.chance(0.5)) n.options.padding = {1};
  n.options.ceil_mode = r.chance(0.3);
  return n;
}
Tensor pool_gradient(const Tensor& g, const Tensor& positions, const PoolSizes& n) {
  const ir::AttrValues attrs = ir::to_values(op::MaxPool2dGrad::Attrs{
      .input_sizes = {n.height, n.width},
      .window = {.kernel = ir::Ints(n.kernel.begin(), n.kernel.end()),
                 .stride = ir::Ints(n.options.stride.begin(), n.options.stride.end()),
                 .padding = ir::Ints(n.options.padding.begin(), n.options.padding.end()),
                 .ceil_mode = n.options.ceil_mode}});
  return ops::apply(ops::def<op::MaxPool2dGrad>(), {g, positions}, attrs)[0];
}

Tensor masked_gradient(Graph& graph, Random& r) {
  const PoolSizes n = some_pool(r);
  const Tensor y = graph.input("x", {n.batch, n.channels, n.height, n.width});
  const auto [pooled, positions] = max_pool2d_with_indices(y, n.kernel, n.options);
  const Tensor g = graph.input("g", pooled.shape());
  return where(le(y, 0), 0, pool_gradient(g, positions, n));
}

Make summed_gradient(const IntList& axes) {
  return of([=](Graph& graph, Random& r) {
    PoolSizes n = some_pool(r);
    n.batch += 1;
    const Tensor y = graph.input("x", {n.batch, n.channels, n.height, n.width});
    const auto [pooled, positions] = max_pool2d_with_indices(y, n.kernel, n.options);
    const Tensor g = graph.input("g", pooled.shape());
    return sum(pool_gradient(g, positions, n), axes, r.chance(0.5));
  });
}

Samples pools() {
  const char* sums = "sum-of-pool-gradient";
  return {{"relu-mask-above-pool", of(masked_gradient)},
          {sums, summed_gradient({2, 3})},
          {sums, summed_gradient({0, 2, 3})},
          {sums, summed_gradient({-1, 1, -2})},
          {sums, summed_gradient({0, 3}), "sums over the height"},
          {sums, summed_gradient({2}), "sums over the width"}};
}

// --- convolutions

enum class Direction { forward, input, weight };

// What a convolution is of: how many spatial axes, and its window.
struct Window {
  int axes = 2;
  std::int64_t kernel = 1, stride = 1, dilation = 1, groups = 1, least_padding = 0, padding = 0;
  DType dtype = f32;
};

Tensor convolution(Graph& g, Random& r, Direction direction, const Window& n) {
  const auto axes = static_cast<std::size_t>(n.axes);
  const std::int64_t padding = r.between(n.least_padding, n.padding),
                     reach = n.dilation * (n.kernel - 1) + 1;
  const ir::Ints strides(axes, n.stride), paddings(axes, padding), dilations(axes, n.dilation),
      kernels(axes, n.kernel);
  const op::ConvAttrs window{
      .stride = strides, .padding = paddings, .dilation = dilations, .groups = n.groups};
  const std::int64_t in = n.groups * r.between(1, 5), out = n.groups * r.between(1, 5);
  ir::Ints images{r.between(0, 3), in}, made{images[0], out}, weight{out, in / n.groups};
  ir::Ints sizes;
  for (std::size_t k = 0; k < axes; ++k) {
    sizes.push_back(r.between(reach, reach + 6));
    images.push_back(sizes.back());
    made.push_back((sizes.back() + 2 * padding - reach) / n.stride + 1);
    weight.push_back(n.kernel);
  }
  const Tensor x = g.input("x", Shape(direction == Direction::input ? made : images), n.dtype);
  switch (direction) {
    case Direction::forward:
      return ops::apply(ops::def<op::Convolution>(), {x, g.input("w", Shape(weight), n.dtype)},
                        ir::to_values(window))[0];
    case Direction::input:
      return ops::apply(ops::def<op::ConvolutionInputGrad>(),
                        {x, g.input("w", Shape(weight), n.dtype)},
                        ir::to_values(op::ConvolutionInputGrad::Attrs{.input_sizes = sizes,
                                                                      .window = window}))[0];
    case Direction::weight:
      break;
  }
  return ops::apply(ops::def<op::ConvolutionWeightGrad>(), {x, g.input("g", Shape(made), n.dtype)},
                    ir::to_values(op::ConvolutionWeightGrad::Attrs{.kernel_sizes = kernels,
                                                                   .window = window}))[0];
}

Samples convolutions() {
  const std::vector<std::pair<Direction, std::string>> directions = {
      {Direction::forward, "convolution"},
      {Direction::input, "convolution-input-gradient"},
      {Direction::weight, "convolution-weight-gradient"}};
  Samples all;
  for (const auto& [direction, name] : directions) {
    const auto add = [&](const std::string& rule, const Window& window, const char* refused_by) {
      all.push_back({name + rule, of([=, way = direction](Graph& g, Random& r) {
                       return convolution(g, r, way, window);
                     }),
                     refused_by});
    };
    for (const int axes : {1, 2, 3}) add("-as-product", {.axes = axes}, "");
    const std::vector<Window> no_points = {
        {.kernel = 2}, {.stride = 2}, {.groups = 2}, {.least_padding = 1, .padding = 2}};
    for (const Window& window : no_points) add("-as-product", window, kWorth);
    for (const std::string rule : {"-by-winograd4", "-by-winograd2"}) {
      add(rule, {.kernel = 3, .padding = 2}, "");
      const std::vector<Window> others = {{.kernel = 2},
                                          {.axes = 1, .kernel = 3},
                                          {.kernel = 3, .stride = 2},
                                          {.kernel = 3, .dilation = 2},
                                          {.kernel = 3, .groups = 2},
                                          {.kernel = 3, .dtype = f64}};
      for (const Window& window : others) add(rule, window, kWorth);
    }
  }
  return all;
}

// --- sums of pads

struct Part {
  std::int64_t begin, size;
  int axis = 1;
  double value = 0;
};
// Parts of rows of nine (of columns, where the axis is 0) with something around them, and so many
// terms of another kind.
Make sum_of_pads(std::vector<Part> parts, int others, DType dtype = f32) {
  return of([=](Graph& g, Random& r) {
    constexpr std::int64_t kWidth = 9;
    std::vector<Tensor> terms;
    for (const Part& part : parts) {
      Shape shape{kWidth, kWidth};
      shape = shape.with(part.axis, part.size);
      IntList before{0, 0}, after{0, 0};
      before[static_cast<std::size_t>(part.axis)] = part.begin;
      after[static_cast<std::size_t>(part.axis)] = kWidth - part.begin - part.size;
      const std::string name = "p" + std::to_string(terms.size());
      terms.push_back(pad(g.input(name, shape, dtype), before, after, part.value));
    }
    for (int k = 0; k < others; ++k)
      terms.insert(terms.begin() + r.below(std::ssize(terms) + 1),
                   g.input("x" + std::to_string(k), {kWidth, kWidth}, dtype));
    return ops::apply("add_n", {terms.begin(), terms.end()}, {})[0];
  });
}

Samples pads() {
  const char* rule = "sum-of-disjoint-pads";
  return {{rule, sum_of_pads({{4, 3}, {0, 4}}, 0)},
          {rule, sum_of_pads({{5, 3}, {0, 4}}, 0)},
          {rule, sum_of_pads({{6, 3}, {0, 4}}, 1)},
          {rule, sum_of_pads({{6, 3}, {0, 0}, {1, 4}}, 1)},
          {rule, sum_of_pads({{6, 3, 0}, {0, 4, 0}}, 1, i32)},
          {rule, sum_of_pads({{2, 3}, {0, 4}}, 0), "no two overlap"},
          {rule, sum_of_pads({{4, 3, 0}, {0, 4, 1}}, 0), "along one axis"},
          {rule, sum_of_pads({{4, 3}, {0, 4}}, 2), "one other term at most"},
          {rule, sum_of_pads({}, 1), kWorth},
          {rule, sum_of_pads({{4, 3}}, 1), kWorth},
          {rule, sum_of_pads({{4, 3, 1, 2.0}, {0, 4}}, 0), kWorth}};
}

}  // namespace pantala::rewrite::samples::step_parts

namespace pantala::rewrite::samples {

Samples step_samples() {
  Samples all;
  for (const auto part : {step_parts::pools, step_parts::convolutions, step_parts::pads})
    for (Sample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
