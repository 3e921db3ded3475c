// clang-format off: expected places name the line of an op, which must not move.
// Numbers that are not finite, put in at a chosen op and step: the op is named, and weights in
// memory and on disk are those before the step.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/weights.h"
#include "support/trainer_case.h"
#include "train/diagnose.h"

namespace pantala::tests {
namespace {

using namespace tests;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

// --- the trainer
constexpr std::int64_t kColumns = 3, kBatch = 4;

struct Case {
  const char* op;
  float bad;  // what makes the op's result bad at its place; others are between 1 and 2
  std::function<Tensor(const Tensor&)> f;
  int line;
  bool forward = true;  // false: its derivative is
};
std::vector<Case> cases() {
  return {
      {"log", -0.5F, [](const Tensor& h) { return log(h); }, __LINE__},
      {"log", 0, [](const Tensor& h) { return log(h); }, __LINE__},
      {"sqrt", -2, [](const Tensor& h) { return sqrt(h); }, __LINE__},
      {"div", 0, [](const Tensor& h) { return 1.0 / h; }, __LINE__},
      {"exp", 200, [](const Tensor& h) { return exp(h); }, __LINE__},
      {"square", 3e19F, [](const Tensor& h) { return square(h); }, __LINE__},
      {"sqrt", 0, [](const Tensor& h) { return sqrt(h); }, __LINE__, false},
  };
}

// Two parameters, one of which the bad numbers reach only backwards.
ModelFactory model_of(const Case& c) {
  return [c](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, kColumns});
    g.input("labels", {batch});
    const Tensor w = g.parameter("w", {kColumns}, init::ones());
    const Tensor b = g.parameter("b", {kColumns}, init::constant(0.5));
    g.output("loss", mean(c.f(x * w) * b));
    return g;
  };
}

data::Batch good_batch(std::int64_t items, std::uint64_t seed) {
  std::vector<float> x = random_floats(items * kColumns, seed);
  for (float& value : x) value = 1.5F + value / 2;
  return {{{items, kColumns}, std::move(x)},
          {{items}, std::vector<float>(static_cast<std::size_t>(items))}};
}

struct Run {
  Case c;
  std::int64_t accumulate = 1;
  std::size_t bad_batch = 0;  // of eight, the last one short

  CompileOptions options() const {
    return {.accumulation_steps = accumulate, .training = {.clip = {.norm = 10}, .ema_decay = 0.5}};
  }
  Trainer trainer() const {
    static const TemporaryFolder plans(Place::memory);
    return Trainer(model_of(c), kBatch,
                   {.optimizer = optim::adam(0.001), .log_interval = 0, .plan_cache = plans.path()},
                   options());
  }
  std::vector<data::Batch> batches() const {
    std::vector<data::Batch> all;
    for (std::uint64_t k = 0; k < 8; ++k) all.push_back(good_batch(k == 7 ? 2 : kBatch, k));
    std::get<std::vector<float>>(all[bad_batch].data.values)[1 * kColumns + 2] = c.bad;
    return all;
  }
  std::string about() const {
    return fmt::format("{} of {}, batch {}, {} a window", c.op, c.bad, bad_batch, accumulate);
  }
};

void expect_named(const Run& run, const Trainer& trainer) {
  const data::Batch& batch = *trainer.failed_batch();
  const Graph graph = model_of(run.c)(batch.items(), Phase::training).graph;
  CompileOptions options = run.options();
  options.optimizer = trainer.config().optimizer;
  const train::Diagnosis found =
      train::diagnose(graph, graph.output("loss"), options, trainer.session(), batch);
  ASSERT_TRUE(found.origin) << run.about();
  const train::NonFiniteOrigin& origin = *found.origin;
  EXPECT_EQ(origin.part, run.c.forward ? train::StepPart::forward : train::StepPart::backward)
      << run.about();
  EXPECT_TRUE(!run.c.forward || origin.op == run.c.op) << origin.op << ' ' << run.about();
  EXPECT_EQ(origin.place, fmt::format("divergence_test.cpp:{}", run.c.line)) << run.about();
  EXPECT_EQ(origin.reaches, run.c.forward ? "the loss" : "the gradient of 'w'") << run.about();
  EXPECT_THAT(origin.index, ElementsAre(1, 2)) << run.about();
  EXPECT_FALSE(std::isfinite(origin.value)) << run.about();
  for (const train::ValueSummary& input : origin.inputs)
    EXPECT_EQ(input.nan + input.infinite, 0) << run.about();
}

// But for the scalar that every micro-batch sets for itself.
void expect_same_training(const Trainer& actual, const Trainer& expected,
                          const std::string& about) {
  const auto values_of = [](const Trainer& trainer) {
    auto values = everything_in(trainer.session());
    std::erase_if(values, [](const auto& value) { return value.first == "accum.first"; });
    return values;
  };
  EXPECT_TRUE(values_of(actual) == values_of(expected)) << about;
}

void expect_stopped_before_the_step(const Run& run) {
  const TemporaryFolder folder(Place::memory);
  const std::vector<data::Batch> batches = run.batches();
  FixedLoader loader(batches);
  Trainer trainer = run.trainer();
  const FitOptions fit{.epochs = 2,
                       .checkpoints = {.folder = folder.path(), .every_steps = 1, .keep_last = 1}};
  std::string message;
  try {
    trainer.fit(loader, fit);
    FAIL() << run.about();
  } catch (const DivergenceError& error) { message = error.what(); }
  const auto updates = static_cast<std::int64_t>(run.bad_batch) / run.accumulate;
  EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("optimizer step {}, batch {} of the epoch",
                                                   updates, run.bad_batch)),
                             HasSubstr(run.c.forward ? "the loss is " : "a gradient is not finite"),
                             HasSubstr("the weights are those before this step")));
  ASSERT_NE(trainer.failed_batch(), nullptr);
  EXPECT_EQ(trainer.failed_batch()->data, batches[run.bad_batch].data) << run.about();

  Trainer reference = run.trainer(), at_update = run.trainer();
  for (std::size_t k = 0; k < run.bad_batch; ++k) {
    if (static_cast<std::int64_t>(k) < updates * run.accumulate) at_update.step(batches[k]);
    reference.step(batches[k]);
  }
  expect_same_training(trainer, reference, run.about());
  Trainer resumed = run.trainer();
  const bool saved = resumed.resume(folder.path()).has_value();
  EXPECT_EQ(saved, updates > 0) << run.about();
  expect_same_training(resumed, at_update, "on disk, " + run.about());
  expect_named(run, trainer);
  expect_same_training(trainer, reference, "after the replay, " + run.about());
}

TEST(Divergence, the_op_is_named_and_the_weights_are_those_before_the_step) {
  for (const Case& c : cases())
    for (const std::size_t bad : {std::size_t{0}, std::size_t{3}, std::size_t{7}})
      expect_stopped_before_the_step({c, 1, bad});
}

TEST(Divergence, within_a_window_of_micro_batches_too) {
  for (const Case& c : cases())
    for (const std::size_t bad : {std::size_t{1}, std::size_t{5}, std::size_t{7}})
      expect_stopped_before_the_step({c, 3, bad});
}

// Adam's second moment would be infinite, and the weight would never move again.
TEST(Divergence, a_gradient_without_a_norm_stops_before_the_weights_change_too) {
  const data::Batch large = constant_batch(2, 1e25F);  // 9.999999562023526e+24
  for (const auto& [optimizer, reaches] : std::vector<std::pair<optim::Optimizer, std::string>>{
           {optim::adam(0.1), "the new value of 'optim.v.w'"},
           {optim::sgd(0.1), "the norm of the gradient of 'w'"}}) {
    const auto make = [&, &o = optimizer] {
      return Trainer(mean_graph, 2, {.optimizer = o, .log_interval = 0});
    };
    Trainer trainer = make(), reference = make();
    for (Trainer* t : {&trainer, &reference}) t->step(constant_batch(2, 1));
    try {
      trainer.step(large);
      FAIL() << optimizer.str();
    } catch (const DivergenceError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a gradient is not finite, or its norm"));
    }
    expect_same_training(trainer, reference, optimizer.str());
    const Graph graph = mean_graph(2, Phase::training);
    const train::Diagnosis found = train::diagnose(
        graph, graph.output("loss"), {.optimizer = optimizer}, trainer.session(), large);
    ASSERT_TRUE(found.origin) << optimizer.str();
    EXPECT_EQ(found.origin->reaches, reaches);
    EXPECT_EQ(found.origin->part, train::StepPart::update);
    EXPECT_THAT(found.text(), HasSubstr("f32[1]: 9.999999562023526e+24; "));
  }
}

// --- the command
class DivergedRun : public TrainingTest {
 protected:
  DivergedRun() : TrainingTest(Place::memory) {
    // One row is absurd.
    std::istringstream rows(bytes("points.csv"));
    std::ofstream out(file("absurd.csv"));
    std::string row;
    for (int k = 0; std::getline(rows, row); ++k)
      out << (k == 19 ? "1e38" + row.substr(row.find(',')) : row) << '\n';
  }
  std::vector<std::string> absurd(const std::string& out,
                                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words =
        train(out, {"--set", "data.normalize=none", "--set", "data.validation=none", "--set",
                    "checkpoint.every_steps=1", "--set", "output.plots=false"});
    *std::find(words.begin(), words.end(), points()) = "csv:" + file("absurd.csv");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_diverged_folder(const std::string& run, const Outcome& outcome) const {
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("batch, state and this text are in " + file(run)));
    for (const char* name :
         {"diagnosis.txt", "batch-data.npy", "batch-labels.npy", "state/model.safetensors",
          "state/optimizer.safetensors", "state/state.json"})
      EXPECT_TRUE(exists(run + "/diverged/" + name)) << name;
    EXPECT_FALSE(exists(run + "/result.json"));
    EXPECT_FALSE(exists(run + "/model.safetensors"));
    // The message is in the file, too.
    EXPECT_THAT(outcome.err, HasSubstr("pantala: " + bytes(run + "/diverged/diagnosis.txt")));
    // Weights of before the step, like those of the checkpoint that was saved after the last one.
    std::string newest;
    for (const fs::directory_entry& entry : fs::directory_iterator(file(run + "/checkpoints")))
      newest = std::max(newest, entry.path().filename().string());
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(bytes(run + "/diverged/state/" + name),
                bytes(run + "/checkpoints/" + newest + "/" + name));
      const Weights tensors = Weights::open(file(run + "/diverged/state/" + name));
      for (const std::string& tensor : tensors.names())
        for (const double value : numbers_of(tensors.read(tensor)))
          ASSERT_TRUE(std::isfinite(value)) << tensor;
    }
  }
  static std::vector<double> numbers_of(const Literal& literal) {
    std::vector<double> numbers;
    for (std::int64_t k = 0; k < literal.numel(); ++k) numbers.push_back(literal.at(k));
    return numbers;
  }
};

TEST_F(DivergedRun, an_absurd_row_stops_the_run_and_is_in_the_batch_that_is_saved) {
  const Outcome outcome = run_pantala(absurd("run"));
  ASSERT_EQ(outcome.exit_code, 3) << outcome.err;
  expect_diverged_folder("run", outcome);
  EXPECT_THAT(outcome.err,
              AllOf(ContainsRegex("epoch 0, step [0-9]+ \\(optimizer step [0-9]+, batch [0-9]+"),
                    ContainsRegex("made in the [a-z]+( pass)? by [a-z_]+"),
                    ContainsRegex("f32\\[[0-9,]*\\]: [-+.e0-9]+ to ")));
  const data::Array batch = data::read_npy(file("run/diverged/batch-data.npy"));
  EXPECT_THAT(std::get<std::vector<float>>(batch.values), testing::Contains(1e38F));
  // Again: from the checkpoint before the step into the same trouble.
  const Outcome again = run_pantala(absurd("run"));
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.err, HasSubstr("continues "));
  expect_diverged_folder("run", again);
}

TEST_F(DivergedRun, a_huge_rate_stops_the_run) {
  std::vector<std::string> words =
      train("run", {"--optimizer", "sgd", "--set", "checkpoint.every_steps=1"});
  *std::find(words.begin(), words.end(), "0.01") = "1e30";
  const Outcome outcome = run_pantala(words);
  ASSERT_EQ(outcome.exit_code, 3) << outcome.err;
  expect_diverged_folder("run", outcome);
  EXPECT_THAT(outcome.err, HasSubstr("parameter 'fc"));
}

TEST_F(DivergedRun, skip_leaves_the_step_out_and_counts_it) {
  const Outcome outcome = run_pantala(absurd("run", {"--set", "non_finite=skip", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("not finite, left out (1 so far)"));
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result.at("skipped"), 4);  // once an epoch
  EXPECT_EQ(result.at("steps"), 4 * 10 - 4);
  EXPECT_LT(result.at("train_loss"), 1e3);
  const Weights model = Weights::open(file("run/model.safetensors"));
  for (const std::string& name : model.names())
    for (const double value : numbers_of(model.read(name))) ASSERT_TRUE(std::isfinite(value));
  EXPECT_FALSE(exists("run/diverged"));
  EXPECT_THAT(run_pantala(absurd("run", {"--set", "non_finite=skip"})).out,
              HasSubstr("left out, because numbers were not finite: 4 steps\n"));
}

TEST_F(DivergedRun, propagate_goes_on_whatever_the_numbers_are) {
  std::vector<std::string> words =
      train("run", {"--optimizer", "sgd", "--set", "non_finite=propagate", "--json"});
  *std::find(words.begin(), words.end(), "0.01") = "1e30";
  const Outcome outcome = run_pantala(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result.at("skipped"), 0);
  EXPECT_EQ(result.at("steps"), 36);
  EXPECT_EQ(result.at("train_loss"), "nan");
  EXPECT_FALSE(exists("run/diverged"));
}

}  // namespace
}  // namespace pantala::tests
