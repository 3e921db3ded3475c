// Steps of a session in their parts: several batch sizes that are steps of one training run, the
// update apart from its gradients, and files that hold a run in two halves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "pantala/training_step.h"
#include "support/allocations.h"
#include "support/temporary.h"
#include "support/training_data.h"

namespace pantala {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::random_floats;
using testing_support::random_labels;

template <class E>
std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) { return error.what(); }
  return "no error";
}

constexpr std::int64_t kInputs = 7, kClasses = 4;

// Has all that lives from step to step: weights, running statistics and random draws.
struct Model {
  Graph graph;
  Tensor loss, hidden;
  explicit Model(std::int64_t batch, std::int64_t width = 6, double dropout = 0.25) {
    const Tensor x = graph.input("x", {batch, kInputs}),
                 labels = graph.input("labels", {batch}, i64);
    hidden = relu(nn::batch_norm("norm", nn::linear("fc1", x, width, {.bias = false})));
    if (dropout > 0) hidden = nn::dropout(hidden, dropout);
    loss = cross_entropy(nn::linear("fc2", hidden, kClasses), labels);
  }
};

CompileOptions with_adam() { return {.optimizer = optim::adam(0.01)}; }

CompiledPlan plan_of(const Model& model, const CompileOptions& options) {
  return compile_training_graph(model.graph, model.loss, options).plan;
}

Session session_of(const Model& model, const CompileOptions& options, std::uint64_t seed = 3) {
  return Session(plan_of(model, options), {.seed = seed});
}

void give(const SessionPlan& plan, std::int64_t batch, int seed) {
  plan.set_input("x", random_floats(batch * kInputs, static_cast<std::uint64_t>(seed)));
  plan.set_input("labels", random_labels(batch, kClasses, static_cast<std::uint64_t>(seed)));
}

// Everything that the session holds.
std::vector<Literal> contents(const Session& session) {
  std::vector<Literal> values;
  for (const std::string& name : session.parameters()) values.push_back(session.parameter(name));
  for (const std::string& name : session.states()) values.push_back(session.state(name));
  for (const std::string& name : session.scalars())
    values.push_back(Literal::scalar(session.scalar(name)));
  return values;
}

Literal scaled(Literal value, double factor) {
  for (double& x : value.f()) x *= factor;
  return value;
}

// --- batch sizes

// Training with batches of 4 and of 3 in turn; the losses.
std::vector<double> train_in_turn(Session& session, int steps, int first = 0) {
  const SessionPlan sizes[] = {session.plan(session.plans().front()), session.plan("three")};
  std::vector<double> losses;
  for (int k = first; k < first + steps; ++k) {
    const SessionPlan& plan = sizes[k % 2];
    give(plan, k % 2 == 0 ? 4 : 3, k);
    plan.run();
    EXPECT_EQ(session.loss(), plan.loss());
    losses.push_back(session.loss());
  }
  return losses;
}

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
  const std::int64_t before = testing_support::allocations().count;
  for (int k = 0; k < 6; ++k) {
    session.step();
    last.run();
  }
  EXPECT_EQ(testing_support::allocations().count, before);
}

TEST(SessionSteps, a_plan_that_is_no_step_of_the_session_is_refused_with_all_differences) {
  Session session = session_of(Model(4), with_adam());
  const auto refusal = [&](const Model& model, const CompileOptions& options) {
    return message<TypeError>([&] { session.attach_step("other", plan_of(model, options)); });
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
  EXPECT_THAT(message<TypeError>([&] { session.attach_step("other", compile(graph).plan); }),
              HasSubstr("the optimizer is none, the session's adam(lr=0.01"));
  EXPECT_EQ(session.plans().size(), 1u);
  EXPECT_EQ(
      message<TypeError>([&] { session.attach_step("step", plan_of(Model(3), with_adam())); }),
      "the session has a plan named 'step' already");
  session.attach_step("three", plan_of(Model(3), with_adam()));
}

// --- the update apart from its gradients

CompileOptions split(optim::Optimizer optimizer) {
  return {.split_update = true, .optimizer = std::move(optimizer)};
}

TEST(SessionSteps, a_split_step_is_the_plain_step) {
  const Model model(4);
  Session plain = session_of(model, {.optimizer = optim::sgd(0.1)}),
          halves = session_of(model, split(optim::sgd(0.1)));
  EXPECT_FALSE(plain.splits_update());
  EXPECT_TRUE(halves.splits_update());
  EXPECT_EQ(halves.accumulation_steps(), 1);
  for (int k = 0; k < 3; ++k) {
    give(plain.plan("step"), 4, k);
    give(halves.plan("accumulate"), 4, k);
    plain.step();
    if (k == 1) {
      halves.accumulate();
      EXPECT_EQ(halves.accumulated(), 1);
      halves.apply();
    } else {
      halves.step();
    }
    EXPECT_EQ(halves.accumulated(), 0);
    EXPECT_NEAR(halves.loss(), plain.loss(), 1e-6);
  }
  for (const std::string& name : plain.parameters()) {
    const Literal a = plain.parameter(name), b = halves.parameter(name);
    for (std::int64_t k = 0; k < a.numel(); ++k) EXPECT_NEAR(a.at(k), b.at(k), 1e-6) << name;
  }
}

TEST(SessionSteps, gradients_between_the_halves_are_those_that_are_applied) {
  const Model model(3);  // a weight that is no power of two
  CompileOptions options = split(optim::sgd(0.1));
  options.observe_gradients = true;
  Session session = session_of(model, options);
  give(session.plan("accumulate"), 3, 1);
  session.accumulate();
  std::vector<Literal> read;
  for (const std::string& name : session.parameters()) read.push_back(session.gradient(name));
  session.apply();
  std::size_t k = 0;
  for (const std::string& name : session.parameters())
    EXPECT_EQ(session.gradient(name), read[k++]) << name;
}

TEST(SessionSteps, a_gradient_that_is_set_is_the_one_that_is_applied) {
  const Model model(4);
  Session session = session_of(model, split(optim::sgd(0.5)));
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  const Literal before = session.parameter("fc2.bias"), other = session.gradient("fc1.weight");
  const Literal wanted = Literal::floats({kClasses}, {1, -2, 0.5, 0});
  session.set_gradient("fc2.bias", wanted);
  EXPECT_EQ(session.gradient("fc2.bias"), wanted);
  EXPECT_EQ(session.gradient("fc1.weight"), other);
  session.set_gradient("fc1.weight", scaled(other, 0));
  const Literal kept = session.parameter("fc1.weight");
  session.apply();
  const Literal after = session.parameter("fc2.bias");
  for (std::int64_t k = 0; k < kClasses; ++k)
    EXPECT_NEAR(after.at(k), before.at(k) - 0.5 * wanted.at(k), 1e-6);
  EXPECT_EQ(session.parameter("fc1.weight"), kept);
}

TEST(SessionSteps, half_precision_gradients_are_read_as_applied) {
  Graph graph;
  const Tensor w = graph.parameter("w", {5}, init::normal(0, 1), f16);
  const Tensor loss = mean(square(cast(w, f32) * graph.input("x", {3, 5})));
  CompileOptions options = split(optim::sgd(0.1));
  options.observe_gradients = true;
  Session session = build_session(graph, loss, options);
  session.set_input("x", random_floats(15, 1));
  session.accumulate();
  const Literal read = session.gradient("w");
  EXPECT_EQ(read.dtype(), f16);
  const Literal wanted = Literal::floats({5}, {0.1, -0.2, 3, 0, 7}, f16);
  session.set_gradient("w", wanted);
  for (std::int64_t k = 0; k < 5; ++k)
    EXPECT_EQ(session.gradient("w").at(k), round_to(f16, wanted.at(k)));
  session.set_gradient("w", read);
  session.apply();
  EXPECT_EQ(session.gradient("w"), read);
}

TEST(SessionSteps, a_window_may_be_longer_than_that_of_the_session) {
  CompileOptions options = split(optim::adam(0.01));
  Session session = session_of(Model(4), options);
  const SessionPlan three = session.attach_step("three", plan_of(Model(3), options));
  const Literal before = session.parameter("fc1.weight");
  for (int k = 0; k < 3; ++k) {
    give(session.plan("accumulate"), 4, k);
    session.accumulate();
  }
  give(three, 3, 5);
  three.accumulate();
  EXPECT_EQ(session.accumulated(), 4);
  EXPECT_EQ(session.state("accum.weight").at(0), 15);
  EXPECT_EQ(session.parameter("fc1.weight"), before);
  give(three, 3, 6);
  three.run();  // a step fills the window and more
  EXPECT_EQ(session.accumulated(), 0);
  EXPECT_EQ(session.state("accum.weight").at(0), 18);
  EXPECT_NE(session.parameter("fc1.weight"), before);
}

TEST(SessionSteps, a_micro_batch_that_the_guard_rejects_does_not_count) {
  for (const NonFiniteGuard guard : {NonFiniteGuard::loss, NonFiniteGuard::gradients}) {
    CompileOptions options = split(optim::adam(0.01));
    options.non_finite = guard;
    Session session = session_of(Model(4), options);
    const SessionPlan main = session.plan("accumulate");
    const std::vector<float> bad(4 * kInputs, std::numeric_limits<float>::infinity());
    give(main, 4, 1);
    main.set_input("x", bad);
    session.step();  // nothing to apply
    EXPECT_FALSE(session.last_step_finite());
    EXPECT_EQ(session.accumulated(), 0);
    give(main, 4, 1);
    session.accumulate();
    const Literal gradient = session.gradient("fc1.weight");
    const std::vector<Literal> before = contents(session);
    main.set_input("x", bad);
    session.accumulate();
    EXPECT_FALSE(session.last_step_finite());
    EXPECT_EQ(session.accumulated(), 1);
    EXPECT_EQ(session.gradient("fc1.weight"), gradient);
    session.set_scalar("accum.first", 1);  // what the session sets itself before each micro-batch
    EXPECT_EQ(contents(session), before);
    session.apply();
    EXPECT_TRUE(session.last_step_finite());
  }
}

TEST(SessionSteps, only_split_updates_have_halves) {
  const Model model(4);
  Session plain = session_of(model, with_adam());
  give(plain.plan("step"), 4, 1);
  plain.step();
  const std::string rest =
      ": this session does not accumulate; build it with accumulation_steps above 1, or with "
      "split_update";
  const Literal zeros(plain.parameter("fc2.bias").type());
  EXPECT_EQ(message<TypeError>([&] { plain.accumulate(); }), "accumulate" + rest);
  EXPECT_EQ(message<TypeError>([&] { plain.plan("step").accumulate(); }), "accumulate" + rest);
  EXPECT_EQ(message<TypeError>([&] { plain.set_gradient("fc2.bias", zeros); }),
            "set_gradient" + rest);
  EXPECT_EQ(message<TypeError>([&] { plain.gradient("fc2.bias"); }),
            "the gradient of 'fc2.bias' was not kept: build the session with observe_gradients = "
            "true");

  CompileOptions options = split(optim::sgd(0.1));
  options.training.groups = {{.pattern = "norm.bias", .frozen = true}};
  Session session = session_of(model, options);
  EXPECT_EQ(message<TypeError>([&] { session.gradient("fc2.bias"); }),
            "the gradient of 'fc2.bias' was not kept: read it before apply(), or build the session "
            "with observe_gradients = true");
  EXPECT_EQ(message<TypeError>([&] { session.set_gradient("fc2.bias", zeros); }),
            "set_gradient: nothing was accumulated since the last update");
  EXPECT_EQ(message<TypeError>([&] { session.plan("apply").accumulate(); }),
            "accumulate: plan 'apply' is no step of the session; attach_step() makes such plans");
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  EXPECT_EQ(message<TypeError>([&] { session.gradient("norm.bias"); }),
            "'norm.bias' is not trained: it has no gradient");
  EXPECT_EQ(message<TypeError>([&] { session.gradient("fc2.bais"); }),
            "the session has no parameter named 'fc2.bais'; did you mean 'fc2.bias'?");
  EXPECT_EQ(message<TypeError>([&] {
              session.set_gradient("fc2.bias", Literal({f32, {2}}));
            }),
            "gradient of 'fc2.bias' is f32[4], but f32[2] was given");
  EXPECT_EQ(message<TypeError>([&] { compile(model.graph, {.split_update = true}); }),
            "compile: split_update needs a loss; use compile_training_graph");
}

TEST(SessionSteps, a_gradient_cannot_be_set_where_nothing_has_weight) {
  Graph graph;
  const Tensor x = graph.input("x", {2, kInputs}), labels = graph.input("labels", {2}, i64);
  const Tensor loss = cross_entropy(nn::linear("fc", x, kClasses), labels);
  CompileOptions options = split(optim::sgd(0.1));
  options.non_finite = NonFiniteGuard::none;
  Session session = build_session(graph, loss, options);
  session.set_input("x", random_floats(2 * kInputs, 1));
  session.set_input("labels", std::vector<std::int64_t>{-100, -100});
  session.accumulate();
  EXPECT_EQ(message<ValueError>([&] {
              session.set_gradient("fc.bias", Literal({f32, {kClasses}}));
            }),
            "set_gradient: the accumulated items have the weight 0, so there is no mean to set");
}

// --- files

TEST(SessionSteps, two_files_continue_a_run_with_the_same_bits) {
  CompileOptions options = with_adam();
  options.training.ema_decay = 0.9;
  for (const std::int64_t window : {1, 3}) {
    options.accumulation_steps = window;
    const CompiledPlan four = plan_of(Model(4), options), three = plan_of(Model(3), options);
    const auto open = [&](std::uint64_t seed) {
      Session session(four, {.seed = seed});
      session.attach_step("three", three);
      return session;
    };
    const tests::TemporaryFolder folder;
    const std::string model = folder.file("model"), optimizer = folder.file("optimizer");
    Session whole = open(3);
    train_in_turn(whole, 4);  // into the middle of a window
    EXPECT_EQ(whole.accumulated(), window == 1 ? 0 : 1);
    whole.set_learning_rate(0.02);
    whole.save(model, Saved::model);
    whole.save(optimizer, Saved::optimizer);
    const std::vector<double> losses = train_in_turn(whole, 5, 4);

    Session resumed = open(99);
    train_in_turn(resumed, 5);
    resumed.load(optimizer, Saved::optimizer);
    EXPECT_EQ(resumed.accumulated(), window == 1 ? 0 : 1);
    resumed.load(model, Saved::model);
    EXPECT_EQ(resumed.learning_rate(), 0.02);
    EXPECT_EQ(train_in_turn(resumed, 5, 4), losses);
    EXPECT_EQ(contents(resumed), contents(whole));
    EXPECT_EQ(resumed.accumulated(), whole.accumulated());
  }
}

TEST(SessionSteps, the_halves_of_a_file_have_nothing_in_common) {
  Session session = session_of(Model(4), with_adam());
  const tests::TemporaryFolder folder;
  const std::string model = folder.file("model"), optimizer = folder.file("optimizer"),
                    all = folder.file("all");
  session.save(model, Saved::model);
  session.save(optimizer, Saved::optimizer);
  session.save(all, Saved::training);
  const std::string no_optimizer =
      message<TypeError>([&] { session.load(model, Saved::optimizer); });
  EXPECT_THAT(no_optimizer, HasSubstr("'optim.m.fc1.weight' f32[6,7] is missing"));
  EXPECT_THAT(no_optimizer, HasSubstr("'optim.lr' f64[] is missing"));
  EXPECT_THAT(no_optimizer, HasSubstr("'rng.draw' i64[] is missing"));
  const std::string no_model = message<TypeError>([&] { session.load(optimizer, Saved::model); });
  EXPECT_THAT(no_model, HasSubstr("'fc1.weight' f32[6,7] is missing"));
  EXPECT_THAT(no_model, HasSubstr("'norm.running_mean' f32[6] is missing"));
  EXPECT_THAT(no_model, testing::Not(HasSubstr("optim.")));
  session.load(all, Saved::optimizer);  // a larger file will do
}

TEST(SessionSteps, a_long_window_survives_a_file) {
  const CompiledPlan plan = plan_of(Model(4), split(optim::adam(0.01)));
  Session session(plan, {.seed = 3}), other(plan, {.seed = 4});
  for (int k = 0; k < 3; ++k) {
    give(session.plan("accumulate"), 4, k);
    session.accumulate();
  }
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("all");
  session.save(file, Saved::training);
  other.load(file, Saved::training);
  EXPECT_EQ(other.accumulated(), 3);
  EXPECT_EQ(other.gradient("fc1.weight"), session.gradient("fc1.weight"));
  session.apply();
  other.apply();
  EXPECT_EQ(contents(other), contents(session));
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
}  // namespace pantala
