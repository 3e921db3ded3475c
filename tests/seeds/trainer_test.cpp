// Section 1 of the checklist: the trainer; and what section 5 says of compiled accumulation.
#include "pantala/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

#include "io/file.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/numbers.h"
#include "support/temporary.h"
#include "support/trace_file.h"
#include "support/trainer_case.h"

namespace pantala::tests::trainer_test {
namespace {

using namespace tests;  // NOLINT: the tests' own words
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Trainer small_trainer(const optim::Optimizer& optimizer = optim::sgd(0.01), TrainConfig config = {},
                      std::int64_t batch = 4) {
  config.optimizer = optimizer;
  return Trainer(session_of(mlp_graph(batch, Phase::training), optimizer), std::move(config));
}

// Everything that it is told, as text.
class Recorder : public MetricCallback {
 public:
  void on_step(const StepMetrics& m) override {
    events.push_back(fmt::format("step {} {}", m.epoch, m.step));
    steps.push_back(m);
  }
  void on_epoch(const EpochStats& s) override {
    events.push_back(fmt::format("epoch {}", s.epoch));
    epochs.push_back(s);
  }
  std::vector<std::string> events;
  std::vector<StepMetrics> steps;
  std::vector<EpochStats> epochs;
};

TEST(Trainer, T01_defaults) {
  const TrainConfig config;
  EXPECT_EQ(config.log_interval, 100);
  EXPECT_EQ(config.data_input, "x");
  EXPECT_EQ(config.label_input, "labels");
}

TEST(Trainer, T02_a_default_config_trains_with_plain_sgd_at_a_hundredth) {
  const TrainConfig config;
  EXPECT_EQ(config.optimizer, optim::sgd(0.01));
  // The session's own rate was another one: d/dw of w * mean(x) is mean(x) = 3.
  Trainer trainer(session_of(mean_graph(2, Phase::training), optim::sgd(0.5)));
  FixedLoader loader({constant_batch(2, 3)});
  trainer.train(loader, 1);
  EXPECT_NEAR(trainer.session().parameter("w").at(0), 1 - 0.01 * 3, 1e-7);
}

TEST(Trainer, T03_optimizers_are_values_that_hold_exactly_what_they_were_given) {
  const optim::Optimizer sgd = optim::sgd(0.1), adam = optim::adam(0.2);
  EXPECT_EQ(sgd.lr(), 0.1);
  EXPECT_EQ(adam.lr(), 0.2);
  EXPECT_EQ(adam.value("beta1"), 0.9);
  EXPECT_EQ(adam.value("beta2"), 0.999);
  EXPECT_EQ(adam.value("eps"), 1e-8);
  const optim::Optimizer copy = adam;
  EXPECT_EQ(copy, adam);
  std::ostringstream out;
  out << adam;
  EXPECT_THAT(out.str(), AllOf(HasSubstr("adam"), HasSubstr("lr=0.2")));
}

TEST(Trainer, T04_the_rate_has_one_home) {
  // The optimizer's rate is what the session trains with; there is nowhere else to write one.
  Trainer trainer = small_trainer(optim::adam(0.125));
  EXPECT_EQ(trainer.config().optimizer.lr(), 0.125);
  EXPECT_EQ(trainer.session().learning_rate(), 0.125);
  FixedLoader loader(random_batches(2, 4));
  trainer.train(loader, 1);
  EXPECT_EQ(trainer.session().learning_rate(), 0.125);
}

TEST(Trainer, T05_scalars_of_the_compiled_kind_apply_and_other_kinds_are_refused) {
  const Graph graph = mlp_graph(4, Phase::training);
  Trainer trainer(session_of(graph, optim::adam(0.5)),
                  {.optimizer = optim::adam(0.25, {.beta1 = 0.5, .eps = 1e-3})});
  EXPECT_EQ(trainer.session().scalar("optim.lr"), 0.25);
  EXPECT_EQ(trainer.session().scalar("optim.beta1"), 0.5);
  EXPECT_EQ(trainer.session().scalar("optim.eps"), 1e-3);
  EXPECT_THAT(message_of<TypeError>([&] {
                Trainer other(session_of(graph, optim::adam(0.5)), {.optimizer = optim::sgd(0.1)});
              }),
              AllOf(HasSubstr("sgd"), HasSubstr("adam")));
  // Equal scalars do not make it the same kind.
  EXPECT_THAT(message_of<TypeError>([&] {
                Trainer other(session_of(graph, optim::adam()), {.optimizer = optim::adamw()});
              }),
              AllOf(HasSubstr("adamw"), HasSubstr("adam(")));
}

TEST(Trainer, T06_metrics_are_copyable_aggregates) {
  static_assert(std::is_aggregate_v<StepMetrics> && std::is_copy_constructible_v<StepMetrics>);
  static_assert(std::is_aggregate_v<EpochStats> && std::is_copy_constructible_v<EpochStats>);
  const StepMetrics step{1, 2, 0.5};
  EXPECT_EQ(step.epoch, 1);
  EXPECT_EQ(step.step, 2);
  EXPECT_EQ(step.loss, 0.5);
  const EpochStats stats{3, 0.42f, 100};
  EXPECT_EQ(stats.epoch, 3);
  EXPECT_EQ(stats.avg_loss, 0.42f);
  EXPECT_EQ(stats.steps, 100);
}

TEST(Trainer, T07_the_final_loss_is_the_last_epochs_average) {
  TrainHistory history;
  EXPECT_EQ(history.final_loss(), std::nullopt);
  history.epochs = {{0, 2.5, 10}, {1, 1.2, 10}};
  EXPECT_EQ(history.final_loss(), 1.2);
}

TEST(Trainer, T08_no_epochs_change_nothing) {
  Trainer trainer = small_trainer();
  const auto before = everything_in(trainer.session());
  const auto recorder = std::make_shared<Recorder>();
  trainer.add_callback(recorder);
  FixedLoader loader(random_batches(3, 4));
  EXPECT_THAT(trainer.train(loader, 0).epochs, IsEmpty());
  EXPECT_EQ(everything_in(trainer.session()), before);
  EXPECT_THAT(recorder->events, IsEmpty());
}

TEST(Trainer, T09_the_history_is_what_on_epoch_received) {
  Trainer trainer = small_trainer();
  const auto recorder = std::make_shared<Recorder>();
  trainer.add_callback(recorder);
  FixedLoader loader(random_batches(3, 4));
  const TrainHistory history = trainer.train(loader, 3);
  ASSERT_THAT(history.epochs, SizeIs(3));
  EXPECT_EQ(history.epochs, recorder->epochs);
  for (std::int64_t k = 0; k < 3; ++k)
    EXPECT_EQ(history.epochs[static_cast<std::size_t>(k)].epoch, k);
  EXPECT_EQ(history.final_loss(), history.epochs[2].avg_loss);
}

TEST(Trainer, T10_a_second_call_numbers_from_0_and_carries_on) {
  Trainer twice = small_trainer(optim::adam(0.01)), once = small_trainer(optim::adam(0.01));
  FixedLoader loader(random_batches(3, 4));
  twice.train(loader, 2);
  const TrainHistory second = twice.train(loader, 2);
  once.train(loader, 4);
  ASSERT_THAT(second.epochs, SizeIs(2));
  EXPECT_EQ(second.epochs[0].epoch, 0);
  EXPECT_EQ(second.epochs[1].epoch, 1);
  expect_same_bits(twice.session(), once.session());
  EXPECT_EQ(twice.session().state("optim.step"), Literal::integer(12));
}

TEST(Trainer, T11_only_the_shuffle_depends_on_the_number_of_the_epoch) {
  Trainer a = small_trainer(optim::adam(0.01)), b = small_trainer(optim::adam(0.01));
  FixedLoader loader(random_batches(3, 4));
  const EpochStats stats = a.train_epoch(loader, 7), other = b.train_epoch(loader, 0);
  EXPECT_EQ(stats.epoch, 7);
  EXPECT_EQ(stats.steps, 3);
  EXPECT_EQ(stats.avg_loss, other.avg_loss);
  EXPECT_THAT(loader.shuffles, ElementsAre(7, 0));
  expect_same_bits(a.session(), b.session());
}

// The items in the order in which an epoch gives them, by their labels.
std::vector<std::int64_t> order_of(data::Loader& loader, std::uint64_t epoch) {
  loader.shuffle(epoch);
  std::vector<std::int64_t> order;
  while (const auto batch = loader.next_batch()) {
    const auto& labels = std::get<std::vector<std::int64_t>>(batch->labels.values);
    order.insert(order.end(), labels.begin(), labels.end());
  }
  return order;
}

data::Dataset numbered_items(std::int64_t count) {
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < count; ++k) labels.push_back(k);
  return data::make_dataset({{count, 1}, std::vector<float>(static_cast<std::size_t>(count))},
                            {{count}, std::move(labels)});
}

TEST(Trainer, T12_every_epoch_reshuffles_by_seed_and_epoch) {
  Trainer trainer = small_trainer();
  FixedLoader recorded(random_batches(2, 4));
  trainer.train(recorded, 3);
  EXPECT_THAT(recorded.shuffles, ElementsAre(0, 1, 2));

  const data::Dataset items = numbered_items(40);
  const auto loader = data::make_loader(items, {.batch_size = 8, .seed = 5}),
             again = data::make_loader(items, {.batch_size = 8, .seed = 5}),
             other = data::make_loader(items, {.batch_size = 8, .seed = 6});
  const auto first = order_of(*loader, 0), second = order_of(*loader, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(order_of(*again, 0), first);
  EXPECT_EQ(order_of(*again, 1), second);
  EXPECT_NE(order_of(*other, 0), first);
}

TEST(Trainer, T13_loaders_end_and_give_the_same_order_again_after_a_reset) {
  const auto loader = data::make_loader(numbered_items(10), {.batch_size = 4, .seed = 1});
  loader->shuffle(3);
  const auto read = [&] {
    std::vector<data::Batch> batches;
    while (auto batch = loader->next_batch()) batches.push_back(*std::move(batch));
    return batches;
  };
  const std::vector<data::Batch> first = read();
  ASSERT_THAT(first, SizeIs(3));
  EXPECT_EQ(first[2].items(), 2);
  EXPECT_EQ(loader->next_batch(), std::nullopt);
  loader->reset();
  const std::vector<data::Batch> second = read();
  ASSERT_THAT(second, SizeIs(3));
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(second[k].data, first[k].data);
    EXPECT_EQ(second[k].labels, first[k].labels);
  }
}

TEST(Trainer, T14_an_epoch_is_the_loop_written_by_hand) {
  const std::vector<data::Batch> batches = random_batches(3, 4);
  Trainer trainer = small_trainer(optim::adam(0.02));
  const auto history = std::make_shared<LossHistory>();
  trainer.add_callback(history);
  FixedLoader loader(batches);
  trainer.train(loader, 1);

  Session session = session_of(mlp_graph(4, Phase::training), optim::adam(0.02));
  std::vector<double> losses;
  for (const data::Batch& batch : batches) {
    session.set_input("x", batch.data.elements());
    session.set_input("labels", batch.labels.elements());
    session.step();
    session.wait();
    losses.push_back(session.loss());
  }
  expect_same_bits(trainer.session(), session);
  EXPECT_EQ(history->losses, losses);
}

TEST(Trainer, T15_a_steps_loss_is_that_before_its_update) {
  const data::Batch batch = random_batch(4, 1);
  Session inference = build_inference_session(mlp_graph(4, Phase::evaluation));
  inference.set_input("x", batch.data.elements());
  inference.set_input("labels", batch.labels.elements());
  inference.step();
  Trainer trainer = small_trainer(optim::sgd(1.0));
  const auto metrics = trainer.step(batch);
  ASSERT_TRUE(metrics);
  EXPECT_NEAR(metrics->loss, inference.output_scalar("loss"), 1e-6);
  EXPECT_LT(trainer.step(batch)->loss, metrics->loss);
}

TEST(Trainer, T16_the_average_of_equal_batches_is_the_plain_mean) {
  Trainer trainer(session_of(mean_graph(2, Phase::training), optim::sgd(0.0)),
                  {.optimizer = optim::sgd(0.0)});
  FixedLoader loader({constant_batch(2, 1), constant_batch(2, 2), constant_batch(2, 6)});
  const auto losses = std::make_shared<LossHistory>();
  trainer.add_callback(losses);
  EXPECT_EQ(trainer.train_epoch(loader, 0).avg_loss, 3);
  EXPECT_THAT(losses->losses, ElementsAre(1, 2, 6));
}

TEST(Trainer, T17_with_a_short_last_batch_the_average_is_over_items_in_double) {
  Trainer trainer(mean_graph, 4, {.optimizer = optim::sgd(0.0)});
  FixedLoader loader({constant_batch(4, 1), constant_batch(4, 2), constant_batch(1, 6)});
  const EpochStats stats = trainer.train_epoch(loader, 0);
  EXPECT_EQ(stats.avg_loss, (4 * 1 + 4 * 2 + 1 * 6) / 9.0);
  EXPECT_EQ(stats.steps, 3);
  // In float a large sum would swallow the small terms.
  FixedLoader large({constant_batch(4, 0x1p26F), constant_batch(4, 1), constant_batch(4, 1)});
  EXPECT_EQ(trainer.train_epoch(large, 0).avg_loss, (0x1p26 + 2) / 3);
}

TEST(Trainer, T18_steps_are_optimizer_updates) {
  FixedLoader loader(random_batches(5, 4));
  Trainer plain = small_trainer();
  EXPECT_EQ(plain.train_epoch(loader, 0).steps, 5);
  Trainer accumulating(mlp_graph, 4, {.optimizer = optim::sgd(0.1)}, {.accumulation_steps = 2});
  EXPECT_EQ(accumulating.train_epoch(loader, 0).steps, 3);  // the last one of one micro-batch
  EXPECT_EQ(accumulating.session().state("optim.step"), Literal::integer(3));
}

TEST(Trainer, T19_a_loader_without_batches_changes_nothing) {
  Trainer trainer = small_trainer();
  const auto before = everything_in(trainer.session());
  FixedLoader loader({});
  const TrainHistory history = trainer.train(loader, 1);
  EXPECT_THAT(history.epochs, ElementsAre(EpochStats{0, 0.0, 0}));
  EXPECT_EQ(everything_in(trainer.session()), before);
}

TEST(Trainer, T20_step_lines_at_the_interval_in_every_epoch) {
  Trainer trainer = small_trainer(optim::sgd(0.01), {.log_interval = 3});
  FixedLoader loader(random_batches(7, 4));
  const auto lines = logged(logging::Level::info, [&] { trainer.train(loader, 2); });
  std::vector<std::string> steps;
  for (const std::string& line : lines)
    if (line.find("step ") != std::string::npos && line.find(": loss") != std::string::npos &&
        line.find("steps") == std::string::npos)
      steps.push_back(line.substr(0, line.find(':')));
  EXPECT_THAT(steps, ElementsAre("epoch 0 step 0", "epoch 0 step 3", "epoch 0 step 6",
                                 "epoch 1 step 0", "epoch 1 step 3", "epoch 1 step 6"));
}

TEST(Trainer, T21_without_step_lines_there_is_one_line_per_epoch) {
  Trainer trainer(session_of(mean_graph(2, Phase::training), optim::sgd(0.0)),
                  {.optimizer = optim::sgd(0.0), .log_interval = 0});
  FixedLoader loader({constant_batch(2, 1), constant_batch(2, 0.5F)});
  const auto lines = logged(logging::Level::info, [&] { trainer.train(loader, 2); });
  EXPECT_THAT(lines, ElementsAre("epoch 0: loss 0.7500, 2 steps", "epoch 1: loss 0.7500, 2 steps"));
}

TEST(Trainer, T22_on_step_fires_once_per_optimizer_step_in_order) {
  Trainer trainer = small_trainer();
  const auto recorder = std::make_shared<Recorder>();
  trainer.add_callback(recorder);
  FixedLoader loader(random_batches(2, 4));
  trainer.train(loader, 2);
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers;
  for (const StepMetrics& m : recorder->steps) numbers.emplace_back(m.epoch, m.step);
  EXPECT_THAT(numbers,
              ElementsAre(std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)));

  Trainer accumulating(mlp_graph, 4, {.optimizer = optim::sgd(0.1)}, {.accumulation_steps = 3});
  const auto windows = std::make_shared<Recorder>();
  accumulating.add_callback(windows);
  FixedLoader five(random_batches(5, 4));
  accumulating.train(five, 1);
  EXPECT_THAT(windows->events, ElementsAre("step 0 0", "step 0 1", "epoch 0"));
}

TEST(Trainer, T23_on_epoch_fires_once_after_the_last_on_step) {
  Trainer trainer = small_trainer();
  const auto recorder = std::make_shared<Recorder>();
  trainer.add_callback(recorder);
  FixedLoader loader(random_batches(2, 4));
  trainer.train(loader, 2);
  EXPECT_THAT(recorder->events,
              ElementsAre("step 0 0", "step 0 1", "epoch 0", "step 1 0", "step 1 1", "epoch 1"));
}

TEST(Trainer, T24_hooks_default_to_nothing) {
  struct StepsOnly : MetricCallback {
    void on_step(const StepMetrics&) override { ++count; }
    int count = 0;
  };
  struct EpochsOnly : MetricCallback {
    void on_epoch(const EpochStats&) override { ++count; }
    int count = 0;
  };
  struct Neither : MetricCallback {};
  Trainer trainer = small_trainer();
  const auto steps = std::make_shared<StepsOnly>();
  const auto epochs = std::make_shared<EpochsOnly>();
  trainer.add_callback(steps);
  trainer.add_callback(epochs);
  trainer.add_callback(std::make_shared<Neither>());
  FixedLoader loader(random_batches(3, 4));
  trainer.train(loader, 2);
  EXPECT_EQ(steps->count, 6);
  EXPECT_EQ(epochs->count, 2);
}

TEST(Trainer, T25_loss_history_has_all_step_losses) {
  Trainer trainer = small_trainer();
  const auto history = std::make_shared<LossHistory>();
  const auto recorder = std::make_shared<Recorder>();
  EXPECT_THAT(history->losses, IsEmpty());
  trainer.add_callback(history);
  trainer.add_callback(recorder);
  FixedLoader loader(random_batches(5, 4));
  trainer.train(loader, 2);
  ASSERT_THAT(history->losses, SizeIs(10));
  for (std::size_t k = 0; k < 10; ++k) EXPECT_EQ(history->losses[k], recorder->steps[k].loss);
}

TEST(Trainer, T26_the_session_is_const_and_mutable) {
  Trainer trainer(session_of(mean_graph(2, Phase::training), optim::sgd(0.01)));
  const Trainer& constant = trainer;
  static_assert(std::is_same_v<decltype(constant.session()), const Session&>);
  static_assert(std::is_same_v<decltype(trainer.session()), Session&>);
  trainer.session().set_parameter("w", Literal::floats({1}, {5}));
  EXPECT_EQ(constant.session().parameter("w"), Literal::floats({1}, {5}));
  EXPECT_EQ(trainer.step(constant_batch(2, 3))->loss, 15);
}

TEST(Trainer, T27_into_session_hands_over_the_trained_session) {
  Trainer trainer = small_trainer(optim::adam(0.1));
  FixedLoader loader(random_batches(3, 4));
  trainer.train(loader, 1);
  const auto trained = everything_in(trainer.session());
  Session session = std::move(trainer).into_session();
  EXPECT_EQ(everything_in(session), trained);
  session.set_input("x", random_batch(4, 9).data.elements());
  session.set_input("labels", random_batch(4, 9).labels.elements());
  session.step();
  EXPECT_EQ(session.state("optim.step"), Literal::integer(4));
}

TEST(Trainer, T28_a_loss_that_is_not_finite_stops_before_the_weights_change) {
  std::vector<data::Batch> batches = random_batches(3, 4);
  std::get<std::vector<float>>(batches[1].data.values)[5] = std::nanf("");
  Trainer trainer = small_trainer(optim::adam(0.1)), reference = small_trainer(optim::adam(0.1));
  const auto history = std::make_shared<LossHistory>();
  trainer.add_callback(history);
  FixedLoader loader(batches);
  EXPECT_THAT(message_of<DivergenceError>([&] { trainer.train(loader, 1); }),
              AllOf(HasSubstr("loss is nan"), HasSubstr("step 1")));
  reference.step(batches[0]);
  expect_same_bits(trainer.session(), reference.session());
  EXPECT_THAT(history->losses, SizeIs(1));
  ASSERT_NE(trainer.failed_batch(), nullptr);
  EXPECT_EQ(trainer.failed_batch()->labels, batches[1].labels);
}

// --- accumulation, compiled

// The gradient of w is the mean of x.
Graph gradient_graph(std::int64_t batch, Phase) { return mean_graph(batch, Phase::training); }

TEST(Trainer, T36_training_adds_spans_of_epochs_and_steps) {
  Trainer trainer = small_trainer();
  trainer.session().set_timing(true);
  FixedLoader loader(random_batches(3, 4));
  trainer.train(loader, 2);
  const TemporaryFolder folder;
  trainer.session().write_trace(folder.path() / "trace.json");
  const TraceFile trace(io::read_file(folder.path() / "trace.json"));
  trace.expect_nesting();
  const std::vector<TraceSpan> epochs = trace.named("steps", "epoch"),
                               steps = trace.named("steps", "step");
  ASSERT_THAT(epochs, SizeIs(2));
  ASSERT_THAT(steps, SizeIs(6));
  for (std::size_t k = 0; k < steps.size(); ++k) {
    EXPECT_GE(steps[k].begin, epochs[k / 3].begin);
    EXPECT_LE(steps[k].end, epochs[k / 3].end);
  }
}

TEST(CompiledAccumulation, G30_the_plan_accumulates_in_f32) {
  // The sum of gradients 2^24 + 1 has no f32: the one is lost, unlike in the component.
  Trainer trainer(gradient_graph, 1, {.optimizer = optim::sgd(0x1p-24)}, {.accumulation_steps = 2});
  EXPECT_EQ(trainer.session().state("accum.grad.w").dtype(), f32);
  trainer.step(constant_batch(1, 0x1p24F));
  trainer.step(constant_batch(1, 1));
  EXPECT_EQ(trainer.session().state("accum.grad.w"), Literal::floats({1}, {0x1p24}));
  EXPECT_EQ(trainer.session().parameter("w"), Literal::floats({1}, {0.5}));
}

TEST(CompiledAccumulation, G31_names_and_their_order_change_no_bit) {
  // The same two parameters, declared and named in either order.
  const auto model = [](bool swapped) {
    return [swapped](std::int64_t batch, Phase) {
      Graph g;
      const Tensor x = g.input("x", {batch, kInputs}), labels = g.input("labels", {batch}, i64);
      const std::string first = swapped ? "z" : "a", second = swapped ? "a" : "z";
      const Tensor w1 = g.parameter(first, {8, kInputs}, init::constant(0.25)),
                   w2 = g.parameter(second, {kClasses, 8}, init::constant(-0.125));
      g.output("loss", cross_entropy(linear(tanh(linear(x, w1)), w2), labels));
      return g;
    };
  };
  std::vector<Literal> results[2];
  for (const bool swapped : {false, true}) {
    Trainer trainer(model(swapped), 4, {.optimizer = optim::adam(0.1)}, {.accumulation_steps = 2});
    FixedLoader loader(random_batches(4, 4));
    trainer.train(loader, 2);
    results[swapped] = {trainer.session().parameter(swapped ? "z" : "a"),
                        trainer.session().parameter(swapped ? "a" : "z")};
  }
  EXPECT_EQ(results[0], results[1]);
  // The same names in the same graph: the same bits, run after run.
  Trainer a(mlp_graph, 4, {.optimizer = optim::adam(0.1)}, {.accumulation_steps = 2}),
      b(mlp_graph, 4, {.optimizer = optim::adam(0.1)}, {.accumulation_steps = 2});
  FixedLoader loader(random_batches(4, 4));
  a.train(loader, 2);
  b.train(loader, 2);
  expect_same_bits(a.session(), b.session());
}

// Two epochs over `items` items as micro-batches of `size`, `steps` of them a window.
Session train_split(std::int64_t items, std::int64_t size, std::int64_t steps,
                    std::vector<double>* losses) {
  Trainer trainer(mlp_graph, size, {.optimizer = optim::sgd(0.2, {.momentum = 0.9})},
                  {.accumulation_steps = steps});
  const auto loader = data::make_loader(random_dataset(items, 3),
                                        {.batch_size = size, .shuffle = false, .threads = 0});
  const auto history = std::make_shared<LossHistory>();
  trainer.add_callback(history);
  trainer.train(*loader, 2);
  *losses = history->losses;
  return std::move(trainer).into_session();
}

TEST(CompiledAccumulation, G32_every_split_of_a_batch_trains_alike) {
  // 16 items, and 41 with a short last batch and a window that the epoch's end cuts off.
  for (const std::int64_t items : {16, 41}) {
    std::vector<double> whole_losses;
    const Session whole = train_split(items, 16, 1, &whole_losses);
    for (const auto& [size, steps] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {1, 16}}) {
      std::vector<double> losses;
      const Session split = train_split(items, size, steps, &losses);
      expect_close(losses, whole_losses, 1e-5);
      for (const std::string& name : whole.parameters())
        expect_close(split.parameter(name).to_doubles(), whole.parameter(name).to_doubles(), 2e-5);
    }
  }
}

// The loss is finite, the gradient of w is not: sqrt at 0.
Graph infinite_gradient_graph(std::int64_t batch, Phase) {
  Graph g;
  const Tensor x = g.input("x", {batch, 1});
  g.input("labels", {batch});
  const Tensor w = g.parameter("w", {1}, init::constant(1));
  g.output("loss", mean(sqrt(x * w)));
  return g;
}

TEST(CompiledAccumulation, G33_a_gradient_that_is_not_finite_by_option) {
  const data::Batch good = constant_batch(2, 4), bad = constant_batch(2, 0);
  for (const std::int64_t steps : {1, 2}) {
    const auto make = [&](NonFinite non_finite) {
      return Trainer(infinite_gradient_graph, 2,
                     {.optimizer = optim::sgd(0.1), .non_finite = non_finite},
                     {.accumulation_steps = steps});
    };
    Trainer strict = make(NonFinite::error);
    const auto before = everything_in(strict.session());
    EXPECT_THAT(message_of<DivergenceError>([&] { strict.step(bad); }),
                HasSubstr("a gradient is not finite"));
    EXPECT_EQ(everything_in(strict.session()), before);
    EXPECT_EQ(strict.state(), TrainerState{});

    // Left out and counted; the rest is as if it had never been there.
    Trainer skipping = make(NonFinite::skip), without = make(NonFinite::skip);
    for (const data::Batch* batch : {&good, &bad, &good}) skipping.step(*batch);
    for (int k = 0; k < 2; ++k) without.step(good);
    EXPECT_EQ(skipping.state().skipped, 1);
    EXPECT_EQ(skipping.state().global_steps, 2 / steps);
    expect_same_bits(skipping.session(), without.session());

    Trainer passing = make(NonFinite::propagate);
    for (const data::Batch* batch : {&good, &bad}) passing.step(*batch);
    EXPECT_EQ(passing.state().skipped, 0);
    EXPECT_FALSE(std::isfinite(passing.session().parameter("w").at(0)));
  }
}

}  // namespace
}  // namespace pantala::tests::trainer_test
