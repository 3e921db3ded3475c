#include "pantala/training_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"

namespace pantala {
namespace {

using testing::ElementsAre;
using tests::message_of;

Literal values(Shape shape, std::vector<double> numbers) {
  return Literal::floats(std::move(shape), std::move(numbers), f64);
}

// sum((x w + b)^2) with a running count as a state of the model.
struct Model {
  Graph graph;
  Tensor loss;
  Model() {
    const Tensor x = graph.input("x", {2}, f64);
    const Tensor w = graph.parameter("fc.weight", {2}, init::constant(1), f64),
                 b = graph.parameter("fc.bias", {2}, init::constant(0.5), f64);
    const Tensor seen = graph.state("seen", {}, init::zeros(), i64);
    graph.update(seen, seen + 2);
    loss = sum(square(x * w + b));
  }
};

// Verified, equal after a text round trip, with its input set.
ref::Session session_of(const Graph& graph) {
  verify(graph);
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(parse_graph(text)), text);
  ref::Session session(graph);
  session.set_input("x", values({2}, {1, 2}));
  return session;
}

TEST(TrainingStep, one_step_trains_and_keeps_the_updates_of_the_model) {
  Model m;
  const TrainingStep step = make_training_step(m.graph, m.loss, optim::sgd(0.1));
  EXPECT_TRUE(m.graph.outputs().empty());  // the given graph is left alone
  ref::Session session = session_of(step.graph);
  session.step();
  EXPECT_DOUBLE_EQ(session.output_scalar("loss"), 1.5 * 1.5 + 2.5 * 2.5);
  EXPECT_DOUBLE_EQ(session.value("fc.weight").at(1), 1 - 0.1 * 2 * 2.5 * 2);
  EXPECT_DOUBLE_EQ(session.value("fc.bias").at(0), 0.5 - 0.1 * 2 * 1.5);
  EXPECT_EQ(session.value("seen").at(0), 2);
  double last = session.output_scalar("loss");
  for (int k = 0; k < 5; ++k) {
    session.step();
    EXPECT_LT(session.output_scalar("loss"), last);
    last = session.output_scalar("loss");
  }
}

TEST(TrainingStep, gradients_can_be_observed_by_name) {
  Model m;
  const TrainingStep step = make_training_step(m.graph, m.loss, optim::adamw());
  ref::Session session = session_of(step.graph);
  session.observe({step.gradients.at("fc.weight"), step.loss});
  session.step();
  EXPECT_THAT(session.observed(step.gradients.at("fc.weight")).to_doubles(), ElementsAre(3, 10));
  EXPECT_EQ(session.observed(step.loss).at(0), session.output_scalar("loss"));
  EXPECT_EQ(step.optimizer, optim::adamw());
}

TEST(TrainingStep, without_an_optimizer_the_gradients_are_outputs) {
  Model m;
  const TrainingStep step = make_training_step(m.graph, m.loss, std::nullopt);
  ref::Session session = session_of(step.graph);
  session.step();
  EXPECT_THAT(session.output("grad.fc.weight").to_doubles(), ElementsAre(3, 10));
  EXPECT_THAT(session.output("grad.fc.bias").to_doubles(), ElementsAre(3, 5));
  EXPECT_THAT(session.value("fc.weight").to_doubles(), ElementsAre(1, 1));
  EXPECT_EQ(message_of<TypeError>(
                [&] { make_training_step(m.graph, m.loss, std::nullopt, {.clip = {.norm = 1}}); }),
            "training step: clip needs an optimizer");
}

TEST(TrainingStep, frozen_and_unnamed_parameters_are_not_differentiated) {
  Model m;
  const TrainingStep frozen = make_training_step(
      m.graph, m.loss, optim::sgd(0.1), {.groups = {{.pattern = "*.bias", .frozen = true}}});
  EXPECT_EQ(frozen.gradients.size(), 1u);
  EXPECT_TRUE(frozen.gradients.contains("fc.weight"));
  const TrainingStep named =
      make_training_step(m.graph, m.loss, optim::sgd(0.1), {.parameters = {"fc.weight"}});
  for (const TrainingStep* step : {&frozen, &named}) {
    ref::Session session = session_of(step->graph);
    session.step();
    EXPECT_THAT(session.value("fc.bias").to_doubles(), ElementsAre(0.5, 0.5));
    EXPECT_NE(session.value("fc.weight").at(0), 1);
  }
  EXPECT_EQ(message_of<TypeError>([&] {
              make_training_step(m.graph, m.loss, optim::sgd(), {.parameters = {"fc.wight"}});
            }),
            "the graph has no leaf named 'fc.wight'; did you mean 'fc.weight'?");
  EXPECT_EQ(message_of<TypeError>([&] {
              make_training_step(m.graph, m.loss, optim::sgd(), {.parameters = {"seen"}});
            }),
            "training step: 'seen' is not a parameter");
  EXPECT_EQ(message_of<TypeError>([&] {
              make_training_step(m.graph, m.loss, optim::sgd(),
                                 {.parameters = {"fc.bias", "fc.bias"}});
            }),
            "training step: the parameter 'fc.bias' is named twice");
  EXPECT_EQ(message_of<TypeError>([&] {
              make_training_step(m.graph, m.loss, optim::sgd(),
                                 {.groups = {{.pattern = "*", .frozen = true}}});
            }),
            "training step: there is nothing to train: 2 parameters, all frozen");
}

TEST(TrainingStep, all_options_together) {
  Model m;
  const TrainingStep step =
      make_training_step(m.graph, m.loss, optim::adam(0.1),
                         {.groups = {{.pattern = "*.bias", .lr_factor = 0.5, .weight_decay = 0.0}},
                          .clip = {.norm = 1, .value = 4},
                          .ema_decay = 0.9,
                          .gradient_norms = true});
  ref::Session session = session_of(step.graph);
  session.step();
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm"), std::sqrt(9.0 + 100 + 9 + 25));
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm.fc.bias"), std::sqrt(34.0));
  EXPECT_NEAR(session.value("fc.weight").at(0), 0.9, 1e-7);
  EXPECT_NEAR(session.value("fc.bias").at(0), 0.45, 1e-7);
  EXPECT_NEAR(session.value("ema.fc.bias").at(0), 0.495, 1e-8);
}

TEST(TrainingStep, an_output_named_loss_is_the_loss) {
  Model m;
  m.graph.output("loss", m.loss);
  ref::Session session = session_of(make_training_step(m.graph, m.loss, optim::sgd()).graph);
  session.step();
  EXPECT_DOUBLE_EQ(session.output_scalar("loss"), 8.5);
  Model other;
  other.graph.output("loss", other.loss * 2.0);
  EXPECT_THROW(make_training_step(other.graph, other.loss, optim::sgd()), TypeError);
}

TEST(TrainingStep, the_random_counter_advances) {
  Model m;
  const Tensor draw = m.graph.rng_draw();
  m.graph.output("draw", draw);
  ref::Session session = session_of(make_training_step(m.graph, m.loss, optim::sgd()).graph);
  for (int k = 0; k < 3; ++k) {
    session.step();
    EXPECT_EQ(session.output_scalar("draw"), k);
  }
  EXPECT_EQ(session.value("rng.draw").at(0), 3);
}

TEST(TrainingStep, a_loss_that_is_no_scalar_is_refused) {
  Model m;
  EXPECT_THAT(
      message_of<TypeError>(
          [&] { make_training_step(m.graph, m.graph.leaf("fc.bias"), optim::sgd()); }),
      ::testing::StartsWith("differentiate: the loss must be a scalar, got f64[2] of parameter "
                            "(training_step_test.cpp:"));
}

}  // namespace
}  // namespace pantala
