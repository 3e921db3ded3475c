// The whole pipeline: what it makes, reports and refuses.
#include "pantala/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/trace.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "plan/compiled_plan.h"
#include "plan/dependencies.h"
#include "plan/report.h"
#include "support/errors.h"

namespace pantala {
namespace {

using plan::CompiledLeaf;
using plan::CompiledStep;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using tests::message_of;

// A layer with dropout's counter, a hyper-parameter of its own and a running mean.
struct Layer {
  Graph graph;
  Tensor hidden, loss;
  explicit Layer(std::int64_t batch = 8) {
    const Tensor x = graph.input("x", {batch, 6}), y = graph.input("y", {batch, 4});
    const Tensor w = graph.parameter("w", {4, 6}, init::kaiming_uniform()),
                 b = graph.parameter("b", {4});
    hidden = relu(linear(x, w, b));
    loss = mse_loss(hidden, y) * cast(graph.scalar("gain", 2), f32);
    const Tensor running = graph.state("running", {6});
    graph.update(running, running * 0.9 + mean(x, {0}) * 0.1);
    graph.rng_draw();
    graph.output("hidden", hidden);
  }
};

std::vector<std::string> stage_names(const Report& report) {
  std::vector<std::string> names;
  for (const Report::Stage& stage : report.stages) names.push_back(stage.name);
  return names;
}

const CompiledLeaf& leaf(const CompiledPlan& plan, std::string_view name) {
  for (const CompiledLeaf& each : plan.data()->leaves)
    if (each.name == name) return each;
  throw InternalError("no leaf " + std::string(name));
}

TEST(Compile, ends_where_it_is_asked_to_stop) {
  const Layer layer;
  bool cancelled = false;
  const CompileOptions options{.optimizer = optim::adam(0.1),
                               .cancelled = [&] { return cancelled; }};
  // One that could be stopped, and is not, makes the same.
  const auto objects = [&](const CompileOptions& with) {
    const CompileResult compiled = compile_training_graph(layer.graph, layer.loss, with);
    std::vector<std::vector<std::byte>> all;
    for (const plan::Unit& unit : compiled.plan.data()->steps.at(0).plan.units)
      all.push_back(unit.object);
    return all;
  };
  EXPECT_EQ(objects(options), objects({.optimizer = optim::adam(0.1)}));
  cancelled = true;
  EXPECT_THAT(
      message_of<CancelledError>([&] { compile_training_graph(layer.graph, layer.loss, options); }),
      HasSubstr("called off"));
  EXPECT_THROW(compile(layer.graph, {.cancelled = [] { return true; }}), CancelledError);
}

TEST(Compile, the_bytes_of_a_kernel_are_those_of_its_buffers) {
  Graph graph;
  graph.output("y", matmul(graph.input("a", {4, 8}), graph.parameter("b", {8, 2})));
  const Report report = compile(graph, {.device = "kir"}).report;
  EXPECT_EQ(report.bytes, (4 * 8 + 8 * 2 + 4 * 2) * 4);
}

TEST(Compile, a_training_step_has_everything_that_a_session_needs) {
  const Layer model;
  const auto [plan, report] = compile_training_graph(
      model.graph, model.loss, {.device = "kir", .threads = 2, .optimizer = optim::adam(0.01)});
  EXPECT_THAT(plan.inputs(), ElementsAre("x", "y"));
  EXPECT_THAT(plan.parameters(), ElementsAre("w", "b"));
  EXPECT_THAT(plan.states(), UnorderedElementsAre("running", "rng.draw", "optim.step", "optim.m.w",
                                                  "optim.v.w", "optim.m.b", "optim.v.b"));
  EXPECT_THAT(plan.outputs(), UnorderedElementsAre("hidden", "loss"));
  EXPECT_THAT(plan.parameter_gradients(), IsEmpty());
  EXPECT_TRUE(plan.has_loss());
  EXPECT_EQ(plan.peak_bytes(), report.peak_bytes);
  const CompiledPlan::Data& data = *plan.data();
  EXPECT_EQ(data.non_finite, NonFiniteGuard::loss);
  EXPECT_EQ(data.optimizer, optim::adam(0.01));
  ASSERT_EQ(data.steps.size(), 1u);
  const CompiledStep& step = data.step("step");
  EXPECT_EQ(step.plan.name, "step");
  plan::check_dependencies(step.plan);
  EXPECT_TRUE(leaf(plan, "w").init == init::kaiming_uniform());
  EXPECT_TRUE(leaf(plan, "w").updated);
  EXPECT_FALSE(leaf(plan, "w").on_host);
  EXPECT_FALSE(leaf(plan, "x").updated);
  for (const char* counter : {"optim.step", "rng.draw"}) {
    EXPECT_TRUE(leaf(plan, counter).on_host) << counter;
    EXPECT_TRUE(leaf(plan, counter).updated) << counter;
  }
  EXPECT_TRUE(leaf(plan, "optim.lr").on_host);
  EXPECT_TRUE(leaf(plan, "optim.lr").init == init::constant(0.01));
  EXPECT_TRUE(leaf(plan, "gain").init == init::constant(2));
  EXPECT_FALSE(leaf(plan, "running").on_host);
}

TEST(Compile, the_report_adds_up) {
  const Layer model;
  const auto [plan, report] = compile_training_graph(
      model.graph, model.loss, {.threads = 3, .optimizer = optim::adam(0.01)});
  const plan::Plan& step = plan.data()->step("step").plan;
  EXPECT_EQ(report.peak_bytes, step.arena_bytes + 3 * step.scratch_bytes);
  // w, b and their moments, the running mean, two counters.
  EXPECT_EQ(report.store_bytes, 3 * (24 + 4) * 4 + 6 * 4 + 2 * 8);
  EXPECT_GT(report.nodes_before, static_cast<std::int64_t>(model.graph.size()));
  EXPECT_GT(report.nodes_after, report.nodes_before);
  EXPECT_EQ(report.kernels_after, plan.launches());
  EXPECT_GT(report.kernels_before, report.kernels_after);
  EXPECT_GT(report.flops, 2.0 * 8 * 6 * 4);
  EXPECT_EQ(report.units.size(), step.units.size());
  std::int64_t launches = 0;
  double flops = 0;
  for (const Report::Kernel& kernel : report.kernels) {
    launches += kernel.launches;
    flops += kernel.flops;
  }
  EXPECT_EQ(launches, report.kernels_after);
  EXPECT_DOUBLE_EQ(flops, report.flops);
  for (const Report::Unit& unit : report.units) EXPECT_GT(unit.code_bytes, 0) << unit.name;
  for (const plan::Unit& unit : step.units) {
    EXPECT_FALSE(unit.object.empty()) << unit.entry;
    EXPECT_TRUE(unit.kernel) << unit.entry;
  }
  EXPECT_FALSE(step.target.empty());
}

TEST(Compile, a_report_as_text_and_json) {
  const Layer model;
  const Report report =
      compile_training_graph(model.graph, model.loss, {.optimizer = optim::sgd(0.1)}).report;
  const std::string text = report.text();
  for (const Report::Stage& stage : report.stages) EXPECT_THAT(text, HasSubstr(stage.name));
  for (const Report::Kernel& kernel : report.kernels) EXPECT_THAT(text, HasSubstr(kernel.name));
  const nlohmann::json json = nlohmann::json::parse(report.json());
  EXPECT_EQ(json.at("kernels").size(), report.kernels.size());
  EXPECT_EQ(json.at("peak_bytes"), report.peak_bytes);
  EXPECT_EQ(plan::report_from_json(json).json(), report.json());
}

TEST(Compile, a_report_says_what_is_stored_and_how_images_lie) {
  Report report;
  report.recomputed = {{"mul f32[5]", 4, 80}};
  report.stored = {{"add f32[3]", 2, 24}};
  report.by_planes = {"convolution f32[7]"};
  for (const char* line : {"computed again 4 x mul f32[5]", "stored         2 x add f32[3]",
                           "by planes      convolution f32[7]"})
    EXPECT_THAT(report.text(), HasSubstr(line));
  const nlohmann::json json = nlohmann::json::parse(report.json());
  EXPECT_EQ(json.at("stored").at(0).at("values"), "add f32[3]");
  const Report again = plan::report_from_json(json);
  EXPECT_EQ(again.json(), report.json());
  EXPECT_EQ(again.by_planes, report.by_planes);
}

TEST(Compile, kernels_alone_have_no_target) {
  const Layer model;
  const auto [plan, report] = compile(model.graph, {.device = "kir"});
  const plan::Plan& step = plan.data()->step("step").plan;
  EXPECT_EQ(step.target, "");
  EXPECT_THAT(report.units, IsEmpty());
  for (const plan::Unit& unit : step.units) EXPECT_TRUE(unit.object.empty());
}

TEST(Compile, a_graph_is_compiled_as_it_is) {
  const Layer model;
  const auto [plan, report] = compile(model.graph, {.device = "kir"});
  EXPECT_THAT(stage_names(report),
              ElementsAre("canonicalise", "saturate", "schedule", "codegen", "plan"));
  EXPECT_THAT(plan.outputs(), ElementsAre("hidden"));
  EXPECT_FALSE(plan.has_loss());
  EXPECT_EQ(plan.data()->non_finite, NonFiniteGuard::none);
  // Leaves that no output needs are there all the same: a session can set and save them.
  EXPECT_THAT(plan.inputs(), ElementsAre("x", "y"));
  EXPECT_THAT(message_of<TypeError>([&] { compile(model.graph, {.optimizer = optim::sgd()}); }),
              HasSubstr("use compile_training_graph"));
}

TEST(Compile, accumulation_has_two_plans_over_one_store) {
  const Layer model;
  const auto [plan, report] = compile_training_graph(model.graph, model.loss,
                                                     {.device = "kir",
                                                      .observe_gradients = true,
                                                      .accumulation_steps = 4,
                                                      .optimizer = optim::adam(0.01)});
  const CompiledPlan::Data& data = *plan.data();
  ASSERT_EQ(data.steps.size(), 2u);
  EXPECT_EQ(data.step("accumulate").plan.name, "accumulate");
  EXPECT_EQ(data.step("apply").plan.name, "apply");
  EXPECT_EQ(message_of<TypeError>([&] { data.step("step"); }),
            "the plan has no step 'step'; it has accumulate, apply");
  EXPECT_THAT(plan.states(), Contains("accum.grad.w"));
  EXPECT_TRUE(leaf(plan, "accum.first").on_host);
  EXPECT_FALSE(leaf(plan, "accum.loss").on_host);
  EXPECT_FALSE(leaf(plan, "accum.weight").on_host);
  EXPECT_TRUE(leaf(plan, "w").updated);  // by apply
  EXPECT_EQ(plan.parameter_gradients().size(), 2u);
  EXPECT_THAT(stage_names(report), ElementsAre("canonicalise", "differentiate", "optimizer",
                                               "saturate", "schedule", "codegen", "plan"));
  EXPECT_EQ(report.peak_bytes,
            std::max(data.steps[0].report.peak_bytes, data.steps[1].report.peak_bytes));
}

TEST(Compile, observed_values_are_outputs) {
  const Layer model;
  const CompiledPlan plan =
      compile(model.graph, {.device = "kir", .observe = {{"h", model.hidden}}}).plan;
  EXPECT_THAT(plan.outputs(), UnorderedElementsAre("hidden", "observe.h"));
}

TEST(Compile, without_fusion_there_are_more_launches) {
  const Layer model;
  const auto launches = [&](bool optimize) {
    return compile_training_graph(
               model.graph, model.loss,
               {.device = "kir", .optimize = optimize, .optimizer = optim::adam(0.01)})
        .plan.launches();
  };
  EXPECT_GT(launches(false), launches(true));
}

TEST(Compile, the_same_graph_gives_the_same_plan) {
  const Layer model;
  const auto once = [&] {
    const CompileResult result =
        compile_training_graph(model.graph, model.loss, {.optimizer = optim::adam(0.01)});
    const plan::Plan& plan = result.plan.data()->step("step").plan;
    std::vector<std::vector<std::byte>> objects;
    for (const plan::Unit& unit : plan.units) objects.push_back(unit.object);
    return std::tuple(plan.regions, plan.buffers, plan.launches, objects);
  };
  EXPECT_EQ(once(), once());
}

TEST(Compile, every_stage_is_a_span) {
  const Layer model;
  trace::Recorder recorder;
  CompileOptions options{.device = "kir", .optimizer = optim::sgd(0.1)};
  options.trace = &recorder;
  const Report report = compile_training_graph(model.graph, model.loss, options).report;
  EXPECT_EQ(recorder.size(), report.stages.size());
  for (const Report::Stage& stage : report.stages)
    EXPECT_THAT(recorder.json(), HasSubstr("\"" + stage.name + "\""));
}

TEST(Compile, unknown_devices_and_thread_counts_are_refused) {
  const Layer model;
  EXPECT_THROW(compile(model.graph, {.device = "gpu"}), UnsupportedError);
  EXPECT_THROW(compile(model.graph, {.threads = -1}), TypeError);
}

}  // namespace
}  // namespace pantala
