// Winograd's convolutions in graphs: the numbers of the interpreter, the same bits for any number
// of threads and as interpreted kernels, with work on the result; and the budget of their error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/conv.h"
#include "ops/face.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/compiled.h"
#include "support/fill.h"
#include "support/random_graph.h"

namespace pantala::tests::winograd_test {
namespace {

struct Sizes {
  std::int64_t batch, in, out, height, width, padding = 1;
  Shape x() const { return {batch, in, height, width}; }
  Shape weight() const { return {out, in, 3, 3}; }
  Shape y() const { return {batch, out, height + 2 * padding - 2, width + 2 * padding - 2}; }
};

op::ConvAttrs window_of(const Sizes& n, const std::string& algorithm) {
  return {.stride = {1, 1},
          .padding = {n.padding, n.padding},
          .dilation = {1, 1},
          .algorithm = algorithm};
}
Tensor forward(const Sizes& n, const std::string& algorithm, const Tensor& x,
               const Tensor& weight) {
  return ops::apply(ops::def<op::Convolution>(), {x, weight},
                    ir::to_values(window_of(n, algorithm)))[0];
}
Tensor input_gradient(const Sizes& n, const std::string& algorithm, const Tensor& dy,
                      const Tensor& weight) {
  return ops::apply(ops::def<op::ConvolutionInputGrad>(), {dy, weight},
                    ir::to_values(op::ConvolutionInputGrad::Attrs{
                        .input_sizes = {n.height, n.width}, .window = window_of(n, algorithm)}))[0];
}
Tensor weight_gradient(const Sizes& n, const std::string& algorithm, const Tensor& x,
                       const Tensor& dy) {
  return ops::apply(ops::def<op::ConvolutionWeightGrad>(), {x, dy},
                    ir::to_values(op::ConvolutionWeightGrad::Attrs{
                        .kernel_sizes = {3, 3}, .window = window_of(n, algorithm)}))[0];
}

// All three with work before and behind them.
Graph chain(const Sizes& n, const std::string& algorithm) {
  Graph g;
  const Tensor x = g.input("x", n.x()), dy = g.input("dy", n.y()),
               weight = g.input("weight", n.weight()), bias = g.input("bias", {1, n.out, 1, 1});
  const Tensor shifted = x + 0.5, scaled = dy * 2.0;
  g.output("finished", relu(forward(n, algorithm, shifted, weight) + bias) + scaled);
  g.output("input", input_gradient(n, algorithm, scaled, weight) * shifted);
  g.output("weight", weight_gradient(n, algorithm, shifted, scaled) - weight);
  return g;
}

class Winograd : public ::testing::TestWithParam<const char*> {};

TEST_P(Winograd, is_the_convolution_in_all_directions_for_any_number_of_threads) {
  for (const Sizes& n : {Sizes{1, 1, 1, 1, 1}, Sizes{2, 3, 5, 4, 7}, Sizes{1, 20, 33, 9, 6, 0},
                         Sizes{3, 16, 32, 5, 5, 2}, Sizes{2, 64, 64, 14, 14}}) {
    SCOPED_TRACE(fmt::format("{} x {} -> {} x {} x {}", n.batch, n.in, n.out, n.height, n.width));
    const Graph g = chain(n, GetParam());
    const ref::Bindings bindings{{"x", fill("x", n.x())},
                                 {"dy", fill("dy", n.y())},
                                 {"weight", fill("weight", n.weight())},
                                 {"bias", fill("bias", {1, n.out, 1, 1})}};
    const std::vector<Literal> expected = ref::evaluate(g, results_of(g), bindings);
    const std::vector<Literal> got = run_compiled(g, bindings, {.threads = 1});
    EXPECT_EQ(differing(expected, got, 1e-5), "");
    for (const int threads : {2, 3, 7})
      EXPECT_EQ(differing_bits(got, run_compiled(g, bindings, {.threads = threads})), "");
    if (n.in * n.out > 200) continue;
    EXPECT_EQ(differing_bits(got, run_compiled(g, bindings, {.device = "kir"})), "");
  }
}

TEST_P(Winograd, asked_for_where_windows_are_others_is_computed_directly) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 7, 7}), weight = g.input("weight", {4, 3, 3, 3});
  op::ConvAttrs window = window_of({}, GetParam());
  window.stride = {2, 1};
  g.output("y", ops::apply(ops::def<op::Convolution>(), {x, weight}, ir::to_values(window))[0]);
  for (const plan::Unit& unit : compile_graph(g).plan.units)
    EXPECT_FALSE(unit.entry.starts_with("winograd")) << unit.entry;
  const ref::Bindings bindings{{"x", fill("x", {2, 3, 7, 7})},
                               {"weight", fill("weight", {4, 3, 3, 3})}};
  EXPECT_EQ(differing(ref::evaluate(g, results_of(g), bindings), run_compiled(g, bindings), 1e-5),
            "");
}

TEST_P(Winograd, is_what_runs) {
  std::int64_t count = 0;
  for (const plan::Unit& unit : compile_graph(chain({2, 16, 16, 8, 8}, GetParam())).plan.units)
    if (unit.entry.starts_with("winograd")) ++count;
  EXPECT_GE(count, 3);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Winograd, ::testing::Values("winograd2", "winograd4"));

Literal drawn(Random& r, const Shape& shape, bool positive) {
  Literal value({f32, shape});
  for (double& x : value.f()) {
    // Nearly normal.
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<double>(r.between(-4096, 4096));
    x = sum / 4096;
    if (positive) x = std::max(x, 0.0);
  }
  return value;
}

// The L2 error of every result against double.
std::vector<double> errors(const std::vector<Literal>& exact, const std::vector<Literal>& got) {
  std::vector<double> list;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    double sum = 0;
    for (std::int64_t i = 0; i < exact[k].numel(); ++i)
      sum += std::pow(exact[k].at(i) - got[k].at(i), 2);
    list.push_back(std::sqrt(sum));
  }
  return list;
}

// Batches and channels are cut down where that does not change how long sums are, since the exact
// numbers take their time.
TEST(WinogradError, is_at_most_six_times_that_of_the_direct_algorithm) {
  const auto gradients = [](const Sizes& n, const std::string& algorithm) {
    Graph g;
    const Tensor x = g.input("x", n.x()), dy = g.input("dy", n.y()),
                 weight = g.input("weight", n.weight());
    g.output("forward", forward(n, algorithm, x, weight));
    g.output("input", input_gradient(n, algorithm, dy, weight));
    g.output("weight", weight_gradient(n, algorithm, x, dy));
    return g;
  };
  for (const Sizes& n : {Sizes{8, 64, 4, 56, 56}, Sizes{8, 4, 64, 56, 56}, Sizes{8, 128, 4, 28, 28},
                         Sizes{8, 256, 4, 14, 14}, Sizes{8, 4, 256, 14, 14}, Sizes{8, 512, 8, 7, 7},
                         Sizes{8, 8, 512, 7, 7}})
    for (const bool positive : {false, true}) {
      Random r(7);
      const ref::Bindings bindings{{"x", drawn(r, n.x(), positive)},
                                   {"dy", drawn(r, n.y(), false)},
                                   {"weight", drawn(r, n.weight(), false)}};
      const Graph direct = gradients(n, "direct");
      const std::vector<Literal> exact = ref::evaluate(direct, results_of(direct), bindings);
      const auto budget = errors(exact, run_compiled(direct, bindings));
      for (const char* algorithm : {"winograd2", "winograd4"}) {
        const auto error = errors(exact, run_compiled(gradients(n, algorithm), bindings));
        for (std::size_t k = 0; k < exact.size(); ++k)
          EXPECT_LE(error[k], 6 * budget[k])
              << algorithm << " result " << k << " of " << n.in << " -> " << n.out << " at "
              << n.height << ": " << error[k] / budget[k];
      }
    }
}

}  // namespace
}  // namespace pantala::tests::winograd_test
