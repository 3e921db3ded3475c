// Products, convolutions and pools.
#include <algorithm>
#include <array>
#include <numeric>

#include "onnx/export_rules.h"
#include "ops/contract.h"
#include "ops/conv.h"
#include "ops/pool.h"

namespace pantala::onnx {

namespace {

using ir::Ints;

bool contains(const Ints& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Ints free_axes(int rank, const Ints& batch, const Ints& contracted) {
  Ints rest;
  for (int axis = 0; axis < rank; ++axis)
    if (!contains(batch, axis) && !contains(contracted, axis)) rest.push_back(axis);
  return rest;
}

Ints joined(std::initializer_list<Ints> lists) {
  Ints all;
  for (const Ints& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Ints sizes_at(const Shape& shape, const Ints& axes) {
  Ints sizes;
  for (const std::int64_t axis : axes) sizes.push_back(shape[static_cast<int>(axis)]);
  return sizes;
}

std::int64_t product(const Ints& sizes) { return Shape(sizes).numel(); }

// One side with its axes in the given order, as [batch..., rows, columns].
std::string matrix(const NodeWriter& n, int side, const Ints& batch, const Ints& rows,
                   const Ints& columns) {
  const Shape& shape = n.shape(side);
  const Ints order = joined({batch, rows, columns});
  const Ints batch_sizes = sizes_at(shape, batch);
  const Shape moved = sizes_at(shape, order),
              merged =
                  joined({batch_sizes,
                          {product(sizes_at(shape, rows)), product(sizes_at(shape, columns))}});
  return n.reshaped(n.permuted(n.in(side), order), moved, merged);
}

void write_contract(const NodeWriter& n) {
  const auto [batch_a, batch_b, sum_a, sum_b] = n.attributes<op::Contract>();
  const Shape &a = n.shape(0), &b = n.shape(1);
  const Ints free_a = free_axes(a.rank(), batch_a, sum_a),
             free_b = free_axes(b.rank(), batch_b, sum_b);
  // x [rows, in] with a weight [out, in]: as PyTorch writes linear layers.
  if (batch_a.empty() && a.rank() == 2 && b.rank() == 2 && sum_a == Ints{1} && sum_b == Ints{1})
    return n.result(n.add("Gemm", {n.in(0), n.in(1)}, {{"transB", std::int64_t{1}}}));
  // Any leading axes with one matrix.
  if (batch_a.empty() && sum_a == Ints{a.rank() - 1} && sum_b.size() == 1 && b.rank() == 2)
    return n.result(n.add("MatMul", {n.in(0), matrix(n, 1, {}, sum_b, free_b)}));
  const std::string y =
      n.add("MatMul", {matrix(n, 0, batch_a, free_a, sum_a), matrix(n, 1, batch_b, sum_b, free_b)});
  const Shape made =
      joined({sizes_at(a, batch_a), {product(sizes_at(a, free_a)), product(sizes_at(b, free_b))}});
  n.result(n.reshaped(y, made, n.result_type().shape));
}

Ints spatial(const Shape& shape) { return Ints(shape.begin() + 2, shape.end()); }
Ints twice(const Ints& padding) { return joined({padding, padding}); }

ExportAttrs window_attributes(const NodeWriter& n, const op::ConvAttrs& window) {
  return {{"kernel_shape", spatial(n.shape(1))},
          {"strides", window.stride},
          {"pads", twice(window.padding)},
          {"dilations", window.dilation},
          {"group", window.groups}};
}

void write_convolution(const NodeWriter& n) {
  const auto window = n.attributes<op::Convolution>();
  n.result(n.add("Conv", {n.in(0), n.in(1)}, window_attributes(n, window)));
}

// Its result may be longer than the windows reach: by less than a stride.
void write_convolution_input_grad(const NodeWriter& n) {
  const Ints sizes = spatial(n.result_type().shape), given = spatial(n.shape(0)),
             kernel = spatial(n.shape(1));
  const op::ConvAttrs window = n.attributes<op::ConvolutionInputGrad>().window;
  Ints extra;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    extra.push_back(sizes[k] - ((given[k] - 1) * window.stride[k] - 2 * window.padding[k] +
                                window.dilation[k] * (kernel[k] - 1) + 1));
  ExportAttrs attrs = window_attributes(n, window);
  attrs.push_back({"output_padding", extra});
  n.result(n.add("ConvTranspose", {n.in(0), n.in(1)}, attrs));
}

// The padding behind the plane that gives as many windows as there are: what sticks out in
// ceil_mode is padding.
Ints end_padding(const NodeWriter& n, const op::PoolAttrs& pool) {
  if (!pool.ceil_mode) return pool.padding;
  const Ints sizes = spatial(n.shape(0)), windows = spatial(n.result_type().shape);
  Ints end;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    end.push_back(std::max<std::int64_t>(
        0, (windows[k] - 1) * pool.stride[k] + pool.kernel[k] - sizes[k] - pool.padding[k]));
  return end;
}

ExportAttrs pool_attributes(const op::PoolAttrs& pool, const Ints& before, const Ints& behind) {
  return {
      {"kernel_shape", pool.kernel}, {"strides", pool.stride}, {"pads", joined({before, behind})}};
}

void write_max_pool(const NodeWriter& n) {
  const auto pool = n.attributes<op::MaxPool2d>();
  n.result(n.add("MaxPool", {n.in(0)}, pool_attributes(pool, pool.padding, end_padding(n, pool))));
}

// The padding counts, but not what sticks out behind it: then the padding becomes zeros of the
// plane, and only the rest is padding.
void write_avg_pool(const NodeWriter& n) {
  const auto [pool, counts] = n.attributes<op::AvgPool2d>();
  const Ints &padding = pool.padding, behind = end_padding(n, pool);
  if (!counts || !pool.ceil_mode) {
    ExportAttrs attrs = pool_attributes(pool, padding, behind);
    attrs.push_back({"count_include_pad", std::int64_t{counts}});
    return n.result(n.add("AveragePool", {n.in(0)}, attrs));
  }
  Ints over;
  for (std::size_t k = 0; k < behind.size(); ++k)
    over.push_back(std::max<std::int64_t>(0, behind[k] - padding[k]));
  const Ints pads{0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]};
  const std::string zeros = n.writer.scalar(0, n.type(0).dtype),
                    x = n.add("Pad", {n.in(0), n.writer.numbers(pads), zeros});
  n.result(n.add("AveragePool", {x}, pool_attributes(pool, {0, 0}, over)));
}

constexpr std::array kProductRules{
    ExportRule{"contract", write_contract},
    ExportRule{"convolution", write_convolution},
    ExportRule{"convolution_input_grad", write_convolution_input_grad},
    ExportRule{"max_pool2d", write_max_pool},
    ExportRule{"avg_pool2d", write_avg_pool},
};

}  // namespace

std::span<const ExportRule> product_export_rules() { return kProductRules; }

}  // namespace pantala::onnx
