// The trainer beyond the checklist: runs, validation, schedules, early stopping, averages,
// callbacks that change things, numbers that are not finite.
#include "pantala/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pantala/error.h"
#include "support/allocations.h"
#include "support/errors.h"
#include "support/numbers.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using namespace tests;  // NOLINT: the tests' own words
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Literals = std::vector<Literal>;

Literals parameters_of(const Session& session) {
  Literals values;
  for (const std::string& name : session.parameters()) values.push_back(session.parameter(name));
  return values;
}

template <class F>
class OnStep : public MetricCallback {
 public:
  explicit OnStep(F f) : f_(std::move(f)) {}
  void on_start(Trainer& trainer) override { trainer_ = &trainer; }
  void on_step(const StepMetrics& metrics) override { f_(*trainer_, metrics); }

 private:
  F f_;
  Trainer* trainer_ = nullptr;
};
template <class F>
std::shared_ptr<MetricCallback> on_step(F f) {
  return std::make_shared<OnStep<F>>(std::move(f));
}
template <class F>
class OnGradients : public MetricCallback {
 public:
  explicit OnGradients(F f) : f_(std::move(f)) {}
  void on_gradients(Session& session) override { f_(session); }

 private:
  F f_;
};
template <class F>
std::shared_ptr<MetricCallback> on_gradients(F f) {
  return std::make_shared<OnGradients<F>>(std::move(f));
}

// --- sizes
// The class of the sum of two inputs.
Graph two_inputs_graph(std::int64_t batch, Phase) {
  Graph g;
  const Tensor x = g.input("x", {batch, kInputs}), other = g.input("other", {batch, kInputs});
  const Tensor logits = nn::linear("fc", x + other, kClasses);
  g.output("logits", logits);
  g.output("loss", cross_entropy(logits, g.input("labels", {batch}, i64)));
  return g;
}

TEST(Trainer, batches_may_have_further_inputs) {
  std::vector<data::Batch> batches = random_batches(6, 8), plain = batches;
  for (std::size_t k = 0; k < batches.size(); ++k) {
    data::Array half = batches[k].data;
    for (float& value : std::get<std::vector<float>>(half.values)) value /= 2;
    batches[k].data = half;
    batches[k].more = {{"other", half}};
    plain[k].more = {{"other", {half.shape, std::vector<float>(8 * kInputs)}}};
  }
  std::vector<std::vector<double>> losses;
  for (const auto& given : {batches, plain}) {
    Trainer trainer(two_inputs_graph, 8, {.optimizer = optim::adam(0.01), .log_interval = 0});
    const auto history = std::make_shared<LossHistory>();
    trainer.add_callback(history);
    FixedLoader loader(given);
    trainer.fit(loader, {.epochs = 2, .validation = &loader});
    losses.push_back(history->losses);
  }
  ASSERT_THAT(losses[0], SizeIs(12));
  EXPECT_EQ(losses[0], losses[1]);  // x / 2 + x / 2 is x, to the bit
  EXPECT_LT(losses[0].back(), losses[0].front());
}

TEST(TrainerSizes, a_short_last_batch_needs_the_model_as_a_function) {
  Trainer trainer(session_of(mlp_graph(4, Phase::training), optim::sgd(0.01)));
  EXPECT_THAT(message_of<TypeError>([&] { trainer.step(random_batch(3, 0)); }),
              AllOf(HasSubstr("3 items"), HasSubstr("compiled for 4"), HasSubstr("drop_last"),
                    HasSubstr("function")));
  EXPECT_THAT(message_of<TypeError>([&] {
                FixedLoader loader({});
                trainer.evaluate(loader);
              }),
              HasSubstr("function of batch size and phase"));
  EXPECT_THAT(message_of<TypeError>([&] { trainer.step({{{0, kInputs}, {}}, {{0}, {}}}); }),
              HasSubstr("without items"));
  EXPECT_EQ(trainer.state(), TrainerState{});
}

TEST(TrainerSizes, a_short_last_batch_trains_as_a_session_of_its_size_would) {
  const std::vector<data::Batch> batches = {random_batch(4, 0), random_batch(3, 1)};
  const optim::Optimizer sgd = optim::sgd(0.5);  // without a state that both would need
  Trainer trainer(mlp_graph, 4, {.optimizer = sgd});
  for (const data::Batch& batch : batches) trainer.step(batch);
  Session first = session_of(mlp_graph(4, Phase::training), sgd);
  Session second = session_of(mlp_graph(3, Phase::training), sgd);
  for (Session* session : {&first, &second}) {
    const data::Batch& batch = batches[session == &first ? 0 : 1];
    session->set_input("x", batch.data.elements());
    session->set_input("labels", batch.labels.elements());
    if (session == &second)
      for (const std::string& name : first.parameters())
        second.set_parameter(name, first.parameter(name));
    session->step();
  }
  const Literals ours = parameters_of(trainer.session()), theirs = parameters_of(second);
  for (std::size_t k = 0; k < ours.size(); ++k)
    expect_close(ours[k].to_doubles(), theirs[k].to_doubles(), 1e-6);
}

TEST(TrainerSizes, compiled_plans_are_kept_in_a_folder) {
  const tests::TemporaryFolder folder;
  const TrainConfig config{.plan_cache = folder.path() / "plans"};
  Literals first;
  for (const bool again : {false, true}) {
    Trainer trainer(mlp_graph, 4, config);
    EXPECT_EQ(trainer.session().report().cached(), again);
    FixedLoader loader({random_batch(4, 0), random_batch(2, 1)});
    trainer.train(loader, 1);
    trainer.evaluate(loader);
    if (!again) first = parameters_of(trainer.session());
    EXPECT_EQ(parameters_of(trainer.session()), first);
  }
  // Two steps and two evaluations.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "plans"), {}), 4);
}

// --- what it refuses
TEST(TrainerErrors, say_what_is_wrong) {
  const auto refused = [](const ModelFactory& model, TrainConfig config,
                          const CompileOptions& options = {}) {
    return message_of<TypeError>([&] { Trainer trainer(model, 4, std::move(config), options); });
  };
  EXPECT_THAT(refused(mlp_graph, {.data_input = "X"}),
              AllOf(HasSubstr("no input 'X'"), HasSubstr("did you mean 'x'")));
  EXPECT_THAT(refused(mlp_graph, {.label_input = "label"}), HasSubstr("did you mean 'labels'"));
  EXPECT_THAT(refused(mlp_graph, {.loss_output = "los"}), HasSubstr("did you mean 'loss'"));
  EXPECT_THAT(refused(mlp_graph, {.log_interval = -1}), HasSubstr("log_interval"));
  EXPECT_THAT(refused({}, {}), HasSubstr("is empty"));
  EXPECT_THAT(refused([](std::int64_t, Phase phase) { return mlp_graph(7, phase); }, {}),
              AllOf(HasSubstr("f32[7,6]"), HasSubstr("must be 4")));
  EXPECT_THAT(
      refused(mlp_graph, {.rate_schedule = CosineRate{.T_max = 5}, .plateau = PlateauOptions{}}),
      HasSubstr("both set the rate"));
  EXPECT_THAT(refused(mlp_graph, {}, {.optimizer = optim::adam()}),
              AllOf(HasSubstr("sgd("), HasSubstr("adam(")));
  EXPECT_THAT(message_of<TypeError>([] {
                Trainer trainer(session_of(mlp_graph(4, Phase::training), optim::sgd(0.01)),
                                {.data_input = "y"});
              }),
              HasSubstr("its inputs are: x, labels"));
  EXPECT_THAT(message_of<TypeError>([] {
                Trainer trainer(session_of(mlp_graph(4, Phase::training), optim::sgd(0.01)),
                                {.non_finite = NonFinite::propagate});
              }),
              HasSubstr("NonFiniteGuard::none"));
  EXPECT_THAT(message_of<TypeError>([] {
                const Graph graph = mlp_graph(4, Phase::training);
                Trainer trainer(build_session(
                    graph, graph.output("loss"),
                    {.non_finite = NonFiniteGuard::none, .optimizer = optim::sgd(0.01)}));
              }),
              HasSubstr("propagate"));
}

TEST(TrainerErrors, options_of_fit_are_checked_before_anything_is_trained) {
  Trainer trainer(mlp_graph, 4);
  FixedLoader loader(random_batches(1, 4));
  const auto refused = [&](const FitOptions& options) {
    return message_of<TypeError>([&] { trainer.fit(loader, options); });
  };
  EXPECT_THAT(refused({.epochs = -1}), HasSubstr("epochs must be 0 or more, got -1"));
  EXPECT_THAT(refused({.early_stopping = EarlyStopping{}}), HasSubstr("needs `validation`"));
  EXPECT_THAT(
      refused({.validation = &loader, .early_stopping = EarlyStopping{.metric = "acuracy"}}),
      HasSubstr("did you mean 'accuracy'"));
  EXPECT_THAT(refused({.checkpoints = {.metric = "los"}}), HasSubstr("did you mean 'loss'"));
  EXPECT_THAT(refused({.checkpoints = {.every_steps = -2}}), HasSubstr("every_steps"));
  EXPECT_THROW(trainer.add_callback(nullptr), TypeError);
  EXPECT_EQ(trainer.state(), TrainerState{});
}

TEST(TrainerErrors, evaluation_may_not_add_parameters) {
  const auto model = [](std::int64_t batch, Phase phase) {
    Graph g = mlp_graph(batch, phase);
    if (phase == Phase::evaluation) g.output("more", g.leaf("x") * g.parameter("extra", {kInputs}));
    return g;
  };
  Trainer trainer(model, 4);
  FixedLoader loader(random_batches(1, 4));
  EXPECT_THAT(message_of<TypeError>([&] { trainer.evaluate(loader); }), HasSubstr("extra"));
}

// --- evaluation
TEST(TrainerEvaluation, agrees_with_predictions_whatever_the_batches) {
  Trainer trainer(dropout_graph, 4, {.optimizer = optim::adam(0.05)});
  const auto train = data::make_loader(random_dataset(32, 1), {.batch_size = 4, .threads = 0});
  trainer.train(*train, 3);
  const data::Dataset test = random_dataset(11, 2);
  const auto loader = data::make_loader(test, {.batch_size = 4, .shuffle = false, .threads = 0});
  const auto before = everything_in(trainer.session());
  const Evaluation evaluation = trainer.evaluate(*loader);
  EXPECT_EQ(everything_in(trainer.session()), before);
  EXPECT_EQ(evaluation.items, 11);
  EXPECT_EQ(evaluation, trainer.evaluate(*loader));
  EXPECT_EQ(trainer.last_evaluation(), evaluation);

  const data::Array predictions = trainer.predict(*test.data);
  EXPECT_EQ(predictions.shape, (Shape{11, kClasses}));
  metrics::Classification expected(kClasses);
  expected.add(std::get<std::vector<float>>(predictions.values),
               std::get<std::vector<std::int64_t>>(test.labels->values));
  EXPECT_EQ(evaluation.confusion, expected.confusion());
  EXPECT_EQ(evaluation.values, expected.values());
  EXPECT_EQ(evaluation.value("accuracy"), expected.confusion().accuracy());
  EXPECT_THAT(message_of<TypeError>([&] { evaluation.value("acuracy"); }),
              HasSubstr("did you mean 'accuracy'"));
  // The mean over all items, as one batch of them gives it.
  const auto whole = data::make_loader(test, {.batch_size = 11, .shuffle = false, .threads = 0});
  EXPECT_NEAR(trainer.evaluate(*whole).loss, evaluation.loss, 1e-6);
}

TEST(TrainerEvaluation, of_numbers) {
  const auto model = [](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, 1}), target = g.input("labels", {batch, 1});
    const Tensor y = x * g.parameter("w", {1}, init::constant(2));
    g.output("logits", y);
    g.output("loss", mse_loss(y, target));
    return g;
  };
  Trainer trainer(model, 2);
  FixedLoader loader({{{{2, 1}, std::vector<float>{1, 2}}, {{2, 1}, std::vector<float>{2, 5}}}});
  const Evaluation evaluation = trainer.evaluate(loader);
  EXPECT_EQ(evaluation.loss, 0.5);
  EXPECT_EQ(evaluation.value("mae"), 0.5);
  EXPECT_NEAR(evaluation.value("rmse"), std::sqrt(0.5), 1e-12);
  EXPECT_FALSE(evaluation.confusion);
}

TEST(TrainerEvaluation, ignores_negative_labels_and_finds_the_axis_of_the_classes) {
  // Scores [items, classes, places] that are the input itself.
  const auto model = [](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, 2, 3}), labels = g.input("labels", {batch, 3}, i64);
    const Tensor y = x * g.parameter("w", {1}, init::constant(1));
    g.output("logits", y);
    g.output("loss", cross_entropy(y, labels));
    return g;
  };
  Trainer trainer(model, 1);
  FixedLoader loader({{{{1, 2, 3}, std::vector<float>{1, 5, 2, 3, 4, 1}},
                       {{1, 3}, std::vector<std::int64_t>{1, 1, -100}}}});
  const Evaluation evaluation = trainer.evaluate(loader);
  ASSERT_TRUE(evaluation.confusion);
  EXPECT_EQ(evaluation.confusion->total(), 2);
  EXPECT_EQ(evaluation.confusion->at(1, 1), 1);
  EXPECT_EQ(evaluation.confusion->at(1, 0), 1);
}

// As many classes as places: only the config can say which axis is which.
TEST(TrainerEvaluation, of_sequences_has_the_classes_last_if_told_so) {
  const auto model = [](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, 2, 2}), labels = g.input("labels", {batch, 2}, i64);
    const Tensor y = x * g.parameter("w", {1}, init::constant(1));
    g.output("logits", y);
    g.output("loss", cross_entropy(reshape(y, {2 * batch, 2}), reshape(labels, {2 * batch})));
    return g;
  };
  FixedLoader loader(
      {{{{1, 2, 2}, std::vector<float>{1, 5, 0.5, 0}}, {{1, 2}, std::vector<std::int64_t>{1, 0}}}});
  const Evaluation evaluation = Trainer(model, 1, {.class_axis = -1}).evaluate(loader);
  EXPECT_EQ(evaluation.value("accuracy"), 1);
  EXPECT_EQ(evaluation.value("perplexity"), std::exp(evaluation.loss));
  const TrainConfig of_classes{.class_axis = -1, .measured = metrics::Kind::classes};
  EXPECT_THROW(Trainer(model, 1, of_classes).evaluate(loader).value("perplexity"), TypeError);
  EXPECT_EQ(Trainer(model, 1).evaluate(loader).value("accuracy"), 0.5);
}

// A loader that fails after its first batch.
class FailingLoader : public FixedLoader {
 public:
  using FixedLoader::FixedLoader;
  std::optional<data::Batch> next_batch() override {
    if (++calls_ > 1) throw IoError("the disk is gone");
    return FixedLoader::next_batch();
  }

 private:
  int calls_ = 0;
};

TEST(TrainerAverages, are_evaluated_and_the_weights_come_back) {
  const CompileOptions options{.training = {.ema_decay = 0.5}};
  Trainer averaged(mlp_graph, 4, {.optimizer = optim::adam(0.1)}, options);
  Trainer plain(mlp_graph, 4, {.optimizer = optim::adam(0.1), .evaluate_average = false}, options);
  FixedLoader loader(random_batches(4, 4));
  // There is no average before the first step.
  EXPECT_EQ(averaged.evaluate(loader), plain.evaluate(loader));
  averaged.train(loader, 2);
  plain.train(loader, 2);
  const auto before = everything_in(averaged.session());
  const Evaluation evaluation = averaged.evaluate(loader);
  EXPECT_NE(evaluation.loss, plain.evaluate(loader).loss);
  EXPECT_EQ(everything_in(averaged.session()), before);
  FailingLoader failing(random_batches(4, 4));
  EXPECT_THROW(averaged.evaluate(failing), IoError);
  EXPECT_EQ(everything_in(averaged.session()), before);

  // The same as a model whose weights are the averages.
  const tests::TemporaryFolder folder;
  averaged.save_model(folder.path() / "model.safetensors");
  EXPECT_EQ(everything_in(averaged.session()), before);
  plain.session().load(folder.path() / "model.safetensors");
  EXPECT_EQ(plain.evaluate(loader), evaluation);
  EXPECT_EQ(plain.session().parameter("fc1.weight"), averaged.session().state("ema.fc1.weight"));
}

// --- accumulation

// Two micro-batches of four items: the sum is eight times their mean.
TEST(TrainerAccumulation, without_normalisation_takes_the_sum_over_the_items) {
  const auto trained = [](double rate, bool normalize) {
    Trainer trainer(mlp_graph, 4, {.optimizer = optim::sgd(rate)},
                    {.accumulation_steps = 2, .normalize = normalize});
    FixedLoader loader(random_batches(4, 4));
    trainer.train(loader, 1);
    return trainer.session().parameter("fc1.weight");
  };
  const Literal mean = trained(0.5, true), sum = trained(0.5 / 8, false);
  for (std::int64_t k = 0; k < mean.numel(); ++k) EXPECT_NEAR(sum.at(k), mean.at(k), 1e-6);
}

// --- rates
TEST(TrainerRates, follow_the_schedule_step_by_step) {
  const RateSchedule schedule =
      RateSchedule(CosineRate{.T_max = 10, .eta_min = 0.001}).with_warmup(3);
  for (const std::int64_t accumulate : {1, 2}) {
    Trainer trainer(mlp_graph, 4, {.optimizer = optim::sgd(0.5), .rate_schedule = schedule},
                    {.accumulation_steps = accumulate});
    std::vector<double> rates;
    trainer.add_callback(on_step(
        [&](Trainer& t, const StepMetrics&) { rates.push_back(t.session().learning_rate()); }));
    FixedLoader loader(random_batches(5, 4));
    trainer.train(loader, 2);
    ASSERT_EQ(std::ssize(rates), accumulate == 1 ? 10 : 6);
    for (std::size_t k = 0; k < rates.size(); ++k)
      EXPECT_EQ(rates[k], schedule.lr(static_cast<std::int64_t>(k), 0.5));
  }
}

TEST(TrainerRates, that_a_callback_sets_act_from_the_next_step_on) {
  // The gradient of w is mean(x) = 1.
  Trainer trainer(mean_graph, 2, {.optimizer = optim::sgd(0.1)});
  trainer.add_callback(on_step([](Trainer& t, const StepMetrics& m) {
    if (m.step == 0) t.session().set_learning_rate(0.01);
  }));
  FixedLoader loader({constant_batch(2, 1), constant_batch(2, 1)});
  trainer.train(loader, 1);
  EXPECT_NEAR(trainer.session().parameter("w").at(0), 1 - 0.1 - 0.01, 1e-6);
}

TEST(TrainerRates, plateau_lowers_the_rate_and_keeps_the_warm_up) {
  // With a rate of 0 nothing would ever improve; 1e-30 does the same.
  Trainer trainer(mlp_graph, 4,
                  {.optimizer = optim::sgd(1e-30),
                   .rate_schedule = RateSchedule().with_warmup(4),
                   .plateau = PlateauOptions{.factor = 0.5, .patience = 1, .eps = 0}});
  std::vector<double> rates;
  trainer.add_callback(on_step([&](Trainer& t, const StepMetrics&) {
    rates.push_back(t.session().learning_rate() * 1e30);
  }));
  FixedLoader loader(random_batches(2, 4)), validation(random_batches(1, 4));
  trainer.fit(loader, {.epochs = 5, .validation = &validation});
  // Epoch 0 is the best; 1 is allowed to be bad, after 2 and 4 the rate is halved.
  expect_close(rates, {0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5, 0.5, 0.5}, 1e-9);
  FixedLoader other(random_batches(2, 4));
  EXPECT_THAT(message_of<TypeError>([&] { trainer.train(other, 1); }), HasSubstr("plateau"));
  EXPECT_THAT(message_of<TypeError>([&] { trainer.fit(other, {.epochs = 9}); }),
              HasSubstr("plateau needs `validation`"));
}

// --- callbacks
TEST(TrainerCallbacks, read_and_set_gradients) {
  for (const std::int64_t accumulate : {1, 2}) {
    Trainer trainer(mean_graph, 2, {.optimizer = optim::sgd(1)},
                    {.accumulation_steps = accumulate, .split_update = true});
    std::vector<double> seen;
    trainer.add_callback(on_gradients([&](Session& session) {
      seen.push_back(session.gradient("w").at(0));
      session.set_gradient("w", Literal::floats({1}, {0.25}));
    }));
    FixedLoader loader({constant_batch(2, 3), constant_batch(2, 5)});
    trainer.train(loader, 1);
    const double w = trainer.session().parameter("w").at(0);
    if (accumulate == 1) {
      EXPECT_THAT(seen, ElementsAre(3, 5));
      EXPECT_EQ(w, 0.5);
    } else {
      EXPECT_THAT(seen, ElementsAre(4));
      EXPECT_EQ(w, 0.75);
    }
  }
}

TEST(TrainerCallbacks, see_a_state_that_includes_their_step) {
  Trainer trainer(mlp_graph, 4);
  std::vector<std::int64_t> batches, steps;
  trainer.add_callback(on_step([&](Trainer& t, const StepMetrics&) {
    batches.push_back(t.state().batches);
    steps.push_back(t.state().global_steps);
  }));
  FixedLoader loader(random_batches(2, 4));
  trainer.fit(loader, {.epochs = 2});
  EXPECT_THAT(batches, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
}

// --- fit
TEST(TrainerFit, is_train_with_validation) {
  Trainer fitted(mlp_graph, 4, {.optimizer = optim::adam(0.05)}),
      trained(mlp_graph, 4, {.optimizer = optim::adam(0.05)});
  const auto loader = data::make_loader(random_dataset(30, 1), {.batch_size = 4, .threads = 0});
  const auto validation = data::make_loader(random_dataset(9, 2), {.batch_size = 4, .threads = 0});
  const FitResult result = fitted.fit(*loader, {.epochs = 4, .validation = validation.get()});
  const TrainHistory history = trained.train(*loader, 4);
  EXPECT_EQ(result.end, FitEnd::finished);
  EXPECT_EQ(result.history.epochs, history.epochs);
  expect_same_bits(fitted.session(), trained.session());
  ASSERT_THAT(result.history.evaluations, SizeIs(4));
  EXPECT_EQ(result.history.evaluations[3], trained.evaluate(*validation));
  EXPECT_LT(result.history.evaluations[3]->loss, result.history.evaluations[0]->loss);
  EXPECT_EQ(fitted.state().epoch, 4);
  // All done: nothing is left to do.
  EXPECT_EQ(fitted.fit(*loader, {.epochs = 4}).history.epochs, result.history.epochs);
  expect_same_bits(fitted.session(), trained.session());
}

TEST(TrainerFit, goes_on_within_an_epoch_when_it_may_take_more_steps) {
  const auto loader = data::make_loader(random_dataset(22, 1), {.batch_size = 4, .threads = 0});
  const auto validation = data::make_loader(random_dataset(8, 2), {.batch_size = 4, .threads = 0});
  Trainer once(dropout_graph, 4, {.optimizer = optim::adam(0.05)});
  const FitOptions options{.epochs = 2, .validation = validation.get()};
  const FitResult expected = once.fit(*loader, options);
  Trainer parts(dropout_graph, 4, {.optimizer = optim::adam(0.05)});
  for (const std::int64_t steps : {2, 6, 7, 12}) {  // 6 steps an epoch
    FitOptions limited = options;
    limited.max_steps = steps;
    const FitResult result = parts.fit(*loader, limited);
    EXPECT_EQ(result.end, FitEnd::finished);
    EXPECT_EQ(parts.state().global_steps, steps);
    EXPECT_EQ(std::ssize(result.history.epochs), steps <= 6 ? 1 : 2);
    EXPECT_EQ(result.history.epochs.back().steps, steps == 2 ? 2 : steps == 7 ? 1 : 6);
    EXPECT_TRUE(result.history.evaluations.back());
    EXPECT_EQ(std::ssize(parts.state().history.epochs), steps / 6);
  }
  EXPECT_EQ(parts.state(), once.state());
  EXPECT_EQ(parts.state().history, expected.history);
  expect_same_bits(parts.session(), once.session());
}

TEST(TrainerFit, stops_when_it_is_told_to) {
  Trainer trainer(mlp_graph, 4);
  FixedLoader loader(random_batches(5, 4));
  int polls = 0;
  const FitResult result = trainer.fit(
      loader,
      {.epochs = 3, .poll = [&] { return ++polls == 3 ? Request::save_and_stop : Request::none; }});
  EXPECT_EQ(result.end, FitEnd::interrupted);
  EXPECT_EQ(trainer.state().batches, 3);
  EXPECT_THAT(result.history.epochs, IsEmpty());
}

// Trains towards labels that are wrong for the validation: it gets worse from some epoch on.
TEST(TrainerFit, early_stopping_restores_the_best_epoch) {
  std::vector<data::Batch> wrong = random_batches(3, 4);
  for (data::Batch& batch : wrong)
    for (std::int64_t& label : std::get<std::vector<std::int64_t>>(batch.labels.values))
      label = (label + 1) % kClasses;
  Trainer trainer(dropout_graph, 4, {.optimizer = optim::adam(0.05)},
                  {.training = {.ema_decay = 0.5}});
  FixedLoader loader(wrong), validation(random_batches(3, 4));
  std::vector<Literals> after_epoch;
  struct AtEpoch : MetricCallback {
    void on_start(Trainer& t) override { trainer = &t; }
    void on_epoch(const EpochStats&) override {
      weights.push_back(parameters_of(trainer->session()));
    }
    Trainer* trainer = nullptr;
    std::vector<Literals> weights;
  };
  const auto at_epoch = std::make_shared<AtEpoch>();
  trainer.add_callback(at_epoch);
  const FitResult result = trainer.fit(
      loader,
      {.epochs = 50, .validation = &validation, .early_stopping = EarlyStopping{.patience = 2}});
  EXPECT_EQ(result.end, FitEnd::stopped_early);
  EXPECT_TRUE(trainer.state().stopped_early);
  const std::int64_t best = trainer.state().best_epoch.value();
  ASSERT_EQ(std::ssize(result.history.epochs), best + 1 + 2 + 1);
  const auto index = static_cast<std::size_t>(best);
  EXPECT_EQ(parameters_of(trainer.session()), at_epoch->weights[index]);
  EXPECT_EQ(trainer.state().best, result.history.evaluations[index]->loss);
  // Averages and statistics too: validation gives the best loss again.
  EXPECT_EQ(trainer.evaluate(validation), result.history.evaluations[index]);
  for (const auto& evaluation : result.history.evaluations)
    EXPECT_GE(evaluation->loss, *trainer.state().best);
  // It stays stopped.
  EXPECT_EQ(trainer.fit(loader, {.epochs = 50, .validation = &validation}).end,
            FitEnd::stopped_early);
}

TEST(TrainerFit, a_validation_without_items_is_an_error) {
  Trainer trainer(mlp_graph, 4);
  FixedLoader loader(random_batches(1, 4)), empty({});
  EXPECT_THAT(message_of<TypeError>([&] { trainer.fit(loader, {.validation = &empty}); }),
              HasSubstr("no items"));
}

// --- numbers that are not finite
TEST(TrainerNonFinite, a_run_can_try_the_failing_batch_again) {
  std::vector<data::Batch> bad = random_batches(4, 4), good = bad;
  std::get<std::vector<float>>(bad[2].data.values)[0] = std::numeric_limits<float>::infinity();
  for (const std::int64_t accumulate : {1, 3}) {
    const auto make = [&] {
      return Trainer(dropout_graph, 4, {.optimizer = optim::adam(0.05)},
                     {.accumulation_steps = accumulate});
    };
    Trainer trainer = make(), reference = make();
    FixedLoader bad_loader(bad), good_loader(good);
    EXPECT_THAT(message_of<DivergenceError>([&] { trainer.fit(bad_loader, {.epochs = 2}); }),
                AllOf(HasSubstr("epoch 0"), HasSubstr("batch 2")));
    EXPECT_EQ(trainer.state().batches, 2);
    EXPECT_THROW(trainer.fit(bad_loader, {.epochs = 2}), DivergenceError);
    trainer.fit(good_loader, {.epochs = 2});
    reference.fit(good_loader, {.epochs = 2});
    EXPECT_EQ(trainer.state(), reference.state());
    expect_same_bits(trainer.session(), reference.session());
  }
}

TEST(TrainerNonFinite, an_update_that_is_not_finite_drops_its_window) {
  for (const NonFinite non_finite : {NonFinite::error, NonFinite::skip}) {
    Trainer trainer(mean_graph, 2, {.optimizer = optim::sgd(1), .non_finite = non_finite},
                    {.accumulation_steps = 2});
    bool spoil = true;
    trainer.add_callback(on_gradients([&](Session& session) {
      if (std::exchange(spoil, false))
        session.set_gradient("w", Literal::floats({1}, {double{INFINITY}}));
    }));
    FixedLoader loader({constant_batch(2, 0.25F), constant_batch(2, 0.75F)});
    if (non_finite == NonFinite::error) {
      EXPECT_THROW(trainer.fit(loader), DivergenceError);
      EXPECT_EQ(trainer.state().batches, 0);
      EXPECT_EQ(trainer.session().parameter("w").at(0), 1);
      EXPECT_EQ(trainer.fit(loader).history.final_loss(), 0.5);
      EXPECT_EQ(trainer.session().parameter("w").at(0), 0.5);
    } else {
      const std::vector<EpochStats> epochs = trainer.fit(loader).history.epochs;
      ASSERT_THAT(epochs, SizeIs(1));
      EXPECT_EQ(epochs[0].steps, 0);
      EXPECT_TRUE(std::isnan(epochs[0].avg_loss));  // there was none: 0 would be perfect
      EXPECT_EQ(trainer.state().skipped, 1);
      EXPECT_EQ(trainer.session().parameter("w").at(0), 1);
    }
  }
}

// --- the loop itself

// A rate that is set costs the session a few words.
TEST(TrainerLoop, a_step_allocates_nothing) {
  for (const RateSchedule& schedule : {RateSchedule(), RateSchedule(CosineRate{.T_max = 100})}) {
    Trainer trainer(mlp_graph, 4, {.optimizer = optim::adam(0.01), .rate_schedule = schedule});
    const data::Batch batch = random_batch(4, 0);
    trainer.step(batch);
    const std::int64_t before = allocations().count;
    for (int k = 0; k < 50; ++k) trainer.step(batch);
    EXPECT_LE(allocations().count - before, schedule == RateSchedule() ? 0 : 4 * 50) << schedule;
  }
}

TEST(TrainerLoop, tells_how_it_goes) {
  Trainer trainer(mlp_graph, 4, {.optimizer = optim::sgd(0.125)},
                  {.training = {.global_norm = true}});
  Progress last;
  trainer.add_callback(on_step([&](Trainer& t, const StepMetrics& m) {
    last = t.progress();
    EXPECT_EQ(last.loss, m.loss);
  }));
  const auto loader = data::make_loader(random_dataset(10, 1), {.batch_size = 4, .threads = 0});
  EXPECT_EQ(trainer.progress().gradient_norm, std::nullopt);
  trainer.fit(*loader, {.epochs = 2});
  EXPECT_EQ(last.epoch, 1);
  EXPECT_EQ(last.epochs, 2);
  EXPECT_EQ(last.batch, 3);
  EXPECT_EQ(last.batches, 3);
  EXPECT_EQ(last.global_steps, 6);
  EXPECT_EQ(last.items, 20);
  EXPECT_EQ(last.learning_rate, 0.125);
  ASSERT_TRUE(last.gradient_norm);
  EXPECT_GT(*last.gradient_norm, 0);
  EXPECT_GE(last.seconds, last.wait_seconds);
}

TEST(TrainerLoop, train_leaves_the_place_of_fit) {
  Trainer trainer(mlp_graph, 4);
  FixedLoader loader(random_batches(3, 4));
  trainer.fit(loader, {.epochs = 1});
  trainer.train(loader, 2);
  trainer.step(random_batch(4, 9));
  EXPECT_EQ(trainer.state().epoch, 1);
  EXPECT_EQ(trainer.state().global_steps, 10);
  const FitResult result = trainer.fit(loader, {.epochs = 2});
  ASSERT_THAT(result.history.epochs, SizeIs(2));
  EXPECT_EQ(result.history.epochs[1].epoch, 1);
  EXPECT_EQ(result.history.epochs[1].steps, 3);
  EXPECT_EQ(trainer.state().global_steps, 13);
}

TEST(TrainerLoop, can_be_moved) {
  Trainer first(mlp_graph, 4);
  FixedLoader loader(random_batches(2, 4));
  first.train(loader, 1);
  Trainer second = std::move(first);
  second.train(loader, 1);
  EXPECT_EQ(second.state().global_steps, 4);
  EXPECT_GT(second.evaluate(loader).loss, 0);
}

}  // namespace
}  // namespace pantala::tests
