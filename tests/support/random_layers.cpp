#include "support/random_layers.h"

#include <algorithm>
#include <numeric>

#include "pantala/ops.h"
#include "support/random_graph.h"

namespace pantala::tests {

namespace {

using Tensors = std::vector<Tensor>;

constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17};
constexpr std::int64_t kLargeSizes[] = {33, 64, 129, 300};
constexpr std::int64_t kMostElements = 3000;

std::int64_t size(const LayerSource& s) {
  return s.random.chance(0.1) ? s.random.pick(kLargeSizes) : s.random.pick(kSizes);
}
// Now and then nothing.
std::int64_t size_or_zero(const LayerSource& s) { return s.random.chance(0.06) ? 0 : size(s); }
std::int64_t small(const LayerSource& s) { return s.random.between(1, 5); }

Shape shape_of(const LayerSource& s, std::int64_t rank, bool zeros) {
  while (true) {
    Shape shape;
    for (std::int64_t k = 0; k < rank; ++k)
      shape = shape.insert(0, zeros ? size_or_zero(s) : size(s));
    if (shape.numel() <= kMostElements) return shape;
  }
}

std::int64_t axis_of(const LayerSource& s, const Shape& shape) {
  return s.random.below(shape.rank());
}

// --- products

Tensors make_matmul(const LayerSource& s) {
  const std::int64_t m = size_or_zero(s), k = size_or_zero(s), n = size_or_zero(s);
  const MatmulOptions options{.transpose_a = s.random.chance(0.5),
                              .transpose_b = s.random.chance(0.5)};
  Shape a = options.transpose_a ? Shape{k, m} : Shape{m, k};
  Shape b = options.transpose_b ? Shape{n, k} : Shape{k, n};
  if (s.random.chance(0.3)) {
    const std::int64_t batch = s.random.between(1, 3);
    a = a.insert(0, batch);
    b = b.insert(0, batch);
  }
  return {matmul(s.any(a), s.any(b), options)};
}

Tensors make_linear(const LayerSource& s) {
  const std::int64_t in = size(s), out = size(s);
  const Tensor x = s.any({size_or_zero(s), in}), weight = s.any({out, in});
  if (s.random.chance(0.3)) return {linear(x, weight)};
  return {linear(x, weight, s.any({out}))};
}

// Batch and contracted axes anywhere.
Tensors make_contract(const LayerSource& s) {
  const std::int64_t batch = small(s), inner = small(s), outer = small(s);
  const Tensor a = s.any({inner, size(s), batch, outer}), b = s.any({outer, batch, size(s), inner});
  return {
      contract(a, b, {.batch_a = {2}, .batch_b = {1}, .contract_a = {0, 3}, .contract_b = {3, 0}})};
}

// --- windows

struct Image {
  std::int64_t batch, channels, height, width;
  Shape shape() const { return {batch, channels, height, width}; }
};
Image image_of(const LayerSource& s, std::int64_t smallest) {
  return {s.random.between(1, 3), s.random.between(1, 6), s.random.between(smallest, 9),
          s.random.between(smallest, 11)};
}

Tensors make_conv2d(const LayerSource& s) {
  const Image x = image_of(s, 5);
  const std::int64_t kernel = s.random.between(1, 3),
                     groups = s.random.chance(0.2) ? x.channels : 1;
  const std::int64_t out = groups * s.random.between(1, 5);
  const ConvOptions options{.stride = {s.random.between(1, 2)},
                            .padding = {s.random.between(0, kernel - 1)},
                            .dilation = {s.random.between(1, 2)},
                            .groups = groups};
  const Tensor weight = s.any({out, x.channels / groups, kernel, kernel});
  const std::optional<Tensor> bias =
      s.random.chance(0.5) ? std::optional(s.any({out})) : std::nullopt;
  return {conv2d(s.any(x.shape()), weight, bias, options)};
}

Tensors make_conv1d(const LayerSource& s) {
  const std::int64_t in = small(s), kernel = s.random.between(1, 3);
  return {conv1d(s.any({small(s), in, s.random.between(5, 40)}), s.any({size(s), in, kernel}),
                 std::nullopt, {.stride = {s.random.between(1, 2)}, .padding = {kernel / 2}})};
}

Tensors make_conv_transpose2d(const LayerSource& s) {
  const Image x = image_of(s, 1);
  const std::int64_t kernel = s.random.between(1, 3);
  return {conv_transpose2d(s.any(x.shape()), s.any({x.channels, small(s), kernel, kernel}),
                           std::nullopt, {.stride = {s.random.between(1, 2)}})};
}

PoolOptions pool_options(const LayerSource& s) { return {.stride = {s.random.between(1, 3)}}; }

Tensors make_max_pool(const LayerSource& s) {
  const std::int64_t kernel = s.random.between(1, 3);
  return {max_pool2d(s.any(image_of(s, 3).shape()), {kernel}, pool_options(s))};
}

Tensors make_avg_pool(const LayerSource& s) {
  const std::int64_t kernel = s.random.between(1, 3);
  return {avg_pool2d(s.any(image_of(s, 3).shape()), {kernel}, pool_options(s))};
}

Tensors make_resampled(const LayerSource& s) {
  const Tensor x = s.any(image_of(s, 1).shape());
  return {s.random.chance(0.5) ? upsample_bilinear2x(x) : global_avg_pool(x)};
}

Tensors make_upsampled(const LayerSource& s) {
  return {upsample_nearest2x(s.any(image_of(s, 1).shape()))};
}

// --- reductions

IntList some_axes(const LayerSource& s, const Shape& shape) {
  IntList axes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (s.random.chance(0.5)) axes.push_back(axis);
  if (axes.empty()) axes.push_back(axis_of(s, shape));
  return axes;
}

Tensors make_sum(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 4), true);
  return {sum(s.any(shape), some_axes(s, shape), s.random.chance(0.5))};
}

Tensors make_reduction(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), false);
  const Tensor x = s.floats(shape, 0.5, 1.5);
  const IntList axes = some_axes(s, shape);
  const bool keepdims = s.random.chance(0.5);
  switch (s.random.below(6)) {
    case 0:
      return {mean(x, axes, keepdims)};
    case 1:
      return {amax(x, axes, keepdims)};
    case 2:
      return {amin(x, axes, keepdims)};
    case 3:
      return {prod(s.floats({small(s), 3, small(s)}, 0.5, 1.5), {s.random.below(3)}, keepdims)};
    case 4:
      return {logsumexp(x, axes, keepdims)};
    default:
      return {var(x, axes, {.unbiased = false, .keepdims = keepdims})};
  }
}

Tensors make_cumsum(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), true);
  return {cumsum(s.any(shape), axis_of(s, shape), s.random.chance(0.5))};
}

// --- moving elements about

Tensor moved(const LayerSource& s, const Tensor& x) {
  const Shape& shape = x.shape();
  const std::int64_t axis = axis_of(s, shape), length = shape[static_cast<int>(axis)];
  const auto rank = static_cast<std::size_t>(shape.rank());
  switch (s.random.below(7)) {
    case 0: {
      IntList axes(rank);
      std::iota(axes.begin(), axes.end(), 0);
      for (std::size_t k = rank; k > 1; --k)
        std::swap(axes[k - 1], axes[static_cast<std::size_t>(s.random.below(std::ssize(axes)))]);
      return permute(x, axes);
    }
    case 1: {
      const std::int64_t start = s.random.between(0, length), end = s.random.between(start, length);
      return slice_axis(x, axis, start, end, s.random.between(1, 3));
    }
    case 2:
      return flip(x, {axis});
    case 3: {
      IntList before(rank, 0), after(rank, 0), interior(rank, 0);
      before[static_cast<std::size_t>(axis)] = s.random.between(0, 2);
      after[static_cast<std::size_t>(axis)] = s.random.between(0, 2);
      interior[static_cast<std::size_t>(axis)] = s.random.between(0, 1);
      return pad(x, before, after, static_cast<double>(s.random.between(-1, 1)), interior);
    }
    case 4: {
      Shape other = shape.with(static_cast<int>(axis), s.random.between(0, 4));
      return concat({x, s.any(other), x}, axis);
    }
    case 5:
      return reshape(x, {x.numel()});
    default: {
      IntList repeats(rank, 1);
      repeats[static_cast<std::size_t>(axis)] = s.random.between(1, 3);
      return tile(x, repeats);
    }
  }
}

Tensors make_movement(const LayerSource& s) {
  Tensor x = s.any(shape_of(s, s.random.between(1, 4), true));
  for (std::int64_t k = s.random.between(1, 4); k > 0 && x.numel() <= kMostElements; --k)
    x = moved(s, x);
  return {x};
}

Tensors make_triangle(const LayerSource& s) {
  const Tensor x = s.any(shape_of(s, s.random.between(2, 3), true));
  const std::int64_t diagonal = s.random.between(-2, 2);
  return {s.random.chance(0.5) ? tril(x, diagonal) : triu(x, diagonal)};
}

// --- indices

Tensors make_take(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), false);
  const std::int64_t axis = axis_of(s, shape);
  const Tensor index = s.indices(s.random.chance(0.5) ? Shape{size_or_zero(s)} : Shape{2, 3},
                                 shape[static_cast<int>(axis)]);
  return {take(s.any(shape), index, axis)};
}

Tensors make_gather(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), false);
  const std::int64_t axis = axis_of(s, shape);
  const Shape result = shape.with(static_cast<int>(axis), small(s));
  return {gather(s.any(shape), s.indices(result, shape[static_cast<int>(axis)]), axis)};
}

Tensors make_scatter_add(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), false);
  const std::int64_t axis = axis_of(s, shape), rows = shape[static_cast<int>(axis)];
  const std::int64_t count = size_or_zero(s);
  const Shape source = shape.with(static_cast<int>(axis), std::min<std::int64_t>(count, 17));
  const Tensor x = s.any(shape), values = s.any(source);
  if (s.random.chance(0.5))
    return {scatter_add(x, s.indices({source[static_cast<int>(axis)]}, rows), values, axis)};
  return {scatter_add_elements(x, s.indices(source, rows), values, axis)};
}

// --- norms, probabilities, losses

Tensors make_norm(const LayerSource& s) {
  const std::int64_t channels = 2 * small(s), rows = size(s);
  const Tensor weight = s.floats({channels}, 0.5, 1.5), bias = s.any({channels});
  switch (s.random.below(4)) {
    case 0:
      return {layer_norm(s.any({rows, channels}), weight, bias)};
    case 1:
      return {rms_norm(s.any({rows, 2, channels}), weight)};
    case 2:
      return {group_norm(s.any({small(s), channels, small(s), 3}), 2, weight, bias)};
    default: {
      const BatchNormResult r =
          batch_norm_train(s.any({small(s), channels, 4, small(s)}), weight, bias,
                           s.any({channels}), s.floats({channels}, 0.5, 1.5));
      return {r.y, r.running_mean, r.running_var};
    }
  }
}

Tensors make_softmax(const LayerSource& s) {
  const Shape shape = shape_of(s, s.random.between(1, 3), false);
  const Tensor x = s.floats(shape, -4, 4);
  const std::int64_t axis = axis_of(s, shape);
  return {s.random.chance(0.5) ? softmax(x, axis) : log_softmax(x, axis)};
}

Tensors make_loss(const LayerSource& s) {
  const std::int64_t rows = size(s), classes = s.random.between(2, 12);
  const Tensor x = s.floats({rows, classes}, -3, 3);
  const Reduction reduction = s.random.chance(0.5) ? Reduction::mean : Reduction::sum;
  switch (s.random.below(5)) {
    case 0:
      return {mse_loss(x, s.any({rows, classes}), {.reduction = reduction})};
    case 1:
      return {huber_loss(x, s.any({rows, classes}), {.delta = 0.7, .reduction = reduction})};
    case 2:
      return {cross_entropy(x, s.indices({rows}, classes), {.reduction = reduction})};
    case 3:
      return {cross_entropy(x, softmax(s.any({rows, classes})), {.label_smoothing = 0.1})};
    default:
      return {bce_with_logits(x, s.floats({rows, classes}, 0, 1), {.reduction = reduction})};
  }
}

Tensors make_attention(const LayerSource& s) {
  const std::int64_t batch = s.random.between(1, 2), key_heads = s.random.between(1, 2),
                     heads = key_heads * s.random.between(1, 2), width = 2 * s.random.between(1, 4),
                     keys = s.random.between(1, 9);
  const bool causal = s.random.chance(0.5);
  const std::int64_t queries = causal ? keys : s.random.between(1, 9);
  return {attention(s.any({batch, heads, queries, width}), s.any({batch, key_heads, keys, width}),
                    s.any({batch, key_heads, keys, width}), {.causal = causal})};
}

constexpr Layer kLayers[] = {
    {"matmul", make_matmul, true},
    {"linear", make_linear, true},
    {"contract", make_contract, true},
    {"conv2d", make_conv2d, true},
    {"conv1d", make_conv1d, true},
    {"conv_transpose2d", make_conv_transpose2d, true},
    {"max_pool2d", make_max_pool, true},
    {"avg_pool2d", make_avg_pool, false},
    {"resampled", make_resampled, false},
    {"upsampled", make_upsampled, true},
    {"sum", make_sum, true},
    {"reduction", make_reduction, false},
    {"cumsum", make_cumsum, true},
    {"movement", make_movement, true},
    {"triangle", make_triangle, true},
    {"take", make_take, true},
    {"gather", make_gather, true},
    {"scatter_add", make_scatter_add, true},
    {"norm", make_norm, false},
    {"softmax", make_softmax, false},
    {"loss", make_loss, false},
    {"attention", make_attention, false},
};

}  // namespace

std::span<const Layer> random_layers() { return kLayers; }

}  // namespace pantala::tests
