// Products.
#include <fmt/format.h>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

void convert_matmul(Node& node) {
  // Integers are multiplied in f64, which is exact up to 2^53.
  const DType dtype = node.dtype(0);
  const Tensor a = node.tensor(0), b = node.tensor(1);
  node.give(is_float(dtype) ? matmul(a, b) : cast(matmul(cast(a, f64), cast(b, f64)), dtype));
}

void convert_gemm(Node& node) {
  const DType dtype = node.dtype(0);
  const auto operand = [&](int k) {
    const Tensor x = node.tensor(k);
    return is_float(dtype) ? x : cast(x, f64);
  };
  const Tensor a = operand(0), b = operand(1);
  if (a.rank() != 2 || b.rank() != 2)
    node.fail(
        fmt::format("the factors must be matrices, got {} and {}", a.type().str(), b.type().str()));
  const MatmulOptions transposed{node.attribute("transA", std::int64_t{0}) != 0,
                                 node.attribute("transB", std::int64_t{0}) != 0};
  const double alpha = node.attribute("alpha", 1.0), beta = node.attribute("beta", 1.0);
  const bool plain =
      is_float(dtype) && alpha == 1 && transposed.transpose_b && !transposed.transpose_a;
  if (plain && !node.has(2)) {
    node.give(linear(a, b));
    return;
  }
  if (plain && beta == 1 && node.rank(2) == 1 && node.shape(2)[0] == b.dim(0)) {
    node.give(linear(a, b, node.tensor(2)));
    return;
  }
  Tensor y = matmul(a, b, transposed);
  if (alpha != 1) y = y * alpha;
  if (node.has(2) && beta != 0) {
    const Tensor c = broadcast_to(operand(2), y.shape());
    y = y + (beta == 1 ? c : c * beta);
  }
  node.give(is_float(dtype) ? y : cast(y, dtype));
}

constexpr Adapter kProductAdapters[] = {
    {"MatMul", convert_matmul, false},
    {"Gemm", convert_gemm, false},
    {"Einsum", convert_einsum, false},
};

}  // namespace

std::span<const Adapter> product_adapters() { return kProductAdapters; }

}  // namespace pantala::onnx
