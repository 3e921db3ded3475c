// Every sample of every op through the compiler: forward and backward, fused and op by op, on the
// kernel-IR interpreter and on the CPU, and by kernels of a GPU, against the interpreter in double.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/table.h"
#include "pantala/autodiff.h"
#include "support/compiled.h"
#include "support/gradcheck.h"

namespace pantala {
namespace {

using tests::CompiledRun;

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const ir::OpDef* op : ops::table().all())
    if (op->samples != nullptr && !op->samples().empty()) names.push_back(op->name);
  return names;
}

class CompiledOps : public ::testing::TestWithParam<std::string> {};

// The results of the op and, where there is a loss, the gradients of its parameters.
Graph subject_graph(const ir::OpDef& op, const tests::Subject& subject) {
  if (!subject.loss.valid() || !op.differentiable())
    return tests::with_outputs(subject.graph, subject.results);
  const Gradients g = differentiate(subject.graph, subject.loss, subject.parameters);
  std::vector<Tensor> wanted;
  for (const Tensor& t : subject.results) wanted.push_back(g.at(t));
  for (const Tensor& t : g.gradients) wanted.push_back(t);
  return tests::with_outputs(g.graph, wanted);
}

// Rounding the inputs to float moves a result by as much as they are large.
double largest_input(const ref::Bindings& bindings) {
  double largest = 1;
  for (const auto& [name, value] : bindings)
    for (std::int64_t k = 0; k < value.numel(); ++k)
      largest = std::max(largest, std::fabs(value.at(k)));
  return largest;
}

TEST_P(CompiledOps, agree_with_the_interpreter) {
  const ir::OpDef& op = ops::table().get(GetParam());
  int number = 0;
  for (const ir::Sample& sample : op.samples()) {
    SCOPED_TRACE("sample " + std::to_string(number++));
    const tests::Subject subject = tests::make_subject(op, sample);
    const Graph graph = subject_graph(op, subject);
    std::vector<Tensor> outputs;
    for (const auto& [name, value] : graph.outputs()) outputs.push_back(value);
    ref::Bindings bindings;
    for (const auto& [name, value] : subject.bindings)
      if (graph.find(name)) bindings.emplace(name, value);
    const std::vector<Literal> expected = ref::evaluate(graph, outputs, bindings);
    const auto checked = tests::run_compiled(graph, bindings, {"kir", true, 1});
    EXPECT_EQ(tests::differing(expected, checked, 2e-5 * largest_input(bindings)), "");
    const auto alone = tests::run_compiled(graph, bindings, {"kir", false, 1});
    EXPECT_EQ(tests::differing_bits(checked, alone), "") << "fused and unfused";
    const auto fast = tests::run_compiled(graph, bindings, {"cpu", true, 1});
    EXPECT_EQ(tests::differing_bits(checked, fast), "") << "kernel IR and CPU";
    const auto threads = tests::run_compiled(graph, bindings, {.device = "kir", .target = "gpu"});
    EXPECT_EQ(tests::differing(expected, threads, 2e-5 * largest_input(bindings)), "")
        << "kernels of a GPU";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompiledOps, ::testing::ValuesIn(op_names()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace pantala
