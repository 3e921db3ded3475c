// Random graphs, forward and backward, on a Vulkan device: within a multiple of the interpreter's
// own error in float, and the same bits when they are run again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "pantala/autodiff.h"
#include "pantala/text.h"
#include "support/compiled.h"
#include "support/float_error.h"
#include "support/random_graph.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using namespace pantala::tests;

constexpr int kShards = 10;
constexpr double kMultiple = 16;  // twice what the CPU is allowed

// Plans of all graphs are run on one device, which stays (support/compiled.h).
class GraphsOnVulkan : public OnVulkan, public ::testing::WithParamInterface<int> {
 protected:
  GraphsOnVulkan() { keeps_devices_ = true; }
};

// 300 of them in all, of which `make test` runs 20.
int graphs_of_a_shard() { return wants_all() ? 30 : 2; }

TEST_P(GraphsOnVulkan, are_near_the_truth_and_the_same_again) {
  for (int k = 0; k < graphs_of_a_shard(); ++k) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 30 + k);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomGraph r = random_graph(seed, {.steps = 3, .dtype = f32, .exact = false});
    const Gradients d = differentiate(r.graph, r.loss, r.wrt);
    std::vector<Tensor> wanted;
    for (const auto& [name, value] : d.graph.outputs()) wanted.push_back(value);
    wanted.insert(wanted.end(), d.gradients.begin(), d.gradients.end());
    const Graph graph = with_outputs(d.graph, wanted);
    const std::vector<Literal> exact = ref::evaluate(graph, results_of(graph), r.bindings);
    const std::vector<double> errors = errors_in_float(graph, r.bindings, exact);
    const CompiledRun how{.device = test_device()};
    const plan::CompiledStep compiled = compile_graph(graph, how);
    const std::vector<Literal> got = run_compiled(graph, compiled, r.bindings, how);
    EXPECT_EQ(differing_bits(got, run_compiled(graph, compiled, r.bindings, how)), "");
    for (std::size_t result = 0; result < exact.size(); ++result)
      for (std::int64_t i = 0; i < exact[result].numel(); ++i) {
        const double x = exact[result].at(i), y = got[result].at(i);
        if (x == y || (std::isnan(x) && std::isnan(y)) || std::isinf(errors[result])) continue;
        ASSERT_LE(std::fabs(x - y), kMultiple * errors[result])
            << "result " << result << " element " << i << ": expected " << x << ", got " << y
            << '\n'
            << to_text(graph);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphsOnVulkan, ::testing::Range(0, kShards));

}  // namespace
}  // namespace pantala::vulkan_tests
