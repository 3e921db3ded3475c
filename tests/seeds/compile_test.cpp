// Section 1 of the checklist: compilation, as far as no session is needed.
#include "pantala/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "base/trace.h"
#include "io/file.h"
#include "pantala/ops.h"
#include "plan/compiled_plan.h"
#include "support/temporary.h"

namespace pantala::tests::compile_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// x [4,3], w [3,2], loss mean(x w).
struct Product {
  Graph graph;
  Tensor loss;
  explicit Product(std::int64_t columns = 2, const char* weight = "w") {
    const Tensor x = graph.input("x", {4, 3}), w = graph.parameter(weight, {3, columns});
    loss = mean(matmul(x, w));
  }
};

// x [4,784], w1 [784,128], b1, ReLU, w2 [128,10], probabilities.
struct TwoLayers {
  Graph graph;
  Tensor loss;
  TwoLayers() {
    const Tensor x = graph.input("x", {4, 784}), labels = graph.input("labels", {4, 10});
    const Tensor w1 = graph.parameter("w1", {784, 128}), b1 = graph.parameter("b1", {128}),
                 w2 = graph.parameter("w2", {128, 10});
    loss = cross_entropy(matmul(relu(matmul(x, w1) + b1), w2), labels);
  }
};

class CacheFile {
 public:
  const std::string& path() const { return path_; }

 private:
  const tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("plan");
};

struct Warnings {
  std::vector<std::string> lines;
  logging::Capture capture{logging::Level::warning, [this](logging::Level, std::string_view text) {
                             lines.emplace_back(text);
                           }};
};

std::vector<std::string> stages(const Report& report) {
  std::vector<std::string> names;
  for (const Report::Stage& stage : report.stages) names.push_back(stage.name);
  return names;
}

TEST(Compilation, T29_a_plan_and_a_report_without_a_device) {
  const Product p;
  const CompileResult result =
      compile_training_graph(p.graph, p.loss, {.optimizer = optim::sgd(0.1)});
  EXPECT_GT(result.plan.launches(), 0);
  EXPECT_FALSE(result.report.stages.empty());
  EXPECT_THAT(stages(result.report), ::testing::Not(::testing::Contains("device")));
}

TEST(Compilation, T30_the_tables_of_a_product) {
  const Product p;
  const auto [plan, report] = compile_training_graph(p.graph, p.loss);
  EXPECT_GE(plan.launches(), 1);
  EXPECT_TRUE(plan.has_loss());
  EXPECT_THAT(plan.inputs(), ElementsAre("x"));
  EXPECT_THAT(plan.parameters(), ElementsAre("w"));
  ASSERT_EQ(plan.parameter_gradients().size(), 1u);
  EXPECT_EQ(plan.parameter_gradients()[0].parameter, "w");
  EXPECT_GT(report.nodes_before, 0);
}

TEST(Compilation, T32_the_tables_of_two_layers) {
  const TwoLayers m;
  const CompiledPlan plan = compile_training_graph(m.graph, m.loss).plan;
  EXPECT_THAT(plan.inputs(), ElementsAre("x", "labels"));
  EXPECT_THAT(plan.parameters(), ElementsAre("w1", "b1", "w2"));
  EXPECT_EQ(plan.parameter_gradients().size(), 3u);
  EXPECT_TRUE(plan.has_loss());
}

TEST(Compilation, T36_stages_once_each_in_order_and_as_spans) {
  const TwoLayers m;
  trace::Recorder recorder;
  CompileOptions options{.optimizer = optim::adam()};
  options.trace = &recorder;
  const Report report = compile_training_graph(m.graph, m.loss, options).report;
  EXPECT_THAT(stages(report), ElementsAre("canonicalise", "differentiate", "optimizer", "saturate",
                                          "schedule", "codegen", "plan"));
  for (const Report::Stage& stage : report.stages) EXPECT_GE(stage.milliseconds, 0);
  EXPECT_EQ(recorder.size(), report.stages.size());
}

TEST(Compilation, T42_a_saved_plan_is_the_same_when_loaded) {
  const CacheFile file;
  const TwoLayers m;
  const CompiledPlan plan = compile_training_graph(m.graph, m.loss).plan;
  plan.save(file.path());
  const CompiledPlan loaded = load_plan(file.path());
  EXPECT_EQ(loaded.launches(), plan.launches());
  EXPECT_EQ(loaded.buffers(), plan.buffers());
  EXPECT_EQ(loaded.parameter_gradients().size(), plan.parameter_gradients().size());
}

TEST(Compilation, T43_a_cache_file_of_another_graph_is_replaced) {
  const CacheFile file;
  const auto is_loaded = [&](const Product& p, const CompileOptions& options) {
    return stages(load_or_compile_training(file.path(), p.graph, p.loss, options).report) ==
           std::vector<std::string>{"load"};
  };
  const CompileOptions plain, adam{.optimizer = optim::adam()};
  const Product one, shape(5), name(2, "v");
  EXPECT_FALSE(is_loaded(one, plain));
  EXPECT_TRUE(is_loaded(one, plain));
  for (const Product* other : {&shape, &name}) {
    EXPECT_FALSE(is_loaded(*other, plain));
    EXPECT_TRUE(is_loaded(*other, plain));
  }
  EXPECT_FALSE(is_loaded(name, adam));
  EXPECT_TRUE(is_loaded(name, adam));
  // An attribute: the same shapes, another op's field.
  Graph leaky[2];
  for (const int k : {0, 1}) {
    const Tensor x = leaky[k].input("x", {4, 3}), w = leaky[k].parameter("w", {3, 2});
    const Tensor loss = mean(leaky_relu(matmul(x, w), k == 0 ? 0.1 : 0.2));
    EXPECT_EQ(stages(load_or_compile_training(file.path(), leaky[k], loss).report)[0],
              "canonicalise");
  }
}

TEST(Compilation, T44_a_damaged_cache_file_is_one_warning) {
  const CacheFile file;
  const Product p;
  load_or_compile_training(file.path(), p.graph, p.loss);
  std::string bytes = io::read_file(file.path());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 8);
  io::write_file(file.path(), bytes);
  const Warnings warnings;
  const CompileResult result = load_or_compile_training(file.path(), p.graph, p.loss);
  EXPECT_EQ(warnings.lines.size(), 1u);
  EXPECT_GE(result.plan.launches(), 1);
}

TEST(Compilation, T45_a_cache_path_that_cannot_be_written_is_one_warning) {
  const CacheFile file;
  io::write_file(file.path(), "a file, not a folder");
  const Product p;
  const Warnings warnings;
  const CompileResult result = load_or_compile_training(file.path() + "/plan", p.graph, p.loss);
  EXPECT_EQ(warnings.lines.size(), 1u);
  EXPECT_GE(result.plan.launches(), 1);
}

}  // namespace
}  // namespace pantala::tests::compile_test
