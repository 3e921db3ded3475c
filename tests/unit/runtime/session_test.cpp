// Sessions: several plans over one store, files, threads, guards, accumulation. What they compute
// is compared with the interpreter or with another session, to the bit where that is promised.
#include "pantala/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/training_step.h"
#include "pantala/zoo.h"
#include "support/allocations.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/training_data.h"

namespace pantala::session_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;
using tests::random_floats;
using tests::random_labels;

constexpr std::int64_t kInputs = 20, kClasses = 5;

zoo::Model small_mlp(std::int64_t batch) {
  return zoo::mlp({.batch = batch, .inputs = kInputs, .hidden = {16}, .classes = kClasses});
}

void give_batch(const SessionPlan& plan, std::int64_t batch, std::uint64_t seed) {
  plan.set_input("x", random_floats(batch * kInputs, seed));
  plan.set_input("labels", random_labels(batch, kClasses, seed));
}

std::vector<Literal> all_parameters(const Session& session) {
  std::vector<Literal> values;
  for (const std::string& name : session.parameters()) values.push_back(session.parameter(name));
  return values;
}

void train(Session& session, int steps, std::int64_t batch = 8, int first = 0) {
  for (int k = first; k < first + steps; ++k) {
    give_batch(session.plan("step"), batch, static_cast<std::uint64_t>(k));
    session.step();
  }
}

TEST(Session, trains_like_the_interpreter) {
  const zoo::Model model = small_mlp(8);
  const optim::Optimizer adam = optim::adam(0.01);
  Session session = build_session(model.graph, model.loss, {.optimizer = adam}, {.seed = 7});
  ref::Session reference(make_training_step(model.graph, model.loss, adam).graph, 7);
  for (const std::string& name : session.parameters())
    EXPECT_EQ(session.parameter(name), reference.value(name)) << name;
  for (int k = 0; k < 5; ++k) {
    const auto seed = static_cast<std::uint64_t>(k);
    const std::vector<float> x = random_floats(8 * kInputs, seed);
    const std::vector<std::int64_t> labels = random_labels(8, kClasses, seed);
    session.set_input("x", x);
    session.set_input("labels", labels);
    reference.set_input("x", Literal::floats({8, kInputs}, {x.begin(), x.end()}));
    reference.set_input("labels", Literal::ints({8}, labels));
    session.step();
    reference.step();
    EXPECT_NEAR(session.loss(), reference.output_scalar("loss"), 1e-5);
  }
  EXPECT_EQ(session.state("optim.step"), Literal::integer(5));
  for (const std::string& name : session.parameters()) {
    const Literal ours = session.parameter(name);
    const Literal& theirs = reference.value(name);
    for (std::int64_t k = 0; k < ours.numel(); ++k)
      EXPECT_NEAR(ours.at(k), theirs.at(k), 1e-4) << name;
  }
}

TEST(Session, plans_of_other_batch_sizes_and_evaluation_share_the_parameters) {
  const zoo::Model large = small_mlp(8), small = small_mlp(3);
  const CompileOptions options{.optimizer = optim::adam(0.01)};
  Session session = build_session(large.graph, large.loss, options);
  const SessionMemory before = session.memory_summary();
  const SessionPlan last =
      session.attach("last", compile_training_graph(small.graph, small.loss, options).plan);
  const SessionPlan eval = session.attach("eval", compile(small.graph).plan);
  EXPECT_THAT(session.plans(), ElementsAre("step", "last", "eval"));
  EXPECT_EQ(session.memory_summary().parameters, before.parameters);
  EXPECT_EQ(session.memory_summary().states, before.states);

  Session reference = build_inference_session(small.graph);
  for (int k = 0; k < 3; ++k) {
    train(session, 1, 8, k);
    give_batch(last, 3, 100);
    last.run();
    give_batch(eval, 3, 200);
    session.run("eval");
    // A session of its own with the same parameters gives the same bits.
    for (const std::string& name : session.parameters())
      reference.set_parameter(name, session.parameter(name));
    give_batch(reference.plan("step"), 3, 200);
    reference.step();
    EXPECT_EQ(eval.output("logits"), reference.output("logits"));
    EXPECT_EQ(session.state("optim.step"), Literal::integer(2 * k + 2));
  }
}

TEST(Session, an_attached_plan_must_fit) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss);
  const zoo::Model wider =
      zoo::mlp({.batch = 8, .inputs = kInputs, .hidden = {17}, .classes = kClasses});
  EXPECT_EQ(message_of<TypeError>([&] { session.attach("wide", compile(wider.graph).plan); }),
            "the plan does not fit the session: parameter 'fc1.weight' is f32[16,20], the plan has "
            "f32[17,20]; parameter 'fc1.bias' is f32[16], the plan has f32[17]; parameter "
            "'fc2.weight' is f32[5,16], the plan has f32[5,17]");
  EXPECT_EQ(message_of<TypeError>([&] { session.attach("step", compile(model.graph).plan); }),
            "the session has a plan named 'step' already");
  EXPECT_EQ(message_of<TypeError>([&] { session.run("stop"); }),
            "the session has no plan named 'stop'; did you mean 'step'?");
  EXPECT_THAT(session.plans(), ElementsAre("step"));
}

TEST(Session, a_saved_run_goes_on_with_the_same_bits) {
  const zoo::Model model = small_mlp(8);
  const CompileOptions options{.optimizer = optim::adam(0.01)};
  Session session = build_session(model.graph, model.loss, options);
  train(session, 4);
  session.set_learning_rate(0.02);
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("pantala_session_training.safetensors");
  session.save(file, Saved::training);
  train(session, 4, 8, 4);

  Session resumed = build_session(model.graph, model.loss, options, {.seed = 99});
  resumed.load(file, Saved::training);
  EXPECT_EQ(resumed.learning_rate(), 0.02);
  train(resumed, 4, 8, 4);
  EXPECT_EQ(all_parameters(resumed), all_parameters(session));
  EXPECT_EQ(resumed.loss(), session.loss());
}

TEST(Session, saved_parameters_are_loaded_by_an_inference_session) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.01)});
  train(session, 2);
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("pantala_session_model.safetensors");
  Session inference = build_inference_session(model.graph, {}, {.seed = 5});
  for (const Saved what : {Saved::model, Saved::training}) {
    session.save(file, what);
    if (what == Saved::model) {
      inference.load(file);
      EXPECT_EQ(all_parameters(inference), all_parameters(session));
      // What training needs is not there.
      EXPECT_THAT(message_of<TypeError>([&] { session.load(file, Saved::training); }),
                  HasSubstr("\n  optim.m.fc1.bias\n  optim.m.fc1.weight\n"));
    } else {
      session.load(file, Saved::model);  // a larger file of the same session will do
    }
  }
}

TEST(Session, a_file_that_does_not_fit_is_refused_with_all_problems) {
  const zoo::Model model = small_mlp(8);
  Session session = build_inference_session(model.graph);
  const zoo::Model other =
      zoo::mlp({.batch = 8, .inputs = kInputs, .hidden = {16, 9}, .classes = kClasses});
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("pantala_session_other.safetensors");
  build_inference_session(other.graph).save(file);
  const std::vector<Literal> before = all_parameters(session);
  const std::string text = message_of<TypeError>([&] { session.load(file); });
  EXPECT_EQ(text, file +
                      ": does not fit the model:\n"
                      "2 unexpected:\n"
                      "  fc3.bias\n"
                      "  fc3.weight\n"
                      "2 of another type:\n"
                      "  fc2.bias: f32[5] in the model, f32[9] given\n"
                      "  fc2.weight: f32[5,16] in the model, f32[9,16] given");
  EXPECT_EQ(all_parameters(session), before);
}

TEST(Session, labels_out_of_range_are_refused_when_they_are_set) {
  const zoo::Model model = small_mlp(4);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  EXPECT_EQ(
      message_of<ValueError>(
          [&] { session.set_input("labels", std::vector<std::int64_t>{0, 1, 5, 2}); }),
      "input 'labels': 5 at position 2 is not in [0, 4] and not -100, which its readers need");
  session.set_input("labels", std::vector<std::int64_t>{0, 1, -100, 2});
  session.set_input("x", random_floats(4 * kInputs, 1));
  session.step();
  EXPECT_TRUE(std::isfinite(session.loss()));
}

TEST(Session, an_index_computed_out_of_range_is_reported_by_the_step) {
  Graph graph;
  const Tensor table = graph.parameter("table", {4, 2}, init::ones());
  const Tensor index = graph.input("index", {3}, i64);
  const Tensor shift = graph.input("shift", {3}, i64);
  graph.output("rows", take(table, index + shift, 0));
  Session session = build_inference_session(graph);
  session.set_input("index", std::vector<std::int64_t>{0, 1, 2});
  session.set_input("shift", std::vector<std::int64_t>{0, 0, 1});
  session.step();
  EXPECT_EQ(session.output("rows").to_doubles(), std::vector<double>(6, 1));
  session.set_input("shift", std::vector<std::int64_t>{0, 0, 2});
  EXPECT_THAT(message_of<ValueError>([&] { session.step(); }), HasSubstr("take"));
  session.set_input("shift", std::vector<std::int64_t>{0, 0, 0});
  session.step();  // the report is not repeated
}

// The parameters after 20 steps of Adam.
std::vector<Literal> trained(const zoo::Model& model, const Shape& input, std::int64_t classes,
                             int threads) {
  Session session =
      build_session(model.graph, model.loss, {.threads = threads, .optimizer = optim::adam(1e-3)});
  for (std::uint64_t k = 0; k < 20; ++k) {
    session.set_input("x", random_floats(input.numel(), k));
    session.set_input("labels", random_labels(input[0], classes, k));
    session.step();
  }
  std::vector<Literal> values = all_parameters(session);
  values.push_back(session.output("loss"));
  return values;
}

TEST(Session, an_mlp_trains_to_the_same_bits_with_any_number_of_threads) {
  const zoo::Model model = zoo::mlp({.batch = 16, .inputs = 100, .hidden = {48}, .classes = 10});
  const std::vector<Literal> one = trained(model, {16, 100}, 10, 1);
  for (const int threads : {1, 2, 3, 7})
    EXPECT_EQ(trained(model, {16, 100}, 10, threads), one) << threads << " threads";
}

TEST(Session, a_lenet_trains_to_the_same_bits_with_any_number_of_threads) {
  const zoo::Model model = zoo::lenet({.batch = 4, .size = 12});
  const std::vector<Literal> one = trained(model, {4, 1, 12, 12}, 10, 1);
  for (const int threads : {1, 2, 3, 7})
    EXPECT_EQ(trained(model, {4, 1, 12, 12}, 10, threads), one) << threads << " threads";
}

TEST(Session, the_interpreter_of_kernels_trains_to_the_same_bits) {
  const zoo::Model model = small_mlp(4);
  const optim::Optimizer adam = optim::adam(0.01);
  Session fast = build_session(model.graph, model.loss, {.optimizer = adam});
  Session checked = build_session(model.graph, model.loss, {.device = "kir", .optimizer = adam});
  train(fast, 2, 4);
  train(checked, 2, 4);
  EXPECT_EQ(all_parameters(checked), all_parameters(fast));
  EXPECT_EQ(checked.loss(), fast.loss());
}

TEST(Session, steps_after_the_first_allocate_nothing) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.01)});
  const std::vector<float> x = random_floats(8 * kInputs, 1);
  const std::vector<std::int64_t> labels = random_labels(8, kClasses, 1);
  double sum = 0;
  const auto step = [&] {
    session.set_input("x", x);
    session.set_input("labels", labels);
    session.step();
    session.wait();
    sum += session.loss();
  };
  step();
  const std::int64_t before = tests::allocations().count;
  for (int k = 2; k <= 100; ++k) step();
  EXPECT_EQ(tests::allocations().count, before);
  EXPECT_TRUE(std::isfinite(sum));
}

TEST(Session, a_step_that_is_not_finite_changes_nothing) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.01)});
  train(session, 2);
  EXPECT_TRUE(session.last_step_finite());
  const std::vector<Literal> before = all_parameters(session);
  const Literal moment = session.state("optim.m.fc1.weight");
  std::vector<float> bad = random_floats(8 * kInputs, 1);
  bad[3] = std::numeric_limits<float>::quiet_NaN();
  session.set_input("x", bad);
  session.step();
  EXPECT_FALSE(session.last_step_finite());
  EXPECT_TRUE(std::isnan(session.loss()));
  EXPECT_EQ(all_parameters(session), before);
  EXPECT_EQ(session.state("optim.m.fc1.weight"), moment);
  EXPECT_EQ(session.state("optim.step"), Literal::integer(2));
  train(session, 1);
  EXPECT_TRUE(session.last_step_finite());
  EXPECT_EQ(session.state("optim.step"), Literal::integer(3));
}

TEST(Session, accumulation_applies_the_update_of_a_whole_batch) {
  const zoo::Model micro = small_mlp(2), whole = small_mlp(8);
  const optim::Optimizer sgd = optim::sgd(0.1);
  Session accumulating =
      build_session(micro.graph, micro.loss, {.accumulation_steps = 4, .optimizer = sgd});
  Session at_once = build_session(whole.graph, whole.loss, {.optimizer = sgd});
  EXPECT_THAT(accumulating.plans(), ElementsAre("accumulate", "apply"));
  const std::vector<Literal> first = all_parameters(accumulating);
  for (int update = 0; update < 3; ++update) {
    const auto seed = static_cast<std::uint64_t>(update);
    const std::vector<float> x = random_floats(8 * kInputs, seed);
    const std::vector<std::int64_t> labels = random_labels(8, kClasses, seed);
    for (std::int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(accumulating.accumulated(), k);
      accumulating.set_input(
          "x", std::span(x).subspan(static_cast<std::size_t>(k * 2 * kInputs), 2 * kInputs));
      accumulating.set_input("labels",
                             std::span(labels).subspan(static_cast<std::size_t>(k * 2), 2));
      accumulating.step();
      if (update == 0 && k == 2) { EXPECT_EQ(all_parameters(accumulating), first); }
    }
    EXPECT_EQ(accumulating.accumulated(), 0);
    at_once.set_input("x", x);
    at_once.set_input("labels", labels);
    at_once.step();
    for (const std::string& name : at_once.parameters()) {
      const Literal a = accumulating.parameter(name), b = at_once.parameter(name);
      for (std::int64_t k = 0; k < a.numel(); ++k) EXPECT_NEAR(a.at(k), b.at(k), 1e-5) << name;
    }
  }
}

TEST(Session, a_short_window_is_applied_by_hand) {
  const zoo::Model micro = small_mlp(2), whole = small_mlp(2);
  const optim::Optimizer sgd = optim::sgd(0.1);
  Session accumulating =
      build_session(micro.graph, micro.loss, {.accumulation_steps = 4, .optimizer = sgd});
  Session at_once = build_session(whole.graph, whole.loss, {.optimizer = sgd});
  EXPECT_EQ(message_of<TypeError>([&] { accumulating.apply(); }),
            "apply: nothing was accumulated since the last update");
  EXPECT_EQ(message_of<TypeError>([&] { at_once.apply(); }),
            "apply: this session does not accumulate; build it with accumulation_steps above 1, "
            "or with split_update");
  give_batch(accumulating.plan("accumulate"), 2, 1);
  give_batch(at_once.plan("step"), 2, 1);
  accumulating.step();
  accumulating.apply();
  at_once.step();
  EXPECT_EQ(accumulating.accumulated(), 0);
  for (const std::string& name : at_once.parameters()) {
    const Literal a = accumulating.parameter(name), b = at_once.parameter(name);
    for (std::int64_t k = 0; k < a.numel(); ++k) EXPECT_NEAR(a.at(k), b.at(k), 1e-6) << name;
  }
}

TEST(Session, factors_of_parameter_groups_can_be_set) {
  const zoo::Model model = small_mlp(8);
  Session session =
      build_session(model.graph, model.loss,
                    {.optimizer = optim::sgd(0.1),
                     .training = {.groups = {{.pattern = "fc1.*", .lr_factor = 0.5},
                                             {.pattern = "fc2.bias", .frozen = true}}}});
  EXPECT_EQ(session.learning_rate_factor("fc1.*"), 0.5);
  session.set_learning_rate_factor("fc1.*", 0);
  const Literal fc1 = session.parameter("fc1.weight"), fc2 = session.parameter("fc2.weight");
  train(session, 1);
  EXPECT_EQ(session.parameter("fc1.weight"), fc1);
  EXPECT_NE(session.parameter("fc2.weight"), fc2);
  EXPECT_EQ(message_of<TypeError>([&] { session.set_learning_rate_factor("fc1*", 1); }),
            "no parameter group was declared as 'fc1*'; did you mean 'fc1.*'?; groups are given by "
            "the option `training.groups` when the session is built");
  EXPECT_EQ(message_of<TypeError>([&] { session.set_learning_rate_factor("fc2.bias", 1); }),
            "the parameter group 'fc2.bias' is frozen: it has no factor");
}

TEST(Session, values_and_gradients_are_kept_if_they_are_asked_for) {
  const zoo::Model model = small_mlp(8);
  Session plain = build_session(model.graph, model.loss, {.optimizer = optim::sgd(0.1)});
  EXPECT_EQ(message_of<TypeError>([&] { plain.gradient("fc1.weight"); }),
            "the gradient of 'fc1.weight' was not kept: build the session with observe_gradients = "
            "true");
  EXPECT_EQ(message_of<TypeError>([&] { plain.gradient("fc1.wight"); }),
            "the session has no parameter named 'fc1.wight'; did you mean 'fc1.weight'?");
  EXPECT_EQ(message_of<TypeError>([&] { plain.observed("logits"); }),
            "'logits' is not observed; name the values to keep in the option `observe` when the "
            "session is built");
  Session open = build_session(model.graph, model.loss,
                               {.observe = {{"scores", model.logits}},
                                .observe_gradients = true,
                                .optimizer = optim::sgd(0.1)});
  const Literal before = open.parameter("fc1.bias");
  train(open, 1);
  EXPECT_EQ(open.observed("scores"), open.output("logits"));
  const Literal gradient = open.gradient("fc1.bias"), after = open.parameter("fc1.bias");
  for (std::int64_t k = 0; k < after.numel(); ++k)
    EXPECT_NEAR(after.at(k), before.at(k) - 0.1 * gradient.at(k), 1e-6);
}

TEST(Session, memory_and_kernels_can_be_listed) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.01)});
  const SessionMemory memory = session.memory_summary();
  EXPECT_GE(memory.parameters, 4 * (16 * 20 + 16 + 5 * 16 + 5));
  EXPECT_GE(memory.states, 2 * 4 * (16 * 20 + 16 + 5 * 16 + 5));
  EXPECT_GE(memory.inputs, 4 * 8 * kInputs + 8 * 8);
  EXPECT_EQ(memory.total(), memory.parameters + memory.states + memory.inputs + memory.outputs +
                                memory.temporaries + memory.scratch + memory.constants +
                                memory.prepared);
  EXPECT_THAT(memory.text(), HasSubstr("parameters"));
  ASSERT_FALSE(session.kernels().empty());
  session.set_timing(true);
  train(session, 3);
  session.set_timing(false);
  train(session, 1);
  for (const KernelInfo& kernel : session.kernels()) {
    EXPECT_EQ(kernel.plan, "step");
    EXPECT_EQ(kernel.runs, 3);
    EXPECT_GE(kernel.milliseconds, 0);
    EXPECT_GT(kernel.items, 0);
    EXPECT_FALSE(kernel.unit.empty());
  }
}

TEST(Session, inputs_without_a_value_are_listed) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss);
  EXPECT_EQ(
      message_of<TypeError>([&] { session.step(); }),
      "plan 'step' cannot run: 2 inputs without a value: 'x' f32[8,20] (for 'logits', 'loss', "
      "'grad.fc1.weight' and 3 more), 'labels' i64[8] (for 'loss', 'grad.fc1.weight', "
      "'grad.fc1.bias' and 2 more)");
  EXPECT_EQ(message_of<TypeError>([&] { session.loss(); }),
            "output 'loss' of plan 'step' has no value before the first run");
}

TEST(Session, inputs_that_nothing_depends_on_are_checked_and_left_out) {
  Graph graph;
  const Tensor x = graph.input("x", {2});
  graph.input("weights", {3});
  graph.output("y", x * 2.0);
  Session session = build_inference_session(graph);
  EXPECT_THAT(session.inputs(), ElementsAre("x"));
  session.set_input("x", std::vector<float>{1, 2});
  session.set_input("weights", std::vector<float>{1, 2, 3});
  session.set_input("weights", Literal::floats({3}, {1, 2, 3}));
  session.step();
  EXPECT_EQ(session.output("y").at(1), 4);
  EXPECT_THAT(message_of<TypeError>([&] { session.set_input("weights", std::vector<float>{1}); }),
              HasSubstr("input 'weights'"));
  EXPECT_EQ(message_of<TypeError>([&] { session.set_input("weight", std::vector<float>{1}); }),
            "plan 'step' has no input named 'weight'");
}

TEST(Session, a_moved_session_keeps_its_plans) {
  const zoo::Model model = small_mlp(8);
  Session session = build_session(model.graph, model.loss);
  const SessionPlan step = session.plan("step");
  Session moved = std::move(session);
  give_batch(step, 8, 1);
  moved.step();
  EXPECT_EQ(step.output_scalar("loss"), moved.loss());
}

}  // namespace
}  // namespace pantala::session_test
