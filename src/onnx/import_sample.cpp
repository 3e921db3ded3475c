// Random numbers, the largest elements, elements at positions of a grid, and the positions of
// elements that are not 0.
#include <fmt/format.h>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

// --- random numbers; they come from the graph's own counters, so that `seed` has no meaning here

DType drawn_dtype(const Node& node, DType otherwise) {
  if (!node.has_attribute("dtype")) return otherwise;
  const auto number = static_cast<int>(node.attribute("dtype", std::int64_t{0}));
  const std::optional<DType> dtype = dtype_of(number);
  if (!dtype || !is_float(*dtype))
    node.unsupported(fmt::format("elements of type {} are not drawn", onnx_type_name(number)));
  return *dtype;
}

using Draw = Tensor (*)(Node&, const Shape&, DType);
Tensor draw_normal(Node& node, const Shape& shape, DType dtype) {
  return random_normal(node.graph(), shape, node.attribute("mean", 0.0),
                       node.attribute("scale", 1.0), dtype);
}
Tensor draw_uniform(Node& node, const Shape& shape, DType dtype) {
  return random_uniform(node.graph(), shape, node.attribute("low", 0.0),
                        node.attribute("high", 1.0), dtype);
}

template <Draw kDraw>
void convert_random(Node& node) {
  if (!node.has_attribute("shape")) node.fail("the attribute 'shape' is missing");
  node.give(kDraw(node, Shape(node.integers("shape", IntList{})), drawn_dtype(node, f32)));
}
template <Draw kDraw>
void convert_random_like(Node& node) {
  const DType dtype = drawn_dtype(node, node.dtype(0));
  if (!is_float(dtype)) node.fail("its input is " + node.type(0).str() + ", so it needs a dtype");
  node.give(kDraw(node, node.shape(0), dtype));
}

// --- choice

// The elements come sorted, which `sorted = 0` allows.
void convert_topk(Node& node) {
  const Tensor x = node.tensor(0);
  const std::int64_t k =
      node.opset() >= 10 ? node.integer(1) : node.attribute("k", std::int64_t{-1});
  const Topk best = topk(x, k,
                         {.axis = node.axis(node.attribute("axis", std::int64_t{-1}), x.rank()),
                          .largest = node.attribute("largest", std::int64_t{1}) != 0});
  node.give(0, best.values);
  node.give(1, best.indices);
}

// How many there are decides the shape: the numbers must be known.
void convert_non_zero(Node& node) {
  const std::shared_ptr<const Literal> x = node.constant(0);
  const int rank = x->shape().rank();
  std::vector<std::int64_t> found;
  for (std::int64_t k = 0; k < x->numel(); ++k)
    if (x->at(k) != 0) found.push_back(k);
  node.spend_elements(rank * std::ssize(found));
  const std::vector<std::int64_t> strides = x->shape().strides();
  std::vector<std::int64_t> positions;
  for (int axis = 0; axis < rank; ++axis)
    for (const std::int64_t at : found)
      positions.push_back(at / strides[static_cast<std::size_t>(axis)] % x->shape()[axis]);
  node.give_constant(0, Literal::ints({rank, std::ssize(found)}, positions));
}

// --- grids

GridMode grid_mode(const Node& node) {
  const std::string mode = node.attribute("mode", std::string("linear"));
  if (mode == "linear" || mode == "bilinear") return GridMode::bilinear;
  if (mode == "nearest") return GridMode::nearest;
  if (mode == "cubic" || mode == "bicubic") return GridMode::bicubic;
  node.fail(fmt::format("mode '{}' is none", mode));
}

GridPadding grid_padding(const Node& node) {
  const std::string padding = node.attribute("padding_mode", std::string("zeros"));
  if (padding == "zeros") return GridPadding::zeros;
  if (padding == "border") return GridPadding::border;
  if (padding == "reflection") return GridPadding::reflection;
  node.fail(fmt::format("padding_mode '{}' is none", padding));
}

void convert_grid_sample(Node& node) {
  if (node.rank(0) != 4)
    node.unsupported(fmt::format("{} spatial axes; two can be sampled", node.rank(0) - 2));
  const Tensor x = node.tensor(0);
  node.give(grid_sample(x, cast(node.tensor(1), x.dtype()),
                        {.mode = grid_mode(node),
                         .padding = grid_padding(node),
                         .align_corners = node.attribute("align_corners", std::int64_t{0}) != 0}));
}

constexpr Adapter kSampleAdapters[] = {
    {"RandomNormal", convert_random<draw_normal>, false},
    {"RandomNormalLike", convert_random_like<draw_normal>, false},
    {"RandomUniform", convert_random<draw_uniform>, false},
    {"RandomUniformLike", convert_random_like<draw_uniform>, false},
    {"TopK", convert_topk},
    {"NonZero", convert_non_zero},
    {"GridSample", convert_grid_sample, false},
};

}  // namespace

std::span<const Adapter> sample_adapters() { return kSampleAdapters; }

}  // namespace pantala::onnx
