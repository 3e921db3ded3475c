// Steps that nobody waits for: the numbers are those of a session that waits for every step, a bad
// step changes nothing behind it, and errors are those of the step that they belong to.
#include <gmock/gmock.h>

#include <cmath>

#include "pantala/error.h"
#include "pantala/trainer.h"
#include "runtime/session_data.h"
#include "support/errors.h"
#include "support/trainer_case.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using testing::HasSubstr;
using tests::everything_in;
using tests::FixedLoader;
using tests::random_batch;
using tests::random_batches;

class StepsAhead : public OnVulkan {};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

data::Batch bad_batch(std::uint64_t seed) {
  data::Batch batch = random_batch(4, seed);
  std::get<std::vector<float>>(batch.data.values)[5] = kNan;
  return batch;
}

Session session_of(const Graph& graph, NonFiniteGuard guard, std::int64_t accumulation_steps = 1,
                   bool split_update = false) {
  return build_session(graph, graph.output("loss"),
                       {.device = test_device(),
                        .non_finite = guard,
                        .accumulation_steps = accumulation_steps,
                        .split_update = split_update,
                        .optimizer = optim::adam(0.05)},
                       {.seed = 3});
}

void begin(Session& session, const data::Batch& batch, double rate) {
  session.set_input("x", batch.data.elements());
  session.set_input("labels", batch.labels.elements());
  session.set_learning_rate(rate);
  session.step();
}

// Two sessions that hold the same: the same steps with and without somebody who asks for every
// loss.
void expect_the_same(Session& waiting, Session& ahead, const std::vector<data::Batch>& batches) {
  std::size_t most = 0;
  double rate = 0.05;
  for (const data::Batch& batch : batches) {
    begin(waiting, batch, rate);
    waiting.loss();
    begin(ahead, batch, rate);
    most = std::max(most, ahead.data().ahead());
    rate *= 0.9;
  }
  EXPECT_EQ(waiting.data().ahead(), 0U);
  EXPECT_EQ(most, runtime::RunsAhead::kMost);
  EXPECT_EQ(ahead.last_step_finite(), waiting.last_step_finite());
  EXPECT_EQ(ahead.last_step_spoilt(), waiting.last_step_spoilt());
  EXPECT_EQ(ahead.output("loss"), waiting.output("loss"));
  EXPECT_EQ(ahead.accumulated(), waiting.accumulated());
  tests::expect_same_bits(ahead, waiting);
}

void expect_the_same(const Graph& graph, NonFiniteGuard guard,
                     const std::vector<data::Batch>& batches) {
  Session waiting = session_of(graph, guard), ahead = session_of(graph, guard);
  expect_the_same(waiting, ahead, batches);
}

TEST_F(StepsAhead, compute_what_steps_that_are_waited_for_compute) {
  for (const NonFiniteGuard guard : {NonFiniteGuard::none, NonFiniteGuard::gradients})
    expect_the_same(tests::mlp_graph(4, Phase::training), guard, random_batches(9, 4));
  expect_the_same(tests::dropout_graph(4, Phase::training), NonFiniteGuard::watched,
                  random_batches(9, 4));
}

TEST_F(StepsAhead, behind_a_bad_one_change_nothing_until_it_is_known) {
  const Graph graph = tests::mlp_graph(4, Phase::training);
  for (const NonFiniteGuard guard : {NonFiniteGuard::loss, NonFiniteGuard::gradients}) {
    Session waiting = session_of(graph, guard), ahead = session_of(graph, guard);
    for (const std::vector<std::size_t>& bad :
         {std::vector<std::size_t>{0}, {3}, {3, 4}, {2, 4, 8}, {8}}) {
      std::vector<data::Batch> batches = random_batches(9, 4);
      for (const std::size_t k : bad) batches[k] = bad_batch(k);
      expect_the_same(waiting, ahead, batches);
    }
  }
}

// A window has one micro-batch less behind one that was bad: its update comes later.
TEST_F(StepsAhead, of_windows_change_nothing_behind_a_bad_micro_batch) {
  const Graph graph = tests::dropout_graph(4, Phase::training);
  for (const std::int64_t steps : {1, 2, 3, 5}) {
    Session waiting = session_of(graph, NonFiniteGuard::gradients, steps, true),
            ahead = session_of(graph, NonFiniteGuard::gradients, steps, true);
    for (const std::vector<std::size_t>& bad :
         {std::vector<std::size_t>{}, {0}, {3}, {3, 4, 5}, {1, 4, 6, 10}, {2, 5, 8, 11}}) {
      SCOPED_TRACE(testing::PrintToString(bad) + " of windows of " + std::to_string(steps));
      std::vector<data::Batch> batches = random_batches(12, 4);
      for (const std::size_t k : bad) batches[k] = bad_batch(k);
      expect_the_same(waiting, ahead, batches);
    }
  }
}

TEST_F(StepsAhead, of_windows_that_are_ended_by_hand) {
  const Graph graph = tests::mlp_graph(4, Phase::training);
  Session waiting = session_of(graph, NonFiniteGuard::gradients, 4),
          ahead = session_of(graph, NonFiniteGuard::gradients, 4);
  for (Session* session : {&waiting, &ahead}) {
    for (std::uint64_t k = 0; k < 20; ++k) {
      const data::Batch batch = k == 6 || k == 13 ? bad_batch(k) : random_batch(4, k);
      session->set_input("x", batch.data.elements());
      session->set_input("labels", batch.labels.elements());
      session->accumulate();
      if (session == &waiting) session->wait();
      if (k % 7 == 6) session->apply();
    }
    EXPECT_EQ(session->accumulated(), 6);
  }
  EXPECT_EQ(ahead.gradient("fc1.weight"), waiting.gradient("fc1.weight"));
  tests::expect_same_bits(ahead, waiting);
}

// Every gradient is a number, and the norm of their sum is not.
TEST_F(StepsAhead, of_windows_change_nothing_behind_an_update_that_is_bad) {
  const Graph graph = tests::mean_graph(2, Phase::training);
  std::vector<Session> sessions;
  for (int k = 0; k < 2; ++k)
    sessions.push_back(build_session(graph, graph.output("loss"),
                                     {.device = test_device(),
                                      .non_finite = NonFiniteGuard::gradients,
                                      .accumulation_steps = 2,
                                      .normalize = false,
                                      .optimizer = optim::adam(0.05)}));
  for (Session& session : sessions)
    for (std::uint64_t k = 0; k < 14; ++k) {
      const bool large = k == 4 || k == 5 || k == 11;
      session.set_input("x", tests::constant_batch(2, large ? 5e18F : 0.5F).data.elements());
      session.set_input("labels", std::vector<float>(2));
      session.step();
      if (&session == &sessions[0]) { EXPECT_EQ(session.last_step_finite(), k != 5) << k; }
    }
  tests::expect_same_bits(sessions[1], sessions[0]);
}

TEST_F(StepsAhead, go_through_staging_memory_where_the_host_reaches_no_other) {
  device::vulkan::faults().staging = true;
  std::vector<data::Batch> batches = random_batches(9, 4);
  batches[4] = bad_batch(4);
  expect_the_same(tests::mlp_graph(4, Phase::training), NonFiniteGuard::gradients, batches);
}

// Some steps set one input, some none.
TEST_F(StepsAhead, keep_inputs_that_are_not_set_again) {
  const Graph graph = tests::mlp_graph(4, Phase::training);
  Session waiting = session_of(graph, NonFiniteGuard::loss),
          ahead = session_of(graph, NonFiniteGuard::loss);
  for (Session* session : {&waiting, &ahead})
    for (std::uint64_t k = 0; k < 24; ++k) {
      const data::Batch batch = k % 7 == 5 ? bad_batch(k) : random_batch(4, k);
      if (k == 0 || k % 3 != 1) session->set_input("x", batch.data.elements());
      if (k % 4 == 0) session->set_input("labels", batch.labels.elements());
      session->step();
      if (session == &waiting) session->loss();
    }
  tests::expect_same_bits(ahead, waiting);
}

// The loss of a table whose rows are chosen by a sum of inputs.
Graph table_graph() {
  Graph g;
  const Tensor table = g.parameter("table", {4, 2}, init::ones());
  const Tensor index = g.input("index", {3}, i64), shift = g.input("shift", {3}, i64);
  g.output("loss", sum(square(take(table, index + shift, 0))));
  return g;
}

TEST_F(StepsAhead, tell_of_an_index_out_of_range_which_step_has_met_it) {
  const Graph graph = table_graph();
  Session waiting = session_of(graph, NonFiniteGuard::loss),
          ahead = session_of(graph, NonFiniteGuard::loss);
  const auto step = [](Session& session, std::int64_t shift) {
    session.set_input("index", std::vector<std::int64_t>{0, 1, 2});
    session.set_input("shift", std::vector<std::int64_t>{0, 0, shift});
    session.step();
  };
  for (Session* session : {&waiting, &ahead}) step(*session, 1);
  waiting.wait();
  step(waiting, 2);
  EXPECT_THAT(tests::message_of<ValueError>([&] { waiting.wait(); }),
              testing::AllOf(HasSubstr("an index is out of range"),
                             testing::Not(HasSubstr("changed nothing"))));
  step(ahead, 2);
  step(ahead, 0);
  EXPECT_THAT(
      tests::message_of<ValueError>([&] { ahead.loss(); }),
      HasSubstr("out of range [0, 4) (in a step with 1 step behind it, which changed nothing"));
  tests::expect_same_bits(ahead, waiting);
  for (Session* session : {&waiting, &ahead}) step(*session, 0);
  tests::expect_same_bits(ahead, waiting);
}

// Looks at every step, so that all are waited for.
class Looker : public MetricCallback {
 public:
  void on_step(const StepMetrics& metrics) override { losses.push_back(metrics.loss); }
  std::vector<double> losses;
};

Trainer trainer_with(NonFinite non_finite, std::int64_t accumulation_steps = 1) {
  return Trainer(tests::dropout_graph, 4,
                 {.optimizer = optim::adam(0.05),
                  .rate_schedule = RateSchedule(CosineRate{.T_max = 60}),
                  .non_finite = non_finite},
                 {.device = test_device(), .accumulation_steps = accumulation_steps}, {.seed = 3});
}

void expect_told_the_same(const std::vector<data::Batch>& batches, NonFinite kind,
                          std::int64_t accumulation_steps = 1) {
  Trainer waiting = trainer_with(kind, accumulation_steps),
          ahead = trainer_with(kind, accumulation_steps);
  const auto looker = std::make_shared<Looker>();
  const auto history = std::make_shared<LossHistory>();
  waiting.add_callback(looker);
  ahead.add_callback(history);
  for (Trainer* trainer : {&waiting, &ahead}) {
    FixedLoader loader(batches);
    trainer->fit(loader, {.epochs = 2});
  }
  EXPECT_EQ(history->losses, looker->losses);
  EXPECT_EQ(ahead.state(), waiting.state());
  tests::expect_same_bits(ahead.session(), waiting.session());
}

TEST_F(StepsAhead, of_a_trainer_are_told_as_those_that_are_waited_for) {
  for (const bool skips : {true, false}) {
    std::vector<data::Batch> batches = random_batches(20, 4);
    batches.push_back(random_batch(2, 77));
    if (skips) batches[3] = bad_batch(3), batches[11] = bad_batch(11), batches[12] = bad_batch(12);
    expect_told_the_same(batches, skips ? NonFinite::skip : NonFinite::error);
  }
}

TEST_F(StepsAhead, of_windows_of_a_trainer_are_told_as_those_that_are_waited_for) {
  for (const std::int64_t steps : {2, 3, 4}) {
    std::vector<data::Batch> batches = random_batches(19, 4);
    batches[4] = bad_batch(4), batches[11] = bad_batch(11), batches[12] = bad_batch(12);
    expect_told_the_same(batches, NonFinite::skip, steps);
  }
}

TEST_F(StepsAhead, of_a_trainer_go_back_behind_a_step_that_diverges) {
  std::vector<data::Batch> batches = random_batches(20, 4);
  batches[13] = bad_batch(13);
  Trainer waiting = trainer_with(NonFinite::error), ahead = trainer_with(NonFinite::error);
  waiting.add_callback(std::make_shared<Looker>());
  std::vector<std::string> messages;
  for (Trainer* trainer : {&waiting, &ahead}) {
    FixedLoader loader(batches);
    messages.push_back(
        tests::message_of<DivergenceError>([&] { trainer->fit(loader, {.epochs = 1}); }));
    EXPECT_EQ(trainer->state().batches, 13);
    ASSERT_NE(trainer->failed_batch(), nullptr);
    EXPECT_TRUE(std::isnan(std::get<std::vector<float>>(trainer->failed_batch()->data.values)[5]));
  }
  EXPECT_THAT(messages[0], HasSubstr("step 13"));
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(ahead.state(), waiting.state());
  tests::expect_same_bits(ahead.session(), waiting.session());
}

}  // namespace
}  // namespace pantala::vulkan_tests
