// Sessions at their edges: empty tensors, plans run by hand, values that an optimizer cannot take,
// names that mean two things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::session_edges_test {
namespace {

using testing::HasSubstr;
using tests::message_of;

constexpr std::int64_t kInputs = 5, kClasses = 3;

zoo::Model small_mlp(std::int64_t batch) {
  return zoo::mlp({.batch = batch, .inputs = kInputs, .hidden = {4}, .classes = kClasses});
}

void give(const SessionPlan& plan, std::int64_t batch, float value = 0.5F) {
  plan.set_input("x", std::vector<float>(static_cast<std::size_t>(batch * kInputs), value));
  plan.set_input("labels", std::vector<std::int64_t>(static_cast<std::size_t>(batch), 1));
}

struct EmptyBatch {
  Graph graph;
  Tensor loss;
  EmptyBatch() {
    const Tensor x = graph.input("x", {0, kInputs}), labels = graph.input("labels", {0}, i64);
    const Tensor logits = nn::linear("fc1", x, kClasses);
    loss = cross_entropy(logits, labels);
    graph.output("logits", logits);
    graph.output("loss", loss);
  }
};

TEST(SessionEdges, an_empty_batch_has_empty_results) {
  const EmptyBatch model;
  for (const char* device : {"cpu", "kir"}) {
    Session session = build_inference_session(model.graph, {.device = device});
    give(session.plan("step"), 0);
    session.step();
    EXPECT_EQ(session.output("logits").shape(), (Shape{0, kClasses}));
    EXPECT_TRUE(std::isnan(session.loss()));  // the mean of nothing
  }
}

TEST(SessionEdges, training_on_an_empty_batch_changes_nothing) {
  const EmptyBatch model;
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.1)});
  const Literal before = session.parameter("fc1.weight");
  give(session.plan("step"), 0);
  session.step();
  EXPECT_FALSE(session.last_step_finite());
  EXPECT_EQ(session.parameter("fc1.weight"), before);
}

TEST(SessionEdges, an_empty_parameter_is_kept_and_saved) {
  Graph graph;
  const Tensor weight = graph.parameter("w", {0, 2});
  graph.output("twice", weight * 2.0);
  Session session = build_inference_session(graph);
  session.step();
  EXPECT_EQ(session.output("twice").numel(), 0);
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("empty.safetensors");
  session.save(path);
  session.load(path);
  EXPECT_EQ(session.parameter("w").shape(), (Shape{0, 2}));
}

TEST(SessionEdges, an_evaluation_does_not_hide_that_a_step_was_not_finite) {
  const zoo::Model model = small_mlp(2);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  const SessionPlan evaluation = session.attach("evaluation", compile(model.graph).plan);
  give(session.plan("step"), 2, std::numeric_limits<float>::quiet_NaN());
  session.step();
  give(evaluation, 2);
  evaluation.run();
  EXPECT_FALSE(session.last_step_finite());
}

TEST(SessionEdges, plans_of_a_window_that_are_run_by_hand_keep_the_window) {
  const zoo::Model model = small_mlp(2);
  Session session = build_session(model.graph, model.loss,
                                  {.accumulation_steps = 2, .optimizer = optim::sgd(0.1)});
  EXPECT_EQ(message_of<TypeError>([&] { session.run("apply"); }),
            "apply: nothing was accumulated since the last update");
  const Literal before = session.parameter("fc1.weight");
  give(session.plan("accumulate"), 2);
  session.run("accumulate");
  EXPECT_EQ(session.accumulated(), 1);
  EXPECT_EQ(session.parameter("fc1.weight"), before);
  session.run("apply");
  EXPECT_EQ(session.accumulated(), 0);
  EXPECT_NE(session.parameter("fc1.weight"), before);
}

TEST(SessionEdges, the_loss_is_the_one_that_is_trained) {
  const zoo::Model model = small_mlp(2);
  const Tensor other = mean(square(model.logits));
  EXPECT_EQ(message_of<TypeError>([&] { compile_training_graph(model.graph, other); }),
            "training step: the graph's output 'loss' is another value than the loss to train; "
            "give that output another name");
}

TEST(SessionEdges, scalars_of_the_optimizer_are_checked_under_every_name) {
  Graph graph;
  const Tensor scale = graph.scalar("scale", 1);
  const Tensor w = graph.parameter("w", {2}, init::ones());
  const Tensor loss = mean(w * cast(scale, f32));
  Session session =
      build_session(graph, loss,
                    {.optimizer = optim::sgd(0.1),
                     .training = {.groups = {{.pattern = "w"}}, .clip = {.norm = 1.0}}});
  const double nan = std::nan("");
  EXPECT_EQ(message_of<TypeError>([&] { session.set_scalar("optim.lr", nan); }),
            "optim: lr must be finite and not negative, got nan");
  EXPECT_THAT(message_of<TypeError>([&] { session.set_scalar("optim.group0.lr_factor", -1); }),
              HasSubstr("lr_factor must be"));
  EXPECT_THAT(message_of<TypeError>([&] { session.set_scalar("optim.clip_norm", 0); }),
              HasSubstr("clip_norm must be"));
  session.set_scalar("scale", -3);  // the user's own
  EXPECT_EQ(session.learning_rate(), 0.1);
  EXPECT_EQ(session.scalar("scale"), -3);
}

TEST(SessionEdges, inference_plans_are_cached_without_the_updates_of_the_graph) {
  Graph graph;
  const Tensor count = graph.state("count", {2});
  graph.update(count, count + 1.0);
  graph.output("doubled", count * 2.0);
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("plan");
  for (const bool loaded : {false, true}) {
    Session session = build_inference_session_cached(graph, {}, path);
    EXPECT_EQ(session.report().cached(), loaded);
    session.step();
    EXPECT_EQ(session.state("count").at(0), 0);
  }
}

TEST(SessionEdges, without_a_parameter_there_is_nothing_to_train) {
  Graph graph;
  const Tensor loss = mean(graph.input("x", {3}));
  EXPECT_EQ(message_of<TypeError>([&] { build_session(graph, loss); }),
            "training step: there is nothing to train: the graph has no float parameter");
}

}  // namespace
}  // namespace pantala::session_edges_test
