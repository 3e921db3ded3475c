// Small graphs at the corners of the scheduler: each is compiled fused and op by op, interpreted
// with checks of bounds and run as machine code.
#include <gtest/gtest.h>

#include "pantala/ops.h"
#include "support/compiled.h"
#include "support/gradcheck.h"

namespace pantala::tests::compiled_corners_test {
namespace {

void expect_right(const Graph& graph) {
  ref::Bindings bindings;
  for (const Leaf& leaf : graph.leaves()) {
    Literal value = draw({.shape = leaf.value.shape(), .dtype = leaf.value.dtype()}, leaf.name);
    for (double& v : value.f()) v = static_cast<float>(v);
    bindings.emplace(leaf.name, std::move(value));
  }
  std::vector<Tensor> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs.push_back(value);
  const std::vector<Literal> expected = ref::evaluate(graph, outputs, bindings);
  const std::vector<Literal> checked = run_compiled(graph, bindings, {.device = "kir"});
  EXPECT_EQ(differing(expected, checked, 1e-6), "");
  for (const CompiledRun& how :
       {CompiledRun{.device = "kir", .fuse = false}, CompiledRun{}, CompiledRun{.fuse = false}})
    EXPECT_EQ(differing_bits(checked, run_compiled(graph, bindings, how)), "")
        << how.device << (how.fuse ? "" : " unfused");
}

TEST(CompiledCorners, a_pool_of_one_number_in_all_lanes) {
  Graph g;
  const Tensor x = broadcast_to(g.input("x", {1, 1, 1, 1}), {1, 1, 3, 20});
  const auto [y, index] = max_pool2d_with_indices(x, {2}, {.stride = {1}});
  g.output("y", y);
  g.output("index", index);
  expect_right(g);
}

TEST(CompiledCorners, results_beside_a_product_with_one_column) {
  Graph g;
  const Tensor y = matmul(g.input("a", {1, 7}), g.input("b", {7, 1}));
  g.output("sigmoid", sigmoid(y));
  g.output("sin", sin(y));
  expect_right(g);
}

TEST(CompiledCorners, results_beside_a_convolution_with_one_channel) {
  Graph g;
  const Tensor y = conv2d(g.input("x", {2, 3, 5, 4}), g.input("w", {1, 3, 2, 2}));
  g.output("y", y);
  g.output("sigmoid", sigmoid(y));
  expect_right(g);
}

// Masks and conversions beside the sums that they are made of.
TEST(CompiledCorners, results_of_other_types_beside_a_product) {
  Graph g;
  const Tensor y = matmul(g.input("a", {3, 7}), g.input("b", {7, 20}));
  g.output("mask", gt(y, 0.0));
  g.output("wide", cast(y, f64));
  g.output("count", cast(gt(y, 0.0), i32));
  expect_right(g);
}

TEST(CompiledCorners, a_mask_alone_of_a_convolution) {
  Graph g;
  g.output("mask", gt(conv2d(g.input("x", {2, 3, 5, 4}), g.input("w", {8, 3, 2, 2})), 0.0));
  expect_right(g);
}

// A row's number is made of an element that is not the row's.
TEST(CompiledCorners, rows_that_read_elements_of_other_rows) {
  Graph g;
  const Tensor x = g.input("x", {3, 10});
  const Tensor centred = sin(x - sum(x, {1}, true));
  const Tensor first = slice_axis(reshape(centred, {30}), 0, 0, 3);
  g.output("centred", centred);
  g.output("y", exp(sum(centred, {1})) * first);
  expect_right(g);
}

TEST(CompiledCorners, a_concatenation_of_nothing) {
  Graph g;
  const Tensor x = g.input("x", {2, 0});
  g.output("nothing", concat({x, x}, 1));
  g.output("sums", sum(concat({x, x * 2.0}, 1), {1}));
  expect_right(g);
}

// Nothing may be read where no lane wants anything.
TEST(CompiledCorners, padding_of_nothing) {
  Graph g;
  g.output("y", pad(reshape(g.input("x", {7, 0}), {0}), {0}, {30}));
  expect_right(g);
}

TEST(CompiledCorners, rows_of_padding_around_rows_of_one_number) {
  Graph g;
  const Tensor rows = reshape(broadcast_to(g.input("x", {4, 1}), {4, 8}), {32});
  const Tensor framed = reshape(pad(rows, {16}, {16}), {8, 8});
  g.output("y", framed + transpose(g.input("z", {8, 8})));
  expect_right(g);
}

}  // namespace
}  // namespace pantala::tests::compiled_corners_test
