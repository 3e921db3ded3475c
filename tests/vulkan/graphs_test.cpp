// Random graphs, forward and backward, on a Vulkan device: within a multiple of the interpreter's
// own error in float, and the same bits when they are run again.
#include <fmt/format.h>

#include "pantala/autodiff.h"
#include "support/random_graph.h"
#include "vulkan/near.h"

namespace pantala::vulkan_tests {
namespace {

using tests::RandomGraph;

constexpr int kShards = 10;

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
    const RandomGraph r = tests::random_graph(seed, {.steps = 3, .dtype = f32, .exact = false});
    const Gradients d = differentiate(r.graph, r.loss, r.wrt);
    expect_near_the_truth(d.graph, r.bindings, d.gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphsOnVulkan, ::testing::Range(0, kShards));

}  // namespace
}  // namespace pantala::vulkan_tests
