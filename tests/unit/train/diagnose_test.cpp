// clang-format off: expected places name the line of an op, which must not move.
// Diagnosis: the op where numbers stop being finite is named, wherever in the step it stands, and
// what looks bad without doing harm is not.
#include "train/diagnose.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/session.h"

namespace pantala::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::string here(int line) { return fmt::format("diagnose_test.cpp:{}", line); }

// x [2,3], and a parameter of ones to train. What is made of them stands in the tests.
struct Model {
  Graph graph;
  Tensor x = graph.input("x", {2, 3});
  Tensor w = graph.parameter("w", {3}, init::ones());
  Tensor loss;
  CompileOptions options{.non_finite = NonFiniteGuard::gradients, .optimizer = optim::sgd(0.1)};

  Session session() const { return build_session(graph, loss, options); }
};

data::Batch batch_of(std::vector<float> values) {
  return {.data = {{2, 3}, std::move(values)}, .labels = {{0}, std::vector<float>{}}};
}

Diagnosis diagnosis(const Model& model, const Session& session, const data::Batch& batch) {
  return diagnose(model.graph, model.loss, model.options, session, batch);
}

// Runs the step, which is not finite, and diagnoses it.
NonFiniteOrigin origin(const Model& model, std::vector<float> values) {
  const data::Batch batch = batch_of(std::move(values));
  Session session = model.session();
  session.set_input("x", batch.data.elements());
  session.step();
  EXPECT_FALSE(session.last_step_finite());
  const Diagnosis found = diagnosis(model, session, batch);
  EXPECT_TRUE(found.origin.has_value());
  return found.origin.value_or(NonFiniteOrigin());
}

TEST(Diagnose, a_logarithm_of_a_negative_number) {
  Model model;
  const Tensor h = model.x * model.w;
  const int line = __LINE__ + 1;
  const Tensor y = log(h);
  model.loss = mean(square(y));
  const NonFiniteOrigin found = origin(model, {1, 2, 3, 4, -0.5F, 6});
  EXPECT_EQ(found.op, "log");
  EXPECT_EQ(found.place, here(line));
  EXPECT_EQ(found.part, StepPart::forward);
  EXPECT_EQ(found.reaches, "the loss");
  EXPECT_THAT(found.index, ElementsAre(1, 1));
  EXPECT_TRUE(std::isnan(found.value));
  EXPECT_EQ(found.result.nan, 1);
  EXPECT_EQ(found.result.finite(), 5);
  EXPECT_EQ(found.result.type, (Type{f32, {2, 3}}));
  ASSERT_EQ(found.inputs.size(), 1u);
  EXPECT_EQ(found.inputs[0].source, fmt::format("mul ({})", here(line - 2)));
  EXPECT_EQ(found.inputs[0].smallest, -0.5);
  EXPECT_EQ(found.inputs[0].largest, 6);
  EXPECT_EQ(found.inputs[0].nan + found.inputs[0].infinite, 0);
  EXPECT_EQ(found.inputs[0].here, -0.5);
}

TEST(Diagnose, nothing_divided_by_nothing) {
  Model model;
  const Tensor h = model.x * model.w;
  const Tensor total = sum(h, {1}, true);
  const int line = __LINE__ + 1;
  const Tensor shares = h / total;
  model.loss = mean(shares);
  const NonFiniteOrigin found = origin(model, {1, 2, 3, 0, 0, 0});
  EXPECT_EQ(found.op, "div");
  EXPECT_EQ(found.place, here(line));
  EXPECT_THAT(found.index, ElementsAre(1, 0));
  EXPECT_EQ(found.result.nan, 3);
  ASSERT_EQ(found.inputs.size(), 2u);
  EXPECT_EQ(found.inputs[0].largest, 3);
  EXPECT_EQ(found.inputs[1].source, fmt::format("sum ({})", here(line - 2)));  // not its broadcast
  EXPECT_EQ(found.inputs[1].smallest, 0);
  EXPECT_EQ(found.inputs[1].largest, 6);
  EXPECT_EQ(found.inputs[1].here, 0);
}

TEST(Diagnose, an_overflow_in_the_middle_that_becomes_nan_later) {
  Model model;
  const int line = __LINE__ + 1;
  const Tensor e = exp(model.x * model.w);
  const Tensor p = e / (sum(e, {1}, true) + 1);  // without the 1 it is a softmax, and finite
  model.loss = mean(relu(nn::linear("fc", p, 2)));
  const NonFiniteOrigin found = origin(model, {1, 100, 3, 4, 5, 6});
  EXPECT_EQ(found.op, "exp");
  EXPECT_EQ(found.place, here(line));
  EXPECT_EQ(found.value, kInf);
  EXPECT_THAT(found.index, ElementsAre(0, 1));
  EXPECT_EQ(found.result.infinite, 1);
  EXPECT_EQ(found.inputs.at(0).here, 100);
}

TEST(Diagnose, the_backward_pass_alone) {
  Model model;
  const Tensor h = model.x * model.w;
  const int line = __LINE__ + 1;
  const Tensor y = sqrt(h);
  model.loss = mean(y);
  const NonFiniteOrigin found = origin(model, {1, 2, 3, 4, 5, 0});
  EXPECT_EQ(found.part, StepPart::backward);
  EXPECT_EQ(found.place, here(line));  // of the op whose derivative it is
  EXPECT_EQ(found.reaches, "the gradient of 'w'");
  EXPECT_EQ(found.value, kInf);
  EXPECT_THAT(found.index, ElementsAre(1, 2));
  EXPECT_EQ(found.result.infinite, 1);
  for (const ValueSummary& input : found.inputs) EXPECT_EQ(input.nan + input.infinite, 0);
}

TEST(Diagnose, the_loss_itself) {
  Model model;
  const Tensor h = mean(model.x * model.w);
  const int line = __LINE__ + 1;
  model.loss = log(h);
  const NonFiniteOrigin found = origin(model, {1, -1, 2, -2, 3, -3});
  EXPECT_EQ(found.op, "log");
  EXPECT_EQ(found.place, here(line));
  EXPECT_TRUE(found.index.empty());
  EXPECT_EQ(found.value, -kInf);
  EXPECT_EQ(found.inputs.at(0).source, fmt::format("mean ({})", here(line - 2)));
}

TEST(Diagnose, the_optimizer) {
  Model model;
  model.loss = mean(model.x * model.w);
  model.options.non_finite = NonFiniteGuard::none;
  model.options.optimizer = optim::sgd(1e30);
  const data::Batch batch = batch_of({1e20F, 1, 1, 1e20F, 1, 1});
  for (const bool is_split : {false, true}) {
    model.options.split_update = is_split;
    Session session = model.session();  // as it was before the step
    if (is_split) {
      session.set_input("x", batch.data.elements());
      session.accumulate();  // the step itself met it in apply()
    }
    const Diagnosis found = diagnosis(model, session, batch);
    ASSERT_TRUE(found.origin) << is_split;
    EXPECT_EQ(found.origin->part, StepPart::update);
    EXPECT_EQ(found.origin->place, "");
    EXPECT_EQ(found.origin->reaches, "the new value of 'w'");
    EXPECT_THAT(found.origin->index, ElementsAre(0));
    EXPECT_EQ(found.origin->value, -kInf);
    EXPECT_EQ(found.origin->inputs.at(0).source, "parameter 'w'");
  }
}

TEST(Diagnose, values_that_were_given) {
  Model model;
  model.loss = mean(square(model.x * model.w));
  const NonFiniteOrigin input = origin(model, {1, 2, kNan, 4, 5, kInf});
  EXPECT_EQ(input.part, StepPart::given);
  EXPECT_EQ(input.op, "input");
  EXPECT_EQ(input.result.source, "input 'x'");
  EXPECT_THAT(input.index, ElementsAre(0, 2));
  EXPECT_EQ(input.result.nan, 1);
  EXPECT_EQ(input.result.infinite, 1);
  EXPECT_TRUE(input.inputs.empty());

  Session session = model.session();
  session.set_parameter("w", std::vector<float>{1, kInf, 1});
  const Diagnosis found = diagnosis(model, session, batch_of({1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(found.origin);
  EXPECT_EQ(found.origin->result.source, "parameter 'w'");
  EXPECT_THAT(found.text(), HasSubstr("The parameter 'w' is inf at [1] before anything is computed."));
}

TEST(Diagnose, infinities_that_do_no_harm_are_not_blamed) {
  Model model;
  const Tensor h = model.x * model.w;
  const Tensor kept = where(gt(h, 0.0), log(model.x), 0.0);                 // log(0) is left out
  const Tensor masked = where(gt(h, 0.0), h, -std::numeric_limits<double>::infinity());
  const Tensor p = softmax(masked, -1);
  const int line = __LINE__ + 1;
  const Tensor last = log(p);
  model.loss = mean(p * last) + mean(kept);
  const NonFiniteOrigin found = origin(model, {0, 2, 3, 4, 5, 6});
  EXPECT_EQ(found.op, "log");
  EXPECT_EQ(found.place, here(line));
  EXPECT_EQ(found.inputs.at(0).smallest, 0);
}

TEST(Diagnose, a_mask_that_hides_everything) {
  Model model;
  const Tensor h = model.x * model.w;
  const Tensor masked = where(gt(h, 0.0), h, -std::numeric_limits<double>::infinity());
  const int line = __LINE__ + 1;
  const Tensor p = softmax(masked, -1);
  model.loss = mean(square(p));
  const NonFiniteOrigin found = origin(model, {1, 2, 3, -4, -5, -6});
  EXPECT_EQ(found.op, "softmax");
  EXPECT_EQ(found.place, here(line));
  EXPECT_THAT(found.index, ElementsAre(1, 0));
  EXPECT_EQ(found.inputs.at(0).infinite, 3);
}

TEST(Diagnose, random_draws_are_those_of_the_step) {
  Model model;
  const Tensor y = log(nn::dropout(model.x * model.w, 0.5));
  model.loss = mean(y);
  model.options.observe = {{"y", y}};
  const data::Batch batch = batch_of({1, 2, 3, 4, 5, 6});
  Session session = model.session();
  session.set_input("x", batch.data.elements());
  for (int k = 0; k < 4; ++k) {
    session.set_state("rng.draw", Literal::integer(k));
    session.step();
    ASSERT_FALSE(session.last_step_finite());
    const Literal met = session.observed("y");
    const Diagnosis found = diagnosis(model, session, batch);
    ASSERT_TRUE(found.origin);
    std::int64_t first = 0, count = 0;
    for (std::int64_t i = 6; i-- > 0;)
      if (!std::isfinite(met.at(i))) first = i, ++count;
    EXPECT_THAT(found.origin->index, ElementsAre(first / 3, first % 3));
    EXPECT_EQ(found.origin->result.infinite, count);
  }
}

TEST(Diagnose, accumulation_at_its_place_in_the_window) {
  Model model;
  const int line = __LINE__ + 1;
  const Tensor y = log(model.x * model.w);
  model.loss = mean(y);
  model.options.accumulation_steps = 3;
  model.options.optimizer = optim::adam(0.1);
  Session session = model.session();
  const data::Batch good = batch_of({1, 2, 3, 4, 5, 6}), bad = batch_of({1, 2, 3, 4, 5, -6});
  session.set_input("x", good.data.elements());
  session.step();
  EXPECT_FALSE(diagnosis(model, session, good).origin);
  session.set_input("x", bad.data.elements());
  session.step();
  ASSERT_FALSE(session.last_step_finite());
  const Diagnosis found = diagnosis(model, session, bad);
  ASSERT_TRUE(found.origin);
  EXPECT_EQ(found.origin->op, "log");
  EXPECT_EQ(found.origin->place, here(line));
  EXPECT_EQ(found.origin->part, StepPart::forward);
  EXPECT_THAT(found.origin->index, ElementsAre(1, 2));
  EXPECT_EQ(session.accumulated(), 1);
}

TEST(Diagnose, sums_that_overflow_in_a_window) {
  Model model;
  model.loss = sum(model.x * model.w);
  model.options.accumulation_steps = 2;
  model.options.non_finite = NonFiniteGuard::none;
  Session session = model.session();
  const data::Batch batch = batch_of({1e38F, 1, 1, 1e38F, 1, 1});
  session.set_input("x", batch.data.elements());
  session.step();
  const Diagnosis found = diagnosis(model, session, batch);
  ASSERT_TRUE(found.origin);
  EXPECT_EQ(found.origin->part, StepPart::update);
  EXPECT_THAT(found.origin->reaches, HasSubstr("the new value of 'accum."));
  EXPECT_EQ(found.origin->value, kInf);
}

// What a rule makes of a division: the reciprocal of a tiny number that the host computes is too
// large for f32, where the quotient is not.
TEST(Diagnose, what_only_a_rewritten_step_computes) {
  Model model;
  const Tensor tiny = model.graph.scalar("tiny", 1e-39);
  model.loss = mean(model.x * 1e-36 / cast(tiny, f32) * model.w);
  model.options.rewrite = Rewrite::greedy;
  const NonFiniteOrigin found = origin(model, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(found.part, StepPart::chosen);
  EXPECT_THAT(found.rules, testing::Contains("divide-by-host-number"));
}

// An exponential that overflows as it is written, and not in the form that was compiled.
TEST(Diagnose, replays_the_form_that_ran) {
  Model model;
  const Tensor e = exp(model.x * model.w);  // infinite, but a softmax as it runs
  const Tensor shares = e / sum(e, {1}, true);
  const int line = __LINE__ + 1;
  model.loss = mean(sqrt(shares - 0.5));
  const NonFiniteOrigin found = origin(model, {100, 2, 3, 4, 5, 6});
  EXPECT_EQ(found.op, "sqrt");
  EXPECT_EQ(found.place, here(line));
}

TEST(Diagnose, a_step_with_finite_numbers) {
  Model model;
  const Tensor h = model.x * model.w;
  model.loss = mean(h);
  log(h);  // nothing depends on it
  const Diagnosis found = diagnosis(model, model.session(), batch_of({1, -2, 3, 4, 5, 6}));
  EXPECT_FALSE(found.origin);
  EXPECT_EQ(found.text(),
            "Replayed with a kernel per op on cpu, the step has only finite numbers on its way to "
            "the loss, the gradients, their norms and the new values.\n");
}

TEST(Diagnose, the_text_says_it_all) {
  Model model;
  const int line = __LINE__ + 1;
  const Tensor h = model.x * model.w; const Tensor y = log(h);
  model.loss = mean(y);
  const Diagnosis found = diagnosis(model, model.session(), batch_of({1, 2, 3, 4, -0.5F, 0}));
  EXPECT_EQ(found.text(),
            fmt::format("The first number that is not finite is made in the forward pass by log "
                        "({0}): nan at [1,1].\n"
                        "  result f32[2,3]: 0 to 1.3862943649291992, 1 nan, 1 infinite\n"
                        "  x, mul ({0}), f32[2,3]: -0.5 to 4; -0.5 there\n"
                        "It reaches the loss. Replayed with a kernel per op on cpu.\n", here(line)));
}

TEST(Diagnose, labels_and_other_names) {
  Graph graph;
  const Tensor pixels = graph.input("pixels", {2, 3}), classes = graph.input("classes", {2}, i64);
  const Tensor loss = cross_entropy(nn::linear("fc", exp(pixels), 4), classes);
  const CompileOptions options{.optimizer = optim::adam(0.1)};
  const Session session = build_session(graph, loss, options);
  const data::Batch batch{.data = {{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 600}},
                          .labels = {{2}, std::vector<std::int64_t>{1, 3}}};
  const Diagnosis found =
      diagnose(graph, loss, options, session, batch, {.data = "pixels", .labels = "classes"});
  ASSERT_TRUE(found.origin);
  EXPECT_EQ(found.origin->op, "exp");
  EXPECT_EQ(found.origin->inputs.at(0).source, "input 'pixels'");
  EXPECT_THROW(diagnose(graph, loss, options, session, batch), TypeError);
}

TEST(Diagnose, a_graph_of_another_model_is_refused) {
  Model model, other;
  model.loss = mean(model.x * model.w);
  other.loss = mean(nn::linear("fc", other.x, 2));
  EXPECT_THROW(diagnosis(other, model.session(), batch_of({1, 2, 3, 4, 5, 6})), TypeError);
}

}  // namespace
}  // namespace pantala::train
