// Transformers that PyTorch exported, with both of its exporters, are computed as the same models
// written with the library: attention stores nothing of queries times keys, and the launches are as
// many to within a tenth. Masks that are inputs of a file are no part of that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "counterparts.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "plan/compiled_step.h"
#include "recorded_models.h"

namespace pantala::tests::canonical_models_test {
namespace {

struct Case {
  Counterpart counterpart;
  std::string file;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Counterpart& counterpart : counterparts())
    for (const char* exporter : {"", "_dynamo"})
      all.push_back({counterpart, counterpart.name + exporter});
  return all;
}

Graph imported(const std::string& name, bool training) {
  const RecordedModel recorded = recorded_model(name);
  return onnx::import_model(recorded.file, recorded.name, {.training = training}).graph;
}

plan::CompiledStep planned(const compiler::Compilation& given) {
  Report report;
  compiler::Options options = compiler::host_options(given.options);
  options.code = false;
  return compiler::compile_step(compiler::make_step_graphs(given, report).at(0), options);
}
plan::CompiledStep inference(const Graph& graph, Rewrite rewrite = Rewrite::egraph) {
  return planned(compiler::Compilation::plain(graph, {.rewrite = rewrite}));
}
// A step that learns to make the output small.
plan::CompiledStep training(Graph graph, const std::string& output,
                            Rewrite rewrite = Rewrite::egraph) {
  const Tensor loss = mean(square(graph.output(output)));
  const CompileOptions options{.rewrite = rewrite, .optimizer = optim::sgd(0.1)};
  return planned(compiler::Compilation::training(graph, loss, options));
}

// Temporaries with an element for each query and key, of all heads and items of the batch or of
// one.
std::vector<std::string> scores_of(const plan::CompiledStep& step, const Counterpart& model) {
  const std::int64_t plane = model.sequence * model.sequence;
  std::vector<std::string> found;
  for (const plan::Buffer& buffer : step.plan.buffers)
    if (buffer.storage == plan::Storage::arena)
      for (const std::int64_t planes :
           {std::int64_t{1}, model.batch, model.heads, model.batch * model.heads})
        if (buffer.elements == planes * plane) found.push_back(buffer.name);
  return found;
}

// What a file compiles to as it is written and as it is, beside the model written with the library.
void expect_alike(const Counterpart& model, const plan::CompiledStep& written,
                  const plan::CompiledStep& found, const plan::CompiledStep& expected) {
  EXPECT_FALSE(scores_of(written, model).empty()) << "there was nothing to recognise";
  EXPECT_EQ(scores_of(found, model), std::vector<std::string>());
  EXPECT_EQ(scores_of(expected, model), std::vector<std::string>());
  const auto launches = [](const plan::CompiledStep& step) { return step.report.kernels_after; };
  // The table of docs/rewriting.md: --gtest_output=json.
  ::testing::Test::RecordProperty("written", launches(written));
  ::testing::Test::RecordProperty("canonical", launches(found));
  ::testing::Test::RecordProperty("counterpart", launches(expected));
  EXPECT_LE(10 * launches(found), 11 * launches(expected))
      << launches(written) << " launches as it is written";
  EXPECT_NEAR(found.report.flops, expected.report.flops, 0.05 * expected.report.flops)
      << "the counterpart is another model";
}

class CanonicalModels : public ::testing::TestWithParam<Case> {};

TEST_P(CanonicalModels, infer_like_their_counterparts) {
  const auto& [model, file] = GetParam();
  const Graph graph = imported(file, false);
  expect_alike(model, inference(graph, Rewrite::none), inference(graph), inference(model.make()));
}

TEST_P(CanonicalModels, train_like_their_counterparts) {
  const auto& [model, file] = GetParam();
  const Graph graph = imported(file, true);
  expect_alike(model, training(graph, model.output, Rewrite::none), training(graph, model.output),
               training(model.make(), model.output));
}

// Choices are made for the processor of the cost table: the threads of the machine change nothing.
TEST_P(CanonicalModels, are_the_same_graph_for_any_number_of_threads) {
  const Counterpart& model = GetParam().counterpart;
  const Graph graph = imported(GetParam().file, true);
  const Tensor loss = mean(square(graph.output(model.output)));
  std::string first;
  for (const int threads : {1, 2, 3, 7}) {
    const CompileOptions options{.threads = threads, .optimizer = optim::sgd(0.1)};
    Report report;
    const auto steps =
        compiler::make_step_graphs(compiler::Compilation::training(graph, loss, options), report);
    const std::string text =
        to_text(compiler::choose_graph(steps.at(0), compiler::host_options(options), report));
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(onnx, CanonicalModels, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.file; });

}  // namespace
}  // namespace pantala::tests::canonical_models_test
