// Steps in their parts: the update apart from its gradients, and files that hold a run in halves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pantala/accumulation.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "unit/runtime/session_case.h"

namespace pantala::session_split_test {
namespace {

using namespace session_case;
using testing::HasSubstr;
using tests::message_of;
using tests::random_floats;

Literal scaled(Literal value, double factor) {
  for (double& x : value.f()) x *= factor;
  return value;
}

// --- the update apart from its gradients

CompileOptions split(optim::Optimizer optimizer) {
  return {.split_update = true, .optimizer = std::move(optimizer)};
}

TEST(SessionSplit, a_split_step_is_the_plain_step) {
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

TEST(SessionSplit, gradients_between_the_halves_are_those_that_are_applied) {
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

TEST(SessionSplit, a_gradient_that_is_set_is_the_one_that_is_applied) {
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

TEST(SessionSplit, a_gradient_in_double_is_rounded_to_the_type_of_its_parameter) {
  const Model model(4);
  Session session = session_of(model, split(optim::sgd(0.5)));
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  const std::vector<double> wanted{0.1, -1.0 / 3, 1e-9, 7};
  session.set_gradient("fc2.bias", Literal::floats({kClasses}, wanted, f64));
  const Literal read = session.gradient("fc2.bias");
  EXPECT_EQ(read.dtype(), f32);
  for (std::int64_t k = 0; k < kClasses; ++k)
    EXPECT_EQ(read.at(k), round_to(f32, wanted[static_cast<std::size_t>(k)]));
  EXPECT_EQ(message_of<TypeError>([&] { session.set_gradient("fc2.bias", Literal({f64, {2}})); }),
            "gradient of 'fc2.bias' is f32[4], but f64[2] was given");
}

// --- without normalisation

// The gradients of each batch alone, as the host would get them.
NamedGradients gradients_of(const Model& model, std::int64_t batch, int seed) {
  Session session = session_of(model, {});
  give(session.plan("step"), batch, seed);
  session.step();
  NamedGradients gradients;
  for (const std::string& name : session.parameters())
    gradients.emplace(name, session.gradient(name));
  return gradients;
}

TEST(SessionSplit, without_normalisation_the_gradient_is_the_sum_of_a_gradient_accumulator) {
  const Model four(4, 6, 0), three(3, 6, 0);
  CompileOptions options{.accumulation_steps = 2, .normalize = false, .optimizer = optim::sgd(0.1)};
  Session session = session_of(four, options);
  session.attach_step("three", plan_of(three, options));
  GradientAccumulator host({.accumulation_steps = 2, .normalize = false});
  for (const std::string& name : session.parameters())
    host.register_parameter(name, session.parameter(name).shape());
  host.step(gradients_of(four, 4, 1), 4);
  host.step(gradients_of(three, 3, 2), 3);
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  give(session.plan("three"), 3, 2);
  session.plan("three").accumulate();
  for (const auto& [name, sum] : host.gradients()) {
    const Literal got = session.gradient(name), before = session.parameter(name);
    for (std::int64_t k = 0; k < sum.numel(); ++k) EXPECT_NEAR(got.at(k), sum.at(k), 1e-5) << name;
  }
  const Literal before = session.parameter("fc2.bias"), gradient = session.gradient("fc2.bias");
  session.apply();
  for (std::int64_t k = 0; k < kClasses; ++k)
    EXPECT_NEAR(session.parameter("fc2.bias").at(k), before.at(k) - 0.1 * gradient.at(k), 1e-6);
}

TEST(SessionSplit, without_normalisation_the_loss_stays_a_mean) {
  const Model model(4, 6, 0);
  Session mean = session_of(model, {.accumulation_steps = 2, .optimizer = optim::sgd(0.1)}),
          sum = session_of(
              model, {.accumulation_steps = 2, .normalize = false, .optimizer = optim::sgd(0.1)});
  for (Session* session : {&mean, &sum})
    for (int k = 0; k < 2; ++k) {
      give(session->plan("accumulate"), 4, k);
      session->step();
    }
  EXPECT_EQ(sum.loss(), mean.loss());
}

// The sum is taken of one batch, too: what an update takes does not depend on the number of them.
TEST(SessionSplit, without_normalisation_a_single_batch_gives_its_sum) {
  const Model model(4, 6, 0);
  Session session = session_of(model, {.normalize = false, .optimizer = optim::sgd(0.1)});
  EXPECT_TRUE(session.splits_update());
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  const Literal mean = gradients_of(model, 4, 1).at("fc2.bias");
  for (std::int64_t k = 0; k < kClasses; ++k)
    EXPECT_NEAR(session.gradient("fc2.bias").at(k), 4 * mean.at(k), 1e-5);
  const Literal wanted = Literal::floats({kClasses}, {1, -2, 0.5, 0});
  session.set_gradient("fc2.bias", wanted);
  EXPECT_EQ(session.gradient("fc2.bias"), wanted);
}

TEST(SessionSplit, steps_with_and_without_normalisation_do_not_mix) {
  CompileOptions options{.accumulation_steps = 2, .optimizer = optim::sgd(0.1)};
  Session session = session_of(Model(4), options);
  options.normalize = false;
  EXPECT_THAT(
      message_of<TypeError>([&] { session.attach_step("three", plan_of(Model(3), options)); }),
      HasSubstr("normalize is false, the session's true"));
  EXPECT_EQ(message_of<TypeError>([&] { compile(Model(4).graph, {.normalize = false}); }),
            "compile: normalize = false needs a loss; use compile_training_graph");
}

// Two sessions with other micro-batches apply what the host made of both.
TEST(SessionSplit, takes_the_gradients_of_a_gradient_accumulator) {
  const Model model(4);
  Session sessions[] = {session_of(model, split(optim::sgd(0.1))),
                        session_of(model, split(optim::sgd(0.1)))};
  const Session before = session_of(model, split(optim::sgd(0.1)));
  GradientAccumulator accumulator({.accumulation_steps = 2});
  for (const std::string& name : before.parameters())
    accumulator.register_parameter(name, before.parameter(name).shape());
  for (int k = 0; k < 2; ++k) {
    give(sessions[k].plan("accumulate"), 4, k);
    sessions[k].accumulate();
    NamedGradients gradients;
    for (const std::string& name : before.parameters())
      gradients.emplace(name, sessions[k].gradient(name));
    EXPECT_EQ(accumulator.step(gradients, 4), k == 1);
  }
  for (Session& session : sessions) {
    for (const auto& [name, gradient] : accumulator.gradients())
      session.set_gradient(name, gradient);
    session.apply();
  }
  for (const std::string& name : before.parameters()) {
    EXPECT_EQ(sessions[0].parameter(name), sessions[1].parameter(name)) << name;
    const Literal a = sessions[0].parameter(name), b = before.parameter(name);
    const NamedGradients mean = accumulator.gradients();
    for (std::int64_t k = 0; k < a.numel(); ++k)
      EXPECT_NEAR(a.at(k), b.at(k) - 0.1 * mean.at(name).at(k), 1e-6) << name;
  }
}

// Without dropout: a session that takes its second micro-batch draws other numbers than one that
// takes its first.
TEST(SessionSplit, accumulation_on_the_host_is_that_on_the_device) {
  const Model model(4, 6, 0);
  Session device = session_of(model, split(optim::sgd(0.1)));
  Session replicas[] = {session_of(model, split(optim::sgd(0.1))),
                        session_of(model, split(optim::sgd(0.1)))};
  GradientAccumulator accumulator({.accumulation_steps = 2});
  for (const std::string& name : device.parameters())
    accumulator.register_parameter(name, device.parameter(name).shape());
  for (int k = 0; k < 2; ++k) {
    NamedGradients gradients;
    for (Session* session : {&device, &replicas[k]}) {
      give(session->plan("accumulate"), 4, k);
      session->accumulate();
    }
    for (const std::string& name : device.parameters())
      gradients.emplace(name, replicas[k].gradient(name));
    accumulator.step(gradients, 4);
  }
  for (const auto& [name, gradient] : accumulator.gradients()) {
    const Literal whole = device.gradient(name);
    for (std::int64_t k = 0; k < whole.numel(); ++k)
      EXPECT_NEAR(whole.at(k), gradient.at(k), 1e-6) << name;
    replicas[0].set_gradient(name, gradient);
  }
  device.apply();
  replicas[0].apply();
  for (const std::string& name : device.parameters()) {
    const Literal a = device.parameter(name), b = replicas[0].parameter(name);
    for (std::int64_t k = 0; k < a.numel(); ++k) EXPECT_NEAR(a.at(k), b.at(k), 1e-6) << name;
  }
}

TEST(SessionSplit, half_precision_gradients_are_read_as_applied) {
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

TEST(SessionSplit, parameters_may_have_the_names_of_what_is_accumulated_beside_gradients) {
  Graph graph;
  const Tensor x = graph.input("x", {2});
  const Tensor product = x * graph.parameter("weight", {2}) + graph.parameter("loss", {2}) +
                         graph.parameter("first", {2});
  Session session = build_session(graph, mean(product), split(optim::sgd(1)));
  session.set_input("x", Literal::floats({2}, {3, 5}));
  session.accumulate();
  EXPECT_EQ(session.gradient("weight"), Literal::floats({2}, {1.5, 2.5}));
  EXPECT_EQ(session.gradient("loss"), Literal::floats({2}, {0.5, 0.5}));
  session.apply();
}

TEST(SessionSplit, a_window_may_be_longer_than_that_of_the_session) {
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

TEST(SessionSplit, a_micro_batch_that_the_guard_rejects_does_not_count) {
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

TEST(SessionSplit, only_split_updates_have_halves) {
  const Model model(4);
  Session plain = session_of(model, with_adam());
  give(plain.plan("step"), 4, 1);
  plain.step();
  const std::string rest =
      ": this session does not accumulate; build it with accumulation_steps above 1, or with "
      "split_update";
  const Literal zeros(plain.parameter("fc2.bias").type());
  EXPECT_EQ(message_of<TypeError>([&] { plain.accumulate(); }), "accumulate" + rest);
  EXPECT_EQ(message_of<TypeError>([&] { plain.plan("step").accumulate(); }), "accumulate" + rest);
  EXPECT_EQ(message_of<TypeError>([&] { plain.set_gradient("fc2.bias", zeros); }),
            "set_gradient" + rest);
  EXPECT_EQ(message_of<TypeError>([&] { plain.gradient("fc2.bias"); }),
            "the gradient of 'fc2.bias' was not kept: build the session with observe_gradients = "
            "true");

  CompileOptions options = split(optim::sgd(0.1));
  options.training.groups = {{.pattern = "norm.bias", .frozen = true}};
  Session session = session_of(model, options);
  EXPECT_EQ(message_of<TypeError>([&] { session.gradient("fc2.bias"); }),
            "the gradient of 'fc2.bias' was not kept: read it before apply(), or build the session "
            "with observe_gradients = true");
  EXPECT_EQ(message_of<TypeError>([&] { session.set_gradient("fc2.bias", zeros); }),
            "set_gradient: nothing was accumulated since the last update");
  EXPECT_EQ(message_of<TypeError>([&] { session.plan("apply").accumulate(); }),
            "accumulate: plan 'apply' is no step of the session; attach_step() makes such plans");
  give(session.plan("accumulate"), 4, 1);
  session.accumulate();
  EXPECT_EQ(message_of<TypeError>([&] { session.gradient("norm.bias"); }),
            "'norm.bias' is not trained: it has no gradient");
  EXPECT_EQ(message_of<TypeError>([&] { session.gradient("fc2.bais"); }),
            "the session has no parameter named 'fc2.bais'; did you mean 'fc2.bias'?");
  EXPECT_EQ(message_of<TypeError>([&] { session.set_gradient("fc2.bias", Literal({f32, {2}})); }),
            "gradient of 'fc2.bias' is f32[4], but f32[2] was given");
  EXPECT_EQ(message_of<TypeError>([&] { compile(model.graph, {.split_update = true}); }),
            "compile: split_update needs a loss; use compile_training_graph");
}

TEST(SessionSplit, a_gradient_cannot_be_set_where_nothing_has_weight) {
  Graph graph;
  const Tensor x = graph.input("x", {2, kInputs}), labels = graph.input("labels", {2}, i64);
  const Tensor loss = cross_entropy(nn::linear("fc", x, kClasses), labels);
  CompileOptions options = split(optim::sgd(0.1));
  options.non_finite = NonFiniteGuard::none;
  Session session = build_session(graph, loss, options);
  session.set_input("x", random_floats(2 * kInputs, 1));
  session.set_input("labels", std::vector<std::int64_t>{-100, -100});
  session.accumulate();
  EXPECT_EQ(
      message_of<ValueError>([&] { session.set_gradient("fc.bias", Literal({f32, {kClasses}})); }),
      "set_gradient: the accumulated items have the weight 0, so there is no mean to set");
}

// --- files

TEST(SessionSplit, two_files_continue_a_run_with_the_same_bits) {
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

TEST(SessionSplit, the_halves_of_a_file_have_nothing_in_common) {
  Session session = session_of(Model(4), with_adam());
  const tests::TemporaryFolder folder;
  const std::string model = folder.file("model"), optimizer = folder.file("optimizer"),
                    all = folder.file("all");
  session.save(model, Saved::model);
  session.save(optimizer, Saved::optimizer);
  session.save(all, Saved::training);
  const std::string no_optimizer =
      message_of<TypeError>([&] { session.load(model, Saved::optimizer); });
  EXPECT_THAT(no_optimizer, HasSubstr("\n  optim.m.fc1.weight\n"));
  EXPECT_THAT(no_optimizer, HasSubstr("\n  optim.lr\n"));
  EXPECT_THAT(no_optimizer, HasSubstr("\n  rng.draw\n"));
  const std::string no_model =
      message_of<TypeError>([&] { session.load(optimizer, Saved::model); });
  EXPECT_THAT(no_model, HasSubstr(" missing:\n  fc1.weight\n"));
  EXPECT_THAT(no_model, HasSubstr("\n  norm.running_mean\n"));
  EXPECT_THAT(no_model, testing::Not(HasSubstr("optim.")));
  session.load(all, Saved::optimizer);  // a larger file will do
}

TEST(SessionSplit, a_long_window_survives_a_file) {
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

}  // namespace
}  // namespace pantala::session_split_test
