// Kernels of a GPU at the sizes where they change: ends of tiles, sums in slices, rows for threads,
// workgroups and several kernels. They are interpreted, so that bounds and races between threads
// are checked, against the interpreter of graphs.
#include <gtest/gtest.h>

#include <array>

#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "schedule/gpu/archetypes.h"
#include "schedule/gpu/product.h"
#include "support/compiled.h"
#include "support/gradcheck.h"

namespace pantala::tests::gpu_kernels_test {
namespace {

const CompiledRun kGpu{.device = "kir", .target = "gpu"};

void expect_right(const Graph& graph) {
  ref::Bindings bindings;
  for (const Leaf& leaf : graph.leaves())
    bindings.emplace(leaf.name,
                     draw({.shape = leaf.value.shape(), .dtype = leaf.value.dtype()}, leaf.name));
  std::vector<Tensor> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs.push_back(value);
  EXPECT_EQ(differing(ref::evaluate(graph, outputs, bindings), run_compiled(graph, bindings, kGpu),
                      1e-11),
            "");
}

// With the gradients of all inputs.
void expect_right_both_ways(Graph& graph, const Tensor& y, const std::vector<Tensor>& wrt) {
  const Gradients d = differentiate(graph, sum(y * y), wrt);
  std::vector<Tensor> wanted{d.at(y)};
  wanted.insert(wanted.end(), d.gradients.begin(), d.gradients.end());
  expect_right(with_outputs(d.graph, wanted));
}

TEST(GpuProduct, ends_of_tiles_of_all_shapes) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {70, 65, 33}, {1, 130, 20}, {33, 1, 7}, {16, 64, 5}}) {
    Graph g;
    const Tensor a = g.input("a", {m, k}, f64), b = g.input("b", {k, n}, f64);
    expect_right_both_ways(g, matmul(a, b), {a, b});
  }
}

TEST(GpuProduct, long_sums_in_slices) {
  const schedule::Target target = schedule::gpu::least_target();
  EXPECT_GT(schedule::gpu::choose_tiling({1, 8, 9, 700}, target).slices, 1);
  Graph g;
  const Tensor a = g.input("a", {8, 700}, f64), b = g.input("b", {700, 9}, f64);
  g.output("y", relu(matmul(a, b)) + 1.0);
  expect_right(g);
}

TEST(GpuProduct, batches_and_work_around_them) {
  Graph g;
  const Tensor a = g.input("a", {2, 3, 9, 17}, f64), b = g.input("b", {2, 3, 17, 5}, f64);
  const Tensor bias = g.input("bias", {5}, f64);
  expect_right_both_ways(
      g, tanh(matmul(a * 2.0, permute(permute(b, {0, 1, 3, 2}), {0, 1, 3, 2})) + bias),
      {a, b, bias});
}

TEST(GpuConvolution, strides_padding_dilation_and_groups) {
  struct Problem {
    Shape x, weight;
    ConvOptions options;
  };
  const Problem problems[] = {
      {{2, 3, 9, 8}, {5, 3, 3, 3}, {.padding = {1}}},
      {{2, 4, 9, 8}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}},
      {{1, 6, 11, 7}, {6, 1, 3, 3}, {.padding = {2}, .dilation = {2}, .groups = 6}},
      {{3, 17, 5, 5}, {20, 17, 1, 1}, {}},
  };
  for (const Problem& p : problems) {
    Graph g;
    const Tensor x = g.input("x", p.x, f64), w = g.input("w", p.weight, f64);
    expect_right_both_ways(g, relu(conv2d(x, w, {}, p.options)), {x, w});
  }
}

TEST(GpuReduction, rows_for_threads_and_for_workgroups) {
  for (const auto& [rows, count] :
       std::vector<std::array<std::int64_t, 2>>{{5, 3}, {70, 20}, {3, 200}, {2, 5000}, {1, 1}}) {
    Graph g;
    const Tensor x = g.input("x", {rows, count}, f64);
    g.output("sum", sum(x, {1}));
    g.output("columns", sum(x, {0}));
    g.output("all", sum(x));
    g.output("largest", amax(x, {1}));
    g.output("softmax", softmax(x, 1));
    expect_right(g);
  }
}

TEST(GpuReduction, norms_in_one_kernel) {
  Graph g;
  const Tensor x = g.input("x", {6, 100}, f64), w = g.input("w", {100}, f64),
               b = g.input("b", {100}, f64);
  g.output("y", layer_norm(x, w, b));
  expect_right(g);
  EXPECT_EQ(compile_graph(g, kGpu).plan.launches.size(), 1u);
}

}  // namespace
}  // namespace pantala::tests::gpu_kernels_test
