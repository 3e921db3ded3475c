#include "ops/arithmetic.h"
#include "ops/face.h"
#include "ops/movement.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::product_parts {

Tensor product(const Tensor& a, const Tensor& b, const ir::Ints& of_a, const ir::Ints& of_b,
               const ir::Ints& batch_a = {}, const ir::Ints& batch_b = {}) {
  return contract(a, b,
                  {.batch_a = batch_a, .batch_b = batch_b, .contract_a = of_a, .contract_b = of_b});
}

// --- operands that are permuted

// The last axis of a permuted value by another matrix, or a matrix by that.
Make of_permuted(const std::function<Shape(Random&)>& shape, const ir::Ints& order, bool left) {
  return of([=](Graph& g, Random& r) {
    const Tensor turned = permute(g.input("x", shape(r)), order);
    const std::int64_t last = turned.rank() - 1;
    const Tensor other = g.input("k", {turned.shape().back(), any_size(r)});
    return left ? product(turned, other, {last}, {0}) : product(other, turned, {0}, {last});
  });
}
// The same of a batch of matrices.
Make of_permuted_batch(bool left) {
  return of([=](Graph& g, Random& r) {
    const std::int64_t batch = some_size(r), inner = any_size(r);
    const Tensor turned = permute(g.input("x", {inner, batch, some_size(r)}), {1, 2, 0});
    const Tensor other = g.input("k", {batch, inner, some_size(r)});
    return left ? product(turned, other, {2}, {1}, {0}, {0})
                : product(other, turned, {1}, {2}, {0}, {0});
  });
}
Shape some_matrix(Random& r) { return {any_size(r), any_size(r)}; }
Shape some_cube(Random& r) { return {any_size(r), any_size(r), any_size(r)}; }
Shape equal_rows(Random& r) {
  const std::int64_t rows = r.between(2, 4);
  return {rows, rows, some_size(r)};
}

Samples permuted_operands() {
  const char* order = "axes that stay keep their order";
  Samples all;
  for (const bool left : {true, false}) {
    const std::string rule = left ? "product-of-permuted-left" : "product-of-permuted-right";
    all.push_back({rule, of_permuted(some_matrix, {1, 0}, left)});
    all.push_back({rule, of_permuted(some_cube, {1, 2, 0}, left)});
    all.push_back({rule, of_permuted(equal_rows, {1, 0, 2}, left), order});
    all.push_back({rule, of_permuted_batch(left), kWorth});
  }
  return all;
}

// Rows that are no matrix: two axes that stay, one that is summed, somewhere between.
Tensor turned_rows(Graph& g, Random& r, bool batched) {
  const Tensor y = permute(g.input("x", {5, 3, 2, 4}), {2, 0, 1, 3});  // [2, 5, 3, 4]
  if (batched) return product(y, g.input("k", {3, 4, some_size(r)}), {3}, {1}, {2}, {0});
  return product(y, g.input("k", {3, some_size(r), 7}), {2}, {0});
}

Samples permuted_rows() {
  const char* rule = "product-of-permuted-rows";
  const auto turned = [](bool batched) {
    return of([=](Graph& g, Random& r) { return turned_rows(g, r, batched); });
  };
  return {{rule, of_permuted(some_cube, {1, 0, 2}, true)},
          {rule, turned(false)},
          {rule, turned(true), "no batch"},
          {rule, of_permuted(some_matrix, {1, 0}, true), kWorth}};
}

// --- rows that are reshaped

// [rows, inner] as [rows / 2, 2, inner], by a matrix.
Tensor product_of_rows(Graph& g, Random& r) {
  const std::int64_t rows = any_size(r), inner = some_size(r);
  const Tensor x = g.input("x", {2 * rows, inner});
  return product(reshape(x, {rows, 2, inner}), g.input("k", {any_size(r), inner}), {2}, {1});
}
Tensor product_of_batch(Graph& g, Random& r) {
  const std::int64_t inner = some_size(r);
  const Tensor x = g.input("x", {6, inner});
  return product(reshape(x, {2, 3, inner}), g.input("k", {2, inner, 4}), {2}, {1}, {0}, {0});
}
Tensor product_of_columns(Graph& g, Random& r) {
  const std::int64_t size = r.between(2, 4);
  const Tensor x = g.input("x", {3 * size, size});
  return product(reshape(x, {3, size, size}), g.input("k", {size, 2}), {1}, {0});
}
Tensor product_of_other_rows(Graph& g, Random&) {
  return product(reshape(g.input("x", {4, 6}), {8, 3}), g.input("k", {3, 5}), {1}, {0});
}
Tensor product_of_empty_rows(Graph& g, Random&) {
  return product(reshape(g.input("x", {4, 0}), {2, 3, 0}), g.input("k", {0, 5}), {2}, {0});
}

Samples reshaped_rows() {
  const char* rule = "product-of-reshaped-rows";
  return {{rule, of(product_of_rows)},
          {rule, of(product_of_batch), "no batch"},
          {rule, of(product_of_columns), "rows are multiplied"},
          {rule, of(product_of_other_rows), "rows stay as long"},
          {rule, of(product_of_empty_rows), "rows have elements"}};
}

// --- their biases

using Rows = std::function<Tensor(Graph&, Random&)>;
// One bias for each element of a row, or one for each row.
Make biased(const Rows& rows, bool first, bool per_row = false) {
  return of([=](Graph& g, Random& r) {
    const Tensor y = rows(g, r);
    const Shape bias = per_row ? Shape{y.dim(-2), 1} : Shape{y.shape().back()};
    return sum_of(y, repeated(g.input("k", bias), y.shape()), first);
  });
}

Samples biases() {
  const Rows reshaped =
                 [](Graph& g, Random& r) {
                   const std::int64_t rows = any_size(r), inner = any_size(r);
                   return reshape(g.input("x", {2 * rows, inner}), {rows, 2, inner});
                 },
             other_rows = [](Graph& g, Random&) { return reshape(g.input("x", {4, 6}), {8, 3}); },
             square = [](Graph& g, Random&) { return reshape(g.input("x", {12, 3}), {4, 3, 3}); };
  const auto permuted = [](const ir::Ints& order) -> Rows {
    return [=](Graph& g, Random&) { return permute(g.input("x", {2, 3, 3}), order); };
  };
  Samples all;
  for (const bool first : {false, true}) {
    const std::string begin = first ? "bias-first-of-" : "bias-of-";
    all.push_back({begin + "reshaped-rows", biased(reshaped, first)});
    all.push_back({begin + "reshaped-rows", biased(other_rows, first), "rows stay as long"});
    all.push_back({begin + "reshaped-rows", biased(square, first, true), "a row is added"});
    all.push_back({begin + "permuted-rows", biased(permuted({1, 0, 2}), first)});
    all.push_back(
        {begin + "permuted-rows", biased(permuted({0, 2, 1}), first), "the last axis stays"});
    all.push_back(
        {begin + "permuted-rows", biased(permuted({1, 0, 2}), first, true), "a row is added"});
  }
  return all;
}

// --- factors

Make scaled(double number, DType dtype = f32, bool batched = true) {
  return of([=](Graph& g, Random& r) {
    const std::int64_t inner = some_size(r);
    const Tensor x = g.input("x", {2, any_size(r), inner}, dtype);
    const Tensor y =
        matmul(x, batched ? g.input("k", {2, inner, 5}, dtype) : g.input("k", {inner, 5}, dtype));
    return y * (std::isnan(number) ? beside(g, y, "c") : filled(g, number, y));
  });
}

Samples scaled_products() {
  const char *rule = "scaled-product", *range = "the left factor stays in range";
  return {{rule, scaled(0.25)},
          {rule, scaled(-3), {}, kRounding},
          {rule, scaled(0.25, f16)},
          {rule, scaled(NAN), "c is a number"},
          {rule, scaled(INFINITY), range},
          {rule, scaled(30000, f16), range},
          {rule, scaled(0.25, f32, false), kWorth}};
}

}  // namespace pantala::rewrite::samples::product_parts

namespace pantala::rewrite::samples {

Samples product_samples() {
  Samples all;
  for (const auto part :
       {product_parts::permuted_operands, product_parts::permuted_rows,
        product_parts::reshaped_rows, product_parts::biases, product_parts::scaled_products})
    for (Sample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
