// Several batch sizes that are steps of one training run, and counters that several plans share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/training_step.h"
#include "support/allocations.h"
#include "support/errors.h"
#include "unit/runtime/session_case.h"

namespace pantala::session_steps_test {
namespace {

using namespace session_case;
using testing::HasSubstr;
using testing::StartsWith;
using tests::message_of;
using tests::random_floats;
using tests::random_labels;

// --- batch sizes

TEST(SessionSteps, batch_sizes_in_turn_train_like_the_interpreter) {
  const Model four(4), three(3);
  Session session = session_of(four, with_adam());
  session.attach_step("three", plan_of(three, with_adam()));
  const std::vector<double> losses = train_in_turn(session, 6);

  const optim::Optimizer adam = *with_adam().optimizer;
  ref::Session references[] = {
      ref::Session(make_training_step(four.graph, four.loss, adam).graph, 3),
      ref::Session(make_training_step(three.graph, three.loss, adam).graph, 3)};
  std::vector<std::string> names = session.parameters();
  for (const std::string& name : session.states()) names.push_back(name);
  for (int k = 0; k < 6; ++k) {
    ref::Session& now = references[k % 2];
    const std::int64_t batch = k % 2 == 0 ? 4 : 3;
    const auto seed = static_cast<std::uint64_t>(k);
    const std::vector<float> x = random_floats(batch * kInputs, seed);
    now.set_input("x", Literal::floats({batch, kInputs}, {x.begin(), x.end()}));
    now.set_input("labels", Literal::ints({batch}, random_labels(batch, kClasses, seed)));
    now.step();
    EXPECT_NEAR(losses[static_cast<std::size_t>(k)], now.output_scalar("loss"), 1e-4) << k;
    for (const std::string& name : names) references[(k + 1) % 2].set_value(name, now.value(name));
  }
  EXPECT_EQ(session.state("optim.step"), Literal::integer(6));
  EXPECT_EQ(session.state("rng.draw"), Literal::integer(6));
  for (const std::string& name : session.parameters()) {
    const Literal ours = session.parameter(name), theirs = references[0].value(name);
    for (std::int64_t k = 0; k < ours.numel(); ++k)
      EXPECT_NEAR(ours.at(k), theirs.at(k), 2e-3) << name;
  }
}

TEST(SessionSteps, batch_sizes_in_turn_give_the_same_bits_every_time) {
  const CompiledPlan four = plan_of(Model(4), with_adam()), three = plan_of(Model(3), with_adam());
  std::vector<std::vector<Literal>> ends;
  for (const int threads : {1, 2}) {
    Session session(four, {.threads = threads, .seed = 3});
    session.attach_step("three", three);
    train_in_turn(session, 6);
    ends.push_back(contents(session));
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(SessionSteps, the_random_draws_of_all_batch_sizes_are_one_sequence) {
  const CompileOptions options = with_adam();
  const CompiledPlan plan = plan_of(Model(4), options);
  Session alone(plan, {.seed = 3}), both(plan, {.seed = 3});
  const SessionPlan second = both.attach_step("second", plan);
  for (int k = 0; k < 4; ++k) {
    give(alone.plan("step"), 4, k);
    alone.step();
    const SessionPlan now = k % 2 == 0 ? both.plan("step") : second;
    give(now, 4, k);
    now.run();
    EXPECT_EQ(alone.loss(), both.loss()) << k;
  }
  EXPECT_EQ(contents(alone), contents(both));
}

TEST(SessionSteps, every_batch_size_counts_in_the_window) {
  CompileOptions options = with_adam();
  options.accumulation_steps = 3;
  options.observe_gradients = true;
  Session session = session_of(Model(4), options);
  session.attach_step("three", plan_of(Model(3), options));
  const Literal before = session.parameter("fc1.weight");
  train_in_turn(session, 2);
  EXPECT_EQ(session.accumulated(), 2);
  EXPECT_EQ(session.state("accum.weight").at(0), 7);
  EXPECT_EQ(session.parameter("fc1.weight"), before);
  const Literal so_far = session.gradient("fc1.weight");
  train_in_turn(session, 1, 2);
  EXPECT_EQ(session.accumulated(), 0);
  EXPECT_EQ(session.state("accum.weight").at(0), 11);
  EXPECT_NE(session.parameter("fc1.weight"), before);
  EXPECT_NE(session.gradient("fc1.weight"), so_far);  // now that of the update
  EXPECT_EQ(session.state("optim.step"), Literal::integer(1));
}

TEST(SessionSteps, what_is_read_belongs_to_the_step_that_ran_last) {
  const Model four(4, 6, 0), three(3, 6, 0);
  CompileOptions large = with_adam(), small = with_adam();
  large.observe_gradients = small.observe_gradients = true;
  large.observe = {{"hidden", four.hidden}};
  small.observe = {{"hidden", three.hidden}};
  Session session = session_of(four, large);
  const SessionPlan last = session.attach_step("three", plan_of(three, small));
  give(session.plan("step"), 4, 1);
  session.step();
  const Literal gradient = session.gradient("fc2.weight");
  EXPECT_EQ(session.observed("hidden").shape(), (Shape{4, 6}));
  last.set_input("x", std::vector<float>(3 * kInputs, std::numeric_limits<float>::quiet_NaN()));
  last.set_input("labels", std::vector<std::int64_t>(3, 1));
  last.run();
  EXPECT_FALSE(session.last_step_finite());
  EXPECT_TRUE(std::isnan(session.loss()));
  EXPECT_EQ(session.observed("hidden").shape(), (Shape{3, 6}));
  give(last, 3, 2);
  last.run();
  EXPECT_TRUE(session.last_step_finite());
  EXPECT_NE(session.gradient("fc2.weight"), gradient);
  EXPECT_EQ(session.state("optim.step"), Literal::integer(2));
}

TEST(SessionSteps, a_run_of_several_batch_sizes_allocates_nothing) {
  CompileOptions options = with_adam();
  options.accumulation_steps = 3;
  Session session = session_of(Model(4), options);
  const SessionPlan last = session.attach_step("three", plan_of(Model(3), options));
  train_in_turn(session, 4);
  const std::int64_t before = tests::allocations().count;
  for (int k = 0; k < 6; ++k) {
    session.step();
    last.run();
  }
  EXPECT_EQ(tests::allocations().count, before);
}

TEST(SessionSteps, a_plan_that_is_no_step_of_the_session_is_refused_with_all_differences) {
  Session session = session_of(Model(4), with_adam());
  const auto refusal = [&](const Model& model, const CompileOptions& options) {
    return message_of<TypeError>([&] { session.attach_step("other", plan_of(model, options)); });
  };
  EXPECT_THAT(refusal(Model(3, 5, 0), with_adam()),
              StartsWith("'other' is no step of this session: 'fc1.weight' is f32[5,7], the "
                         "session's f32[6,7]; 'norm.weight' is f32[5], the session's f32[6]; "));
  EXPECT_THAT(refusal(Model(3, 6, 0), with_adam()), HasSubstr("it has no state 'rng.seed'"));
  CompileOptions options{.non_finite = NonFiniteGuard::none,
                         .observe_gradients = true,
                         .accumulation_steps = 2,
                         .optimizer = optim::sgd(0.1)};
  const std::string text = refusal(Model(3), options);
  EXPECT_THAT(text, HasSubstr("its steps are accumulate and apply, the session's step; non_finite "
                              "is none, the session's loss; accumulation_steps is 2, the "
                              "session's 1; the optimizer is sgd(lr=0.1"));
  EXPECT_THAT(text, HasSubstr("it has no state 'optim.m.fc1.weight'"));
  EXPECT_THAT(text, HasSubstr("its state 'accum.loss' is not in the session"));
  EXPECT_THAT(text, HasSubstr("it has no output 'finite'"));
  options = with_adam();
  options.observe_gradients = true;
  EXPECT_THAT(refusal(Model(3), options), HasSubstr("the session has no output 'grad.fc1.weight'"));
  const Model evaluated(3);
  Graph graph = evaluated.graph;
  graph.output("loss", graph.value(evaluated.loss.id()));
  EXPECT_THAT(message_of<TypeError>([&] { session.attach_step("other", compile(graph).plan); }),
              HasSubstr("the optimizer is none, the session's adam(lr=0.01"));
  EXPECT_EQ(session.plans().size(), 1u);
  EXPECT_EQ(
      message_of<TypeError>([&] { session.attach_step("step", plan_of(Model(3), with_adam())); }),
      "the session has a plan named 'step' already");
  session.attach_step("three", plan_of(Model(3), with_adam()));
}

// --- counters that the device keeps

struct Counting {
  Graph step, reader;
  Counting() {
    const Tensor seen = step.state("seen", {}, init::zeros(), i64);
    step.update(seen, seen + sum(cast(gt(step.input("x", {3}), 0.0), i64)));
    reader.output("twice", reader.state("seen", {}, init::zeros(), i64) * 2);
  }
};

TEST(SessionSteps, a_counter_of_the_device_is_read_by_the_host_of_another_plan) {
  const Counting counting;
  for (const bool reader_first : {false, true}) {
    const CompiledPlan counts = compile(counting.step).plan, reads = compile(counting.reader).plan;
    Session session(reader_first ? reads : counts);
    if (reader_first) {
      session.step();
      session.set_state("seen", Literal::integer(10));  // on the host until somebody wants it else
    }
    const SessionPlan other = session.attach("other", reader_first ? counts : reads);
    const SessionPlan main = session.plan("step");
    const SessionPlan &counter = reader_first ? other : main, &reader = reader_first ? main : other;
    counter.set_input("x", std::vector<float>{1, -1, 2});
    counter.run();
    counter.run();
    reader.run();
    const std::int64_t expected = reader_first ? 14 : 4;
    EXPECT_EQ(reader.output("twice"), Literal::integer(2 * expected));
    EXPECT_EQ(session.state("seen"), Literal::integer(expected));
  }
}

TEST(SessionSteps, a_counter_of_the_device_is_advanced_by_the_host_of_another_plan) {
  const Counting counting;
  Graph doubling;
  const Tensor seen = doubling.state("seen", {}, init::zeros(), i64);
  doubling.update(seen, seen * 2);
  Session session(compile(counting.step).plan);
  session.attach("double", compile(doubling).plan);
  session.set_input("x", std::vector<float>{1, -1, 2});
  session.step();
  session.run("double");
  session.step();
  EXPECT_EQ(session.state("seen"), Literal::integer(6));
}

}  // namespace
}  // namespace pantala::session_steps_test
