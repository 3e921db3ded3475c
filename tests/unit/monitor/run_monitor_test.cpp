// The monitor of a real run: every step and epoch once, in a run that is interrupted too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "io/file.h"
#include "monitor/run_series.h"
#include "pantala/error.h"
#include "pantala/monitor.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::monitor::run_monitor_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::mlp_graph;
using tests::random_dataset;
using tests::TemporaryFolder;

// A run with its own everything, as after the start of a process.
class SmallRun {
 public:
  explicit SmallRun(const std::filesystem::path& folder, std::int64_t max_steps = 0)
      : folder_(folder),
        trainer_(mlp_graph, 8, {.optimizer = optim::adam(0.01), .log_interval = 0},
                 {.training = {.global_norm = true}}) {
    options_.epochs = 3;
    options_.max_steps = max_steps;
    options_.validation = validation_.get();
    options_.checkpoints.folder = folder / "checkpoints";
    options_.checkpoints.every_steps = 5;
    RunMonitorOptions monitor{.progress = {.mode = ProgressMode::plain,
                                           .terminal = false,
                                           .colour = false,
                                           .width = {},
                                           .write = [this](std::string_view t) { shown_ += t; },
                                           .clock = [] { return 0.0; }},
                              .folder = folder,
                              .log = {.log_interval = 2, .wall_clock = [] { return 1e9; }},
                              .max_steps = max_steps};
    if (const auto resumed = trainer_.resume(options_.checkpoints.folder))
      monitor.resumed = resumed->extra;
    monitor_ = std::make_shared<RunMonitor>(std::move(monitor));
    trainer_.add_callback(monitor_);
    options_.checkpoints.extra = [this] { return monitor_->position(); };
  }

  // Stops without a checkpoint after so many batches, as if the process was killed.
  void fit_and_die(int batches) {
    struct Killed {};
    int left = batches;
    options_.poll = [&]() -> Request {
      if (left-- == 0) throw Killed();
      return Request::none;
    };
    EXPECT_THROW(trainer_.fit(*training_, options_), Killed);
  }
  FitResult fit() { return trainer_.fit(*training_, options_); }
  const std::string& shown() const { return shown_; }
  RunMonitor& monitor() { return *monitor_; }

 private:
  std::filesystem::path folder_;
  std::string shown_;
  std::unique_ptr<data::Loader> training_ =
      data::make_loader(random_dataset(60, 1), {.batch_size = 8, .seed = 3, .threads = 0});
  std::unique_ptr<data::Loader> validation_ =
      data::make_loader(random_dataset(20, 2), {.batch_size = 8, .shuffle = false, .threads = 0});
  Trainer trainer_;
  FitOptions options_;
  std::shared_ptr<RunMonitor> monitor_;
};

// Without what depends on the clock and the machine.
RunSeries lasting(RunSeries series) {
  series.name.clear();
  for (StepRecord& step : series.steps) {
    step.items_per_second.reset();
    step.wait_share.reset();
    step.memory_bytes.reset();
  }
  for (EpochRecord& epoch : series.epochs) {
    epoch.seconds.reset();
    epoch.items_per_second.reset();
  }
  return series;
}

TEST(RunMonitor, records_what_the_trainer_tells) {
  const TemporaryFolder folder;
  SmallRun run(folder.path());
  const FitResult result = run.fit();
  const RunSeries series = read_run(folder.path());
  ASSERT_EQ(series.epochs.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    const EpochRecord& epoch = series.epochs[k];
    EXPECT_EQ(epoch.avg_loss, result.history.epochs[k].avg_loss);
    EXPECT_EQ(epoch.global_step, static_cast<std::int64_t>(8 * (k + 1)));
    ASSERT_TRUE(result.history.evaluations[k]);
    EXPECT_EQ(epoch.validation_loss, result.history.evaluations[k]->loss);
    EXPECT_THAT(epoch.metrics, testing::Contains(std::pair<std::string, double>(
                                   "accuracy", result.history.evaluations[k]->value("accuracy"))));
    EXPECT_GT(epoch.seconds.value(), 0);
    EXPECT_GT(epoch.items_per_second.value(), 0);
  }
  std::vector<std::int64_t> steps;
  for (const StepRecord& step : series.steps) {
    steps.push_back(step.global_step);
    EXPECT_EQ(step.learning_rate, 0.01);
    EXPECT_GT(step.gradient_norm.value(), 0);
    EXPECT_GT(step.memory_bytes.value(), 0);
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24));
  EXPECT_THAT(run.shown(), testing::StartsWith("epoch 1/3  step 1/8  loss "));
  EXPECT_THAT(run.shown(), HasSubstr("\nepoch 3/3  loss "));
  EXPECT_THAT(run.shown(), HasSubstr("  accuracy "));
}

TEST(RunMonitor, an_interrupted_runs_files_are_those_of_a_whole_one) {
  const TemporaryFolder whole, parts;
  SmallRun(whole.path()).fit();
  SmallRun(parts.path()).fit_and_die(7);   // after step 8; saved at step 5
  SmallRun(parts.path()).fit_and_die(3);   // after the first epoch, before it is saved
  SmallRun(parts.path()).fit_and_die(13);  // after step 17; saved after the second epoch
  SmallRun(parts.path()).fit();
  for (const auto& read : {read_metrics_jsonl, read_metrics_csv}) {
    const char* name = read == read_metrics_csv ? "metrics.csv" : "metrics.jsonl";
    const RunSeries expected = lasting(read(whole.path() / name)),
                    found = lasting(read(parts.path() / name));
    EXPECT_EQ(found.steps, expected.steps);
    EXPECT_EQ(found.epochs, expected.epochs);
  }
  std::size_t event_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(parts.path()))
    event_files += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  EXPECT_EQ(event_files, 1U);
}

TEST(RunMonitor, a_run_that_is_prolonged_takes_back_its_unfinished_epoch) {
  const TemporaryFolder whole, parts;
  SmallRun(whole.path()).fit();
  SmallRun(parts.path(), 11).fit();
  const RunSeries short_run = read_run(parts.path());
  ASSERT_EQ(short_run.epochs.size(), 2U);  // the second one of three steps, with its validation
  EXPECT_EQ(short_run.epochs[1].steps, 3);
  EXPECT_TRUE(short_run.epochs[1].validation_loss);
  EXPECT_NE(short_run.epochs[1].validation_loss, short_run.epochs[0].validation_loss);
  SmallRun(parts.path()).fit();
  const RunSeries expected = lasting(read_run(whole.path())),
                  found = lasting(read_run(parts.path()));
  EXPECT_EQ(found.steps, expected.steps);
  EXPECT_EQ(found.epochs, expected.epochs);
}

TEST(RunMonitor, time_of_an_epoch_counts_what_was_before_the_interruption) {
  const TemporaryFolder folder;
  std::string position;
  {
    SmallRun run(folder.path());
    run.fit_and_die(5);
    position = run.monitor().position();
  }
  const auto document = nlohmann::json::parse(position);
  EXPECT_EQ(document.at("epoch_items"), 48);
  EXPECT_GT(document.at("epoch_seconds").get<double>(), 0);
  EXPECT_TRUE(document.at("log").contains("metrics.csv"));
}

// Waits before its third and fourth batch.
class HaltingLoader : public tests::FixedLoader {
 public:
  using FixedLoader::FixedLoader;
  std::optional<data::Batch> next_batch() override {
    if (++calls_ == 3 || calls_ == 4) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return FixedLoader::next_batch();
  }

 private:
  int calls_ = 0;
};

TEST(RunMonitor, the_rates_of_a_row_are_those_since_the_row_before) {
  const TemporaryFolder folder;
  Trainer trainer(mlp_graph, 8, {.optimizer = optim::sgd(0.01)});
  trainer.add_callback(
      std::make_shared<RunMonitor>(RunMonitorOptions{.progress = {.mode = ProgressMode::none},
                                                     .folder = folder.path(),
                                                     .log = {.log_interval = 2}}));
  HaltingLoader loader(tests::random_batches(6, 8));
  trainer.train(loader, 1);
  const RunSeries series = read_run(folder.path());
  ASSERT_EQ(series.steps.size(), 4U);  // 1, 2, 4, 6
  EXPECT_LE(series.steps[2].items_per_second.value(), 16 / 0.08);
  EXPECT_GT(series.steps[2].wait_share.value(), 0);
  std::set<double> rates;
  for (const StepRecord& step : series.steps) rates.insert(step.items_per_second.value());
  EXPECT_EQ(rates.size(), 4U);
}

TEST(RunMonitor, an_epoch_without_a_loss_says_so) {
  const TemporaryFolder folder;
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  Trainer trainer(tests::mean_graph, 2,
                  {.optimizer = optim::sgd(0.1), .non_finite = NonFinite::skip});
  trainer.add_callback(std::make_shared<RunMonitor>(
      RunMonitorOptions{.progress = {.mode = ProgressMode::none}, .folder = folder.path()}));
  tests::FixedLoader loader({tests::constant_batch(2, nan)});
  tests::logged(logging::Level::warning, [&] { trainer.train(loader, 1); });
  EXPECT_THAT(io::read_file(folder.path() / "metrics.jsonl"), HasSubstr("\"loss\":\"nan\""));
  const RunSeries series = read_run(folder.path());
  ASSERT_EQ(series.epochs.size(), 1U);
  EXPECT_TRUE(std::isnan(series.epochs[0].avg_loss));
}

TEST(RunMonitor, a_position_that_is_none_is_refused) {
  const auto quiet = [] { return ProgressOptions{.mode = ProgressMode::none}; };
  for (const char* text : {"x", "[]", "{}", "{\"epoch_items\":\"a\",\"epoch_seconds\":1}",
                           "{\"epoch_items\":1,\"epoch_seconds\":1,\"log\":3}"}) {
    const TemporaryFolder folder;
    const RunMonitorOptions options{.progress = quiet(), .folder = folder.path(), .resumed = text};
    EXPECT_THROW(RunMonitor{options}, ParseError) << text;
  }
  const TemporaryFolder folder;
  RunMonitor without_files({.progress = quiet()});
  EXPECT_EQ(without_files.position(), "{\"epoch_items\":0,\"epoch_seconds\":0.0}");
}

}  // namespace
}  // namespace pantala::monitor::run_monitor_test
