// The workloads of `pantala bench` as graphs: parameters, inputs and outputs, without compiling the
// large ones.
#include "tools/bench/workloads.h"

#include <gtest/gtest.h>

#include "pantala/error.h"

namespace pantala::tools {
namespace {

std::int64_t elements_of(const Graph& graph) {
  std::int64_t count = 0;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) count += leaf.value.numel();
  return count;
}

TEST(Workloads, have_the_sizes_of_their_models) {
  const std::map<std::string, std::int64_t> sizes = {
      {"mlp16", 13066},          {"mlp32", 101770},
      {"mlp128", 101770},        {"mlp_wide128", 1863690},
      {"lenet64", 421642},       {"resnet18_b8", 11689512},
      {"resnet50_b4", 25557032}, {"whisper_tiny", 8232960},
      {"tfm8", 8481280},         {"smollm2_b1_s128", 134515008}};
  ASSERT_EQ(workload_names().size(), sizes.size());
  for (const std::string& name : workload_names())
    EXPECT_EQ(elements_of(make_workload(name, BenchMode::train).graph), sizes.at(name)) << name;
}

TEST(Workloads, training_has_a_loss_and_inference_one_output_without_it) {
  for (const std::string& name : workload_names()) {
    const Workload training = make_workload(name, BenchMode::train);
    EXPECT_EQ(training.loss.shape().rank(), 0) << name;
    EXPECT_EQ(training.loss.graph(), training.graph.data()) << name;
    const Workload inference = make_workload(name, BenchMode::infer);
    ASSERT_EQ(inference.graph.outputs().size(), 1u) << name;
    EXPECT_NE(inference.graph.outputs()[0].first, "loss") << name;
    EXPECT_EQ(inference.inputs.size(), 1u) << name;
  }
}

TEST(Workloads, their_data_fit_their_inputs) {
  for (const std::string& name : workload_names())
    for (const BenchMode mode : {BenchMode::train, BenchMode::infer}) {
      const Workload w = make_workload(name, mode);
      for (const auto& [input, value] : w.inputs)
        EXPECT_EQ(w.graph.leaf(input).type(), value.type()) << name << " " << input;
    }
}

TEST(Workloads, an_unknown_name_gets_the_nearest) {
  EXPECT_THROW(require_workload("resnet18_b4"), TypeError);
  EXPECT_NO_THROW(require_workload("resnet18_b8"));
}

}  // namespace
}  // namespace pantala::tools
