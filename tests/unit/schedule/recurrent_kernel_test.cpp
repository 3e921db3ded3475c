// Recurrent layers through the whole compiler: a program whose size does not depend on the number
// of steps, the bits of the interpreter of kernels on any number of threads, batches and hidden
// sizes that fill neither rows nor vectors, half precision, and the largest elements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/autodiff.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "support/compiled.h"
#include "support/fill.h"
#include "support/numbers.h"

namespace pantala::recurrent_kernel_test {
namespace {

using tests::CompiledRun;

// The loss of a network of all three kinds, and the gradients of all parameters.
Graph recurrent_gradients(std::int64_t steps, std::int64_t batch, std::int64_t hidden,
                          DType dtype = f32) {
  Graph g;
  Tensor x = g.input("x", {steps, batch, 3}, dtype);
  const nn::LstmOutput a = nn::lstm("a", x, hidden);
  const nn::RecurrentOutput b = nn::gru("b", a.output, hidden), c = nn::rnn("c", b.output, hidden);
  const Tensor loss = sum(square(c.output)) + sum(a.c_n) + sum(b.h_n);
  std::vector<Tensor> wrt{x};
  for (const Leaf& leaf : g.leaves(LeafKind::parameter)) wrt.push_back(leaf.value);
  const Gradients d = differentiate(g, loss, wrt);
  std::vector<Tensor> values = d.gradients;
  values.push_back(d.at(loss));
  return tests::with_outputs(d.graph, values);
}

ref::Bindings filled_leaves(const Graph& g) {
  ref::Bindings values;
  for (const Leaf& leaf : g.leaves())
    values[leaf.name] = Literal::floats(
        leaf.value.shape(), tests::fill(leaf.name, leaf.value.shape(), 0.5).to_doubles(),
        leaf.value.dtype());
  return values;
}

// Of sums over all steps a long one may be split: that is a kernel or two more, at any length.
TEST(RecurrentKernels, the_program_does_not_grow_with_the_steps) {
  const auto launches = [](std::int64_t steps) {
    return tests::compile_graph(recurrent_gradients(steps, 2, 8)).plan.launches.size();
  };
  EXPECT_LE(launches(1000), launches(10) + 5);
}

TEST(RecurrentKernels, kernels_and_machine_code_agree_to_the_bit_on_any_number_of_threads) {
  for (const auto& [batch, hidden] : {std::pair{1, 16}, std::pair{11, 19}}) {
    const Graph g = recurrent_gradients(4, batch, hidden);
    const ref::Bindings values = filled_leaves(g);
    const std::vector<Literal> kernels =
        tests::run_compiled(g, values, CompiledRun{.device = "kir", .threads = 1});
    for (const int threads : {1, 3})
      EXPECT_EQ(tests::differing_bits(
                    kernels, tests::run_compiled(g, values, CompiledRun{.threads = threads})),
                "")
          << batch << " rows, " << hidden << " hidden units, " << threads << " threads";
    std::vector<Tensor> wanted = tests::results_of(g);
    EXPECT_EQ(tests::differing(ref::evaluate(g, wanted, values), kernels, 1e-5), "");
  }
}

TEST(RecurrentKernels, halves_are_computed_in_f32_and_doubles_as_doubles) {
  for (const auto& [dtype, bound] : {std::pair{f16, 2e-2}, std::pair{f64, 1e-12}}) {
    const Graph g = recurrent_gradients(3, 2, 6, dtype);
    const ref::Bindings values = filled_leaves(g);
    const std::vector<Literal> got = tests::run_compiled(g, values, {});
    EXPECT_EQ(tests::differing(ref::evaluate(g, tests::results_of(g), values), got, bound), "")
        << dtype_name(dtype);
  }
}

TEST(RecurrentKernels, what_only_the_gradient_needs_is_not_kept_for_inference) {
  Graph g;
  g.output("y", nn::lstm("a", g.input("x", {64, 8, 16}), 32).output);
  const plan::CompiledStep step = tests::compile_graph(g);
  const std::int64_t gates = 64 * 8 * 4 * 32 * 4;  // bytes of those of all steps
  EXPECT_LT(step.plan.arena_bytes, gates * 3 / 2);
}

TEST(TopkKernel, takes_the_best_of_ties_and_of_nan_as_the_interpreter_does) {
  for (const bool largest : {true, false})
    for (const auto& [shape, axis] : {std::pair{Shape{3, 37}, 1}, std::pair{Shape{37, 3}, 0},
                                      std::pair{Shape{2, 37, 20}, 1}, std::pair{Shape{50}, 0}}) {
      Graph g;
      const Topk best = topk(g.input("x", shape), 9, {.axis = axis, .largest = largest});
      g.output("values", best.values);
      g.output("indices", best.indices);
      Literal x(Type{f32, shape});
      for (std::int64_t k = 0; k < x.numel(); ++k)
        x.f()[k] = k % 11 == 3 ? NAN : k % 13 == 5 ? -INFINITY : static_cast<double>(k * 7 % 10);
      const ref::Bindings values{{"x", x}};
      const std::vector<Literal> expected = ref::evaluate(g, tests::results_of(g), values);
      for (const char* device : {"kir", "cpu"})
        EXPECT_EQ(tests::differing_bits(
                      expected, tests::run_compiled(g, values, CompiledRun{.device = device})),
                  "")
            << shape.str() << " on " << device;
    }
}

}  // namespace
}  // namespace pantala::recurrent_kernel_test
