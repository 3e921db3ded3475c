// Shapes and constants: reshaping, transposing, broadcasting, and what computes with shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

// --- constants
void convert_constant(Node& node) {
  if (const pb::TensorProto* value = node.tensor_attribute("value")) {
    node.give_constant(0, node.read(*value));
  } else if (node.has_attribute("value_float")) {
    node.give_constant(0, Literal::scalar(node.attribute("value_float", 0.0), f32));
  } else if (node.has_attribute("value_int")) {
    node.give_constant(0, Literal::integer(node.attribute("value_int", std::int64_t{0})));
  } else if (node.has_attribute("value_floats")) {
    const std::vector<double> values = node.numbers("value_floats");
    node.give_constant(0, Literal::floats({std::ssize(values)}, values));
  } else if (node.has_attribute("value_ints")) {
    const IntList values = node.integers("value_ints", {});
    node.give_constant(0, Literal::ints({std::ssize(values)}, values));
  } else {
    node.unsupported("constants of strings and sparse ones are not read");
  }
}

void convert_constant_of_shape(Node& node) {
  const Shape shape(node.integers(0));
  const pb::TensorProto* given = node.tensor_attribute("value");
  if (given == nullptr) return node.give(node.graph().constant(0, shape, f32));
  const Literal literal = node.read(*given);
  if (literal.numel() != 1) node.fail("the attribute 'value' must be one number");
  if (literal.is_float())
    node.give(node.graph().constant(literal.at(0), shape, literal.dtype()));
  else  // a double does not hold every integer
    node.give(broadcast_to(node.graph().constant(Literal::integer(literal.i()[0], literal.dtype())),
                           shape));
}

void convert_shape(Node& node) {
  const Shape& shape = node.shape(0);
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const auto bound = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = bound(node.attribute("start", std::int64_t{0}));
  const std::int64_t end = std::max(start, bound(node.attribute("end", rank)));
  const std::vector<std::int64_t> sizes(shape.begin() + start, shape.begin() + end);
  node.give_constant(0, Literal::ints({end - start}, sizes));
}

void convert_size(Node& node) { node.give_constant(0, Literal::integer(node.shape(0).numel())); }

void convert_range(Node& node) {
  const double start = node.number(0), limit = node.number(1), delta = node.number(2);
  const DType dtype = node.dtype(0);
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count < 0x1p40)) node.fail("start, limit and delta do not make a range");
  const Shape shape{static_cast<std::int64_t>(count)};
  if (is_float(dtype)) {
    node.spend_elements(shape[0]);
    std::vector<double> values;
    for (std::int64_t k = 0; k < shape[0]; ++k)
      values.push_back(start + static_cast<double>(k) * delta);
    node.give_constant(0, Literal::floats(shape, values, dtype));
    return;
  }
  const Tensor steps = iota_beside(node.graph().constant(0, {}, dtype), shape, 0, dtype);
  node.give(steps * delta + start);
}

void convert_eye_like(Node& node) {
  const Shape& shape = node.shape(0);
  if (shape.rank() != 2) node.fail("the input must be a matrix, got " + node.type(0).str());
  const std::optional<DType> dtype =
      dtype_of(static_cast<int>(node.attribute("dtype", std::int64_t{onnx_type(node.dtype(0))})));
  if (!dtype) node.unsupported("such elements are not available");
  const Tensor beside = node.graph().constant(0, {}, i64);
  const Tensor rows = iota_beside(beside, shape, 0), columns = iota_beside(beside, shape, 1);
  node.give(cast(eq(rows + node.attribute("k", std::int64_t{0}), columns), *dtype));
}

// --- movement
void convert_reshape(Node& node) {
  IntList sizes = node.integers(1, "shape");
  const Shape& from = node.shape(0);
  const bool zero_is_zero = node.attribute("allowzero", std::int64_t{0}) != 0;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if (sizes[k] == 0 && !zero_is_zero) {
      if (static_cast<int>(k) >= from.rank())
        node.fail(fmt::format("size {} is copied from {}, which has no such axis", k, from.str()));
      sizes[k] = from[static_cast<int>(k)];
    }
  node.give(reshape(node.tensor(0), sizes));
}

void convert_flatten(Node& node) {
  const Shape& shape = node.shape(0);
  const std::int64_t given = node.attribute("axis", std::int64_t{1});
  const std::int64_t axis = given < 0 ? given + shape.rank() : given;
  if (axis < 0 || axis > shape.rank()) node.fail(fmt::format("axis {} is out of range", given));
  std::int64_t rows = 1, columns = 1;
  for (int k = 0; k < shape.rank(); ++k) (k < axis ? rows : columns) *= shape[k];
  node.give(reshape(node.tensor(0), {rows, columns}));
}

void convert_transpose(Node& node) {
  IntList axes(static_cast<std::size_t>(node.rank(0)));
  std::iota(axes.rbegin(), axes.rend(), 0);
  node.give(permute(node.tensor(0), node.integers("perm", axes)));
}

void convert_squeeze(Node& node) {
  const Shape& shape = node.shape(0);
  const IntList given = node.integers(1, "axes");
  const bool all = !node.has(1) && !node.has_attribute("axes");
  std::vector<bool> removed(static_cast<std::size_t>(shape.rank()), false);
  for (const std::int64_t axis : given)
    removed[static_cast<std::size_t>(node.axis(axis, shape.rank()))] = true;
  IntList sizes;
  for (int k = 0; k < shape.rank(); ++k) {
    const bool gone = all ? shape[k] == 1 : removed[static_cast<std::size_t>(k)];
    if (gone && shape[k] != 1)
      node.fail(fmt::format("axis {} of {} is not 1", k, node.type(0).str()));
    if (!gone) sizes.push_back(shape[k]);
  }
  node.give(reshape(node.tensor(0), sizes));
}

void convert_unsqueeze(Node& node) {
  const IntList given = node.integers(1, "axes");
  const Shape& shape = node.shape(0);
  const int rank = shape.rank() + static_cast<int>(given.size());
  if (rank > Shape::kMaxRank) node.unsupported(fmt::format("{} axes", rank));
  std::vector<bool> added(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : given) {
    const auto at = static_cast<std::size_t>(node.axis(axis, rank));
    if (added[at]) node.fail(fmt::format("axis {} is added twice", axis));
    added[at] = true;
  }
  IntList sizes;
  const std::int64_t* next = shape.begin();
  for (const bool is_new : added) sizes.push_back(is_new ? 1 : *next++);
  node.give(reshape(node.tensor(0), sizes));
}

void convert_expand(Node& node) {
  const Shape wanted(node.integers(1));
  Shape common;
  if (!broadcast_shapes(node.shape(0), wanted, common))
    node.fail(fmt::format("{} does not broadcast to {}", node.type(0).str(), wanted.str()));
  node.give(broadcast_to(node.tensor(0), common));
}

void convert_tile(Node& node) {
  if (node.has(2)) node.unsupported("repeats of one axis (version 1)");
  node.give(tile(node.tensor(0), node.integers(1)));
}

void convert_trilu(Node& node) {
  const std::int64_t diagonal = node.has(1) ? node.integer(1) : 0;
  const bool upper = node.attribute("upper", std::int64_t{1}) != 0;
  const Tensor x = node.tensor(0);
  const Tensor numbers = x.dtype() == boolean ? cast(x, i32) : x;
  node.give(cast(upper ? triu(numbers, diagonal) : tril(numbers, diagonal), x.dtype()));
}

void convert_depth_to_space(Node& node) {
  const Shape& s = node.shape(0);
  const std::int64_t block = node.attribute("blocksize", std::int64_t{0});
  const std::string mode = node.attribute("mode", std::string("DCR"));
  if (s.rank() != 4 || block < 1 || block > (1 << 20) || s[1] % (block * block) != 0)
    node.fail(fmt::format("blocks of {} do not fit {}", block, node.type(0).str()));
  if (mode != "DCR" && mode != "CRD") node.fail(fmt::format("mode '{}'", mode));
  const std::int64_t depth = s[1] / (block * block);
  const Tensor x = node.tensor(0);
  const Tensor blocks =
      mode == "DCR"
          ? permute(reshape(x, {s[0], block, block, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
          : permute(reshape(x, {s[0], depth, block, block, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  node.give(reshape(blocks, {s[0], depth, s[2] * block, s[3] * block}));
}

void convert_space_to_depth(Node& node) {
  const Shape& s = node.shape(0);
  const std::int64_t block = node.attribute("blocksize", std::int64_t{0});
  if (s.rank() != 4 || block < 1 || block > (1 << 20) || s[2] % block != 0 || s[3] % block != 0)
    node.fail(fmt::format("blocks of {} do not fit {}", block, node.type(0).str()));
  const std::string mode = node.attribute("mode", std::string("DCR"));
  if (mode != "DCR" && mode != "CRD") node.fail(fmt::format("mode '{}'", mode));
  const Tensor blocks =
      reshape(node.tensor(0), {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const IntList order = mode == "DCR" ? IntList{0, 3, 5, 1, 2, 4} : IntList{0, 1, 3, 5, 2, 4};
  node.give(
      reshape(permute(blocks, order), {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
}

constexpr Adapter kShapeAdapters[] = {
    {"Constant", convert_constant},
    {"ConstantOfShape", convert_constant_of_shape},
    {"Shape", convert_shape},
    {"Size", convert_size},
    {"Range", convert_range},
    {"EyeLike", convert_eye_like},
    {"Reshape", convert_reshape},
    {"Flatten", convert_flatten},
    {"Transpose", convert_transpose},
    {"Squeeze", convert_squeeze},
    {"Unsqueeze", convert_unsqueeze},
    {"Expand", convert_expand},
    {"Tile", convert_tile},
    {"Trilu", convert_trilu},
    {"DepthToSpace", convert_depth_to_space},
    {"SpaceToDepth", convert_space_to_depth},
};

}  // namespace

std::span<const Adapter> shape_adapters() { return kShapeAdapters; }

}  // namespace pantala::onnx
