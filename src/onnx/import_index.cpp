// Reading and writing by index. ONNX lets indices count from the end; the ops do not.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

// Indices that count from the front.
Tensor from_front(const Tensor& index, std::int64_t size) {
  return where(lt(index, 0), index + size, index);
}

Tensor index_input(Node& node, int input, std::int64_t size) {
  if (node.dtype(input) != i32 && node.dtype(input) != i64)
    node.fail("indices must be i32 or i64, got " + node.type(input).str());
  if (!node.is_constant(input)) return from_front(node.tensor(input), size);
  Literal index = *node.constant(input);
  for (std::int64_t& at : index.i()) {
    if (at < -size || at >= size)
      node.fail(fmt::format("index {} is out of range for {} elements", at, size));
    if (at < 0) at += size;
  }
  return node.graph().constant(std::move(index));
}

void convert_gather(Node& node) {
  const int axis = node.axis(node.attribute("axis", std::int64_t{0}), node.rank(0));
  const Tensor index = index_input(node, 1, node.shape(0)[axis]);
  const Tensor rows = take(node.tensor(0), index, axis);
  const Scopes::EmbeddingCall call = node.embedding_call();
  if (!node.options().training || node.evaluates()) return node.give(rows);
  if (call.scales_by_frequency) node.unsupported("gradients that are scaled by frequency");
  if (call.padding < 0) return node.give(rows);
  // The row of padding is not trained.
  node.give(where(unsqueeze(eq(index, static_cast<double>(call.padding)), -1), stop_gradient(rows),
                  rows));
}

void convert_gather_elements(Node& node) {
  const int axis = node.axis(node.attribute("axis", std::int64_t{0}), node.rank(0));
  const Tensor index = index_input(node, 1, node.shape(0)[axis]);
  node.give(gather(node.tensor(0), index, axis));
}

void convert_scatter_elements(Node& node) {
  const Tensor x = node.tensor(0), source = node.tensor(2);
  const int axis = node.axis(node.attribute("axis", std::int64_t{0}), x.rank());
  const Tensor index = index_input(node, 1, x.dim(axis));
  const std::string reduction = node.attribute("reduction", std::string("none"));
  if (reduction == "add")
    node.give(scatter_add_elements(x, index, source, axis));
  else if (reduction == "none")
    node.give(scatter(x, index, source, axis));
  else
    node.unsupported(fmt::format("reduction '{}'", reduction));
}

// --- indices of several axes

// Indices [..., k] name k axes behind `batch` leading ones. The named axes are taken as one.
struct NamedAxes {
  int batch = 0, count = 0;
  std::int64_t elements = 1;  // of the named axes together
  Shape rest = {};            // behind them
};
NamedAxes named_axes(const Node& node, const Shape& x, const Shape& index, int batch) {
  NamedAxes named{.batch = batch};
  if (index.rank() < 1 || batch < 0 || batch >= std::min(x.rank(), index.rank()) ||
      index.back() > x.rank() - batch)
    node.fail(fmt::format("indices {} do not fit {}", index.str(), x.str()));
  named.count = static_cast<int>(index.back());
  for (int k = 0; k < batch; ++k)
    if (x[k] != index[k])
      node.fail(fmt::format("indices {} and {} have different batches", index.str(), x.str()));
  for (int k = batch; k < batch + named.count; ++k) named.elements *= x[k];
  named.rest = Shape(IntList(x.begin() + batch + named.count, x.end()));
  return named;
}

// The position among the named axes taken as one: [...].
Tensor flat_positions(Node& node, const Tensor& index, const Shape& x, const NamedAxes& named) {
  const int last = index.rank() - 1;
  if (named.count == 0) return node.graph().constant(0, index.shape().without(last), index.dtype());
  Tensor flat, outside;
  std::int64_t stride = 1;
  for (int k = named.count; k-- > 0;) {
    const std::int64_t size = x[named.batch + k];
    const Tensor at = from_front(squeeze(slice_axis(index, last, k, k + 1), last), size);
    const Tensor wrong = logical_or(lt(at, 0), ge(at, size));
    outside = outside.valid() ? logical_or(outside, wrong) : wrong;
    flat = flat.valid() ? flat + at * stride : at * stride;
    stride *= size;
  }
  // One that is out of range along its own axis must not name another element: it is out of range
  // for all of them.
  return where(outside, std::numeric_limits<std::int32_t>::min(), flat);
}

IntList joined(const IntList& a, const Shape& b) {
  IntList all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

void convert_gather_nd(Node& node) {
  const Shape x = node.shape(0);
  const Tensor index = node.tensor(1);
  const auto batch = static_cast<int>(
      std::clamp<std::int64_t>(node.attribute("batch_dims", std::int64_t{0}), -1, 9));
  const NamedAxes named = named_axes(node, x, index.shape(), batch);
  Tensor flat = flat_positions(node, index, x, named);
  std::int64_t batches = 1;
  IntList ones(static_cast<std::size_t>(flat.rank()), 1);
  for (int k = 0; k < batch; ++k) {
    batches *= x[k];
    ones[static_cast<std::size_t>(k)] = x[k];
  }
  // Each batch has its own stretch of rows.
  if (batches != 1) {
    const Tensor number = iota_beside(flat, {batches}, 0, flat.dtype());
    flat = flat + reshape(number, ones) * named.elements;
  }
  const Tensor rows = reshape(node.tensor(0), joined({batches * named.elements}, named.rest));
  node.give(take(rows, flat, 0));
}

void convert_scatter_nd(Node& node) {
  const Shape x = node.shape(0);
  const Tensor index = node.tensor(1);
  const NamedAxes named = named_axes(node, x, index.shape(), 0);
  const Tensor flat = flat_positions(node, index, x, named);
  const std::int64_t width = named.rest.numel(), count = flat.numel();
  const Tensor rows = reshape(node.tensor(0), {named.elements, width});
  const Tensor source = reshape(node.tensor(2), {count, width});
  const std::string reduction = node.attribute("reduction", std::string("none"));
  Tensor y;
  if (reduction == "add")
    y = scatter_add(rows, reshape(flat, {count}), source, 0);
  else if (reduction == "none")
    y = scatter(rows, broadcast_to(reshape(flat, {count, 1}), {count, width}), source, 0);
  else
    node.unsupported(fmt::format("reduction '{}'", reduction));
  node.give(reshape(y, x.vec()));
}

// --- others
void convert_one_hot(Node& node) {
  const double depth = node.number(1);
  if (!(depth >= 1 && depth < 0x1p40)) node.fail(fmt::format("a depth of {}", depth));
  const auto size = static_cast<std::int64_t>(depth);
  const Tensor index = from_front(cast(node.tensor(0), i64), size);
  const int axis = node.axis(node.attribute("axis", std::int64_t{-1}), index.rank() + 1);
  const Tensor values = node.tensor(2);
  if (values.rank() != 1 || values.dim(0) != 2) node.fail("values must be two numbers, off and on");
  const Shape shape = index.shape().insert(axis, size);
  const Tensor hit = eq(iota_beside(index, shape, axis), unsqueeze(index, axis));
  const auto value = [&](std::int64_t k) { return squeeze(slice_axis(values, 0, k, k + 1), 0); };
  node.give(where(hit, value(1), value(0)));
}

// Which slices stay decides the shape.
void convert_compress(Node& node) {
  const std::vector<std::int64_t> condition = node.integers(1);
  const bool flat = !node.has_attribute("axis");
  const Tensor x = flat ? reshape(node.tensor(0), {-1}) : node.tensor(0);
  const int axis = flat ? 0 : node.axis(node.attribute("axis", std::int64_t{0}), x.rank());
  std::vector<std::int64_t> kept;
  for (std::size_t k = 0; k < condition.size(); ++k)
    if (condition[k] != 0) kept.push_back(static_cast<std::int64_t>(k));
  if (!kept.empty() && kept.back() >= x.dim(axis))
    node.fail("the condition is longer than the axis");
  node.give(take(x, node.index_constant(kept, {std::ssize(kept)}), axis));
}

constexpr Adapter kIndexAdapters[] = {
    {"Gather", convert_gather},
    {"GatherElements", convert_gather_elements},
    {"GatherND", convert_gather_nd},
    {"Scatter", convert_scatter_elements},
    {"ScatterElements", convert_scatter_elements},
    {"ScatterND", convert_scatter_nd},
    {"OneHot", convert_one_hot},
    {"Compress", convert_compress},
};

}  // namespace

std::span<const Adapter> index_adapters() { return kIndexAdapters; }

}  // namespace pantala::onnx
