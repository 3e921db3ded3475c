// Some of a graph's outputs: what a plan is compiled for, which inputs it then has, and what is
// said about those that are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/training_data.h"

namespace pantala::session_outputs_test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using tests::message_of;

// A classifier with its loss, and an output that needs nothing but the labels.
struct Classifier {
  Graph graph;
  Tensor loss;
  Classifier() {
    const Tensor x = graph.input("x", {4, 3}), labels = graph.input("labels", {4}, i64);
    const Tensor logits = nn::linear("fc", x, 2);
    loss = cross_entropy(logits, labels);
    graph.output("logits", logits);
    graph.output("loss", loss);
    graph.output("last", labels + 1);
  }
};

std::vector<float> places() { return tests::random_floats(12, 1); }

TEST(SessionOutputs, predictions_need_no_labels) {
  const Classifier model;
  Session all = build_inference_session(model.graph, {}, {.seed = 5});
  Session some = build_inference_session(model.graph, {.outputs = {"logits"}}, {.seed = 5});
  EXPECT_THAT(some.outputs(), ElementsAre("logits"));
  EXPECT_THAT(some.inputs(), ElementsAre("x"));
  EXPECT_THAT(some.compiled().inputs(), ElementsAre("x"));
  EXPECT_THAT(all.compiled().inputs(), UnorderedElementsAre("x", "labels"));
  for (Session* session : {&all, &some}) session->set_input("x", places());
  all.set_input("labels", std::vector<std::int64_t>{0, 1, 0, 1});
  all.step();
  some.step();
  EXPECT_EQ(some.output("logits"), all.output("logits"));
}

TEST(SessionOutputs, types_of_inputs_outputs_and_values_are_told) {
  const Classifier model;
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.1)});
  EXPECT_EQ(session.input_type("x"), (Type{f32, {4, 3}}));
  EXPECT_EQ(session.output_type("logits"), (Type{f32, {4, 2}}));
  EXPECT_EQ(session.stored_type("fc.weight"), (Type{f32, {2, 3}}));
  EXPECT_EQ(session.stored_type("optim.step").shape, Shape{});
  EXPECT_THAT(message_of<TypeError>([&] { session.input_type("z"); }),
              testing::HasSubstr("no input named 'z'"));
  EXPECT_THROW(session.output_type("logit"), TypeError);
  EXPECT_THROW(session.stored_type("fc.weights"), TypeError);
}

TEST(SessionOutputs, memory_that_the_host_can_reach_is_what_is_read) {
  const Classifier model;
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  session.set_input("x", places());
  session.set_input("labels", std::vector<std::int64_t>{0, 1, 0, 1});
  EXPECT_THROW(session.output_memory("logits"), TypeError);  // before the first run
  const std::span<const std::byte> weight = session.stored_memory("fc.weight");
  for (int step = 0; step < 2; ++step) {
    session.step();
    const std::span<const std::byte> logits = session.output_memory("logits");
    ASSERT_EQ(logits.size(), 4u * 2 * sizeof(float));
    ASSERT_EQ(weight.size(), 2u * 3 * sizeof(float));
    const auto* seen = reinterpret_cast<const float*>(logits.data());
    const auto* kept = reinterpret_cast<const float*>(weight.data());
    for (int k = 0; k < 8; ++k) EXPECT_EQ(seen[k], session.output("logits").at(k));
    for (int k = 0; k < 6; ++k) EXPECT_EQ(kept[k], session.parameter("fc.weight").at(k));
  }
}

TEST(SessionOutputs, the_loss_of_a_training_step_is_there_whatever_is_asked_for) {
  const Classifier model;
  const CompileResult compiled =
      compile_training_graph(model.graph, model.loss, {.outputs = {"logits"}});
  EXPECT_THAT(compiled.plan.outputs(),
              UnorderedElementsAre("logits", "loss", "grad.fc.weight", "grad.fc.bias"));
}

TEST(SessionOutputs, a_plan_for_some_outputs_joins_the_session_that_trains) {
  const Classifier model;
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  const SessionPlan predict =
      session.attach("predict", compile(model.graph, {.outputs = {"logits"}}).plan);
  predict.set_input("x", places());
  predict.run();
  EXPECT_EQ(predict.output("logits").shape(), Shape({4, 2}));
}

TEST(SessionOutputs, an_unknown_one_is_answered_with_the_nearest) {
  const Classifier model;
  EXPECT_EQ(message_of<TypeError>([&] { compile(model.graph, {.outputs = {"logit"}}); }),
            "the graph has no output named 'logit'; did you mean 'logits'?");
  EXPECT_EQ(message_of<TypeError>([&] {
              compile_training_graph(model.graph, model.loss, {.outputs = {"last", "last"}});
            }),
            "the output 'last' is asked for twice");
}

TEST(SessionOutputs, missing_inputs_are_named_with_what_needs_them) {
  const Classifier model;
  Session session = build_inference_session(model.graph);
  session.set_input("x", places());
  EXPECT_EQ(message_of<TypeError>([&] { session.step(); }),
            "plan 'step' cannot run: 1 input without a value: 'labels' i64[4] (for 'loss', "
            "'last'); 'logits' can be had without (CompileOptions::outputs)");
  Session training = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  EXPECT_EQ(message_of<TypeError>([&] { training.step(); }),
            "plan 'step' cannot run: 2 inputs without a value: 'x' f32[4,3] (for 'logits', 'loss' "
            "and the updates), 'labels' i64[4] (for 'loss', 'last' and the updates)");
}

TEST(SessionOutputs, a_plan_file_keeps_what_needs_an_input) {
  const Classifier model;
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("plan");
  compile(model.graph, {.outputs = {"logits"}}).plan.save(path);
  const CompiledPlan loaded = load_plan(path);
  EXPECT_THAT(loaded.inputs(), ElementsAre("x"));
  EXPECT_EQ(message_of<TypeError>([&] { Session(loaded).step(); }),
            "plan 'step' cannot run: 1 input without a value: 'x' f32[4,3] (for 'logits')");
}

TEST(SessionOutputs, the_plan_cache_tells_them_apart) {
  const Classifier model;
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("plan");
  load_or_compile(path, model.graph);
  EXPECT_FALSE(load_or_compile(path, model.graph, {.outputs = {"logits"}}).report.cached());
  const CompileResult again = load_or_compile(path, model.graph, {.outputs = {"logits"}});
  EXPECT_TRUE(again.report.cached());
  EXPECT_THAT(again.plan.outputs(), ElementsAre("logits"));
}

}  // namespace
}  // namespace pantala::session_outputs_test
