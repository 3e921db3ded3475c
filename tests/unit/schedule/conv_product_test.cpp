// Convolutions of single elements as products: the same numbers as the interpreter's, as machine
// code and as interpreted kernels, with work on the result, in any sizes and layouts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/conv.h"
#include "ops/face.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/compiled.h"
#include "support/fill.h"

namespace pantala::tests::conv_product_test {
namespace {

struct Sizes {
  std::int64_t batch, in, out, height, width;
};

const op::ConvAttrs kWindow{
    .stride = {1, 1}, .padding = {0, 0}, .dilation = {1, 1}, .algorithm = "product"};

Tensor forward(const Tensor& x, const Tensor& weight) {
  return ops::apply(ops::def<op::Convolution>(), {x, weight}, ir::to_values(kWindow))[0];
}
Tensor input_gradient(const Tensor& dy, const Tensor& weight) {
  return ops::apply(ops::def<op::ConvolutionInputGrad>(), {dy, weight},
                    ir::to_values(op::ConvolutionInputGrad::Attrs{
                        .input_sizes = {dy.shape()[2], dy.shape()[3]}, .window = kWindow}))[0];
}
Tensor weight_gradient(const Tensor& x, const Tensor& dy) {
  return ops::apply(ops::def<op::ConvolutionWeightGrad>(), {x, dy},
                    ir::to_values(op::ConvolutionWeightGrad::Attrs{.kernel_sizes = {1, 1},
                                                                   .window = kWindow}))[0];
}

// All three with work before and behind them: what is computed between stands with channels last;
// outputs do not.
Graph chain(const Sizes& n) {
  Graph g;
  const Tensor x = g.input("x", {n.batch, n.in, n.height, n.width}),
               dy = g.input("dy", {n.batch, n.out, n.height, n.width}),
               weight = g.input("weight", {n.out, n.in, 1, 1}),
               bias = g.input("bias", {1, n.out, 1, 1});
  const Tensor shifted = x + 0.5, scaled = dy * 2.0;
  const Tensor y = forward(shifted, weight);
  g.output("finished", sum(relu(y + bias) + scaled, {2, 3}));
  const Tensor dx = input_gradient(scaled, weight);
  g.output("input", sum(dx * shifted, {2, 3}));
  g.output("plain", forward(scaled, g.input("square", {n.out, n.out, 1, 1})));
  g.output("weight", weight_gradient(shifted, scaled) - weight);
  return g;
}

void expect_right(const Sizes& n) {
  SCOPED_TRACE(fmt::format("{} x {} -> {} x {} x {}", n.batch, n.in, n.out, n.height, n.width));
  const Graph g = chain(n);
  const ref::Bindings bindings{{"x", fill("x", {n.batch, n.in, n.height, n.width})},
                               {"dy", fill("dy", {n.batch, n.out, n.height, n.width})},
                               {"weight", fill("weight", {n.out, n.in, 1, 1})},
                               {"square", fill("square", {n.out, n.out, 1, 1})},
                               {"bias", fill("bias", {1, n.out, 1, 1})}};
  const std::vector<Literal> expected = ref::evaluate(g, results_of(g), bindings);
  const std::vector<Literal> got = run_compiled(g, bindings, {.threads = 1});
  EXPECT_EQ(differing(expected, got, 1e-5), "");
  for (const int threads : {2, 3, 7})
    EXPECT_EQ(differing_bits(got, run_compiled(g, bindings, {.threads = threads})), "");
  if (n.in * n.out * n.batch < 5000) {
    EXPECT_EQ(differing_bits(got, run_compiled(g, bindings, {.device = "kir"})), "");
  }
}

TEST(ConvProduct, is_the_convolution_in_all_directions) {
  for (const Sizes& n : {Sizes{1, 1, 1, 1, 1}, Sizes{2, 3, 5, 4, 7}, Sizes{1, 64, 17, 1, 9},
                         Sizes{3, 16, 32, 5, 1}, Sizes{4, 33, 65, 7, 7}, Sizes{1, 7, 1, 8, 8},
                         Sizes{2, 1, 8, 3, 3}, Sizes{2, 256, 64, 14, 14}})
    expect_right(n);
}

TEST(ConvProduct, of_nothing_is_nothing) { expect_right({0, 4, 4, 3, 3}); }

// Kernels of the products of a plan.
std::int64_t products(const Graph& g) {
  std::int64_t count = 0;
  const plan::CompiledStep compiled = compile_graph(g);
  for (const plan::Unit& unit : compiled.plan.units)
    if (unit.entry.starts_with("conv_product")) ++count;
  return count;
}

TEST(ConvProduct, is_what_runs) { EXPECT_EQ(products(chain({2, 16, 32, 6, 6})), 3); }

TEST(ConvProduct, asked_for_where_windows_are_larger_is_computed_directly) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 6, 6}), weight = g.input("weight", {4, 3, 3, 3});
  op::ConvAttrs window = kWindow;
  window.padding = {1, 1};
  g.output("y", ops::apply(ops::def<op::Convolution>(), {x, weight}, ir::to_values(window))[0]);
  EXPECT_EQ(products(g), 0);
  const ref::Bindings bindings{{"x", fill("x", {2, 3, 6, 6})},
                               {"weight", fill("weight", {4, 3, 3, 3})}};
  EXPECT_EQ(differing(ref::evaluate(g, results_of(g), bindings), run_compiled(g, bindings), 1e-5),
            "");
}

}  // namespace
}  // namespace pantala::tests::conv_product_test
