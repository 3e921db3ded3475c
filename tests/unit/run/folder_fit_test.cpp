// Trainers of one's own in run folders, through the public headers: what is left there, and that an
// interrupted run ends with the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "pantala/error.h"
#include "pantala/monitor.h"
#include "pantala/run.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::run {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;
using tests::expect_same_bits;
using tests::random_dataset;
using tests::small_mlp;
using tests::TemporaryFolder;

constexpr monitor::ProgressMode kQuiet = monitor::ProgressMode::none;

// A program that trains, from its beginning.
class Program {
 public:
  explicit Program(fs::path folder) {
    options_.folder = std::move(folder);
    options_.progress = {.mode = monitor::ProgressMode::plain,
                         .write = [this](std::string_view text) { shown_ += text; },
                         .clock = [] { return 0.0; }};
    options_.log.log_interval = 1;
    options_.command = {"program", "--fast"};
  }

  FitResult fit(std::int64_t stop_after = -1, bool restart = false) {
    options_.restart = restart;
    FitOptions fit{.epochs = 3, .validation = validation_.get()};
    std::int64_t left = stop_after;
    if (stop_after >= 0)
      fit.poll = [&] { return --left > 0 ? Request::none : Request::save_and_stop; };
    return fit_in_folder(trainer_, *training_, fit, options_);
  }
  const Trainer& trainer() const { return trainer_; }
  const std::string& shown() const { return shown_; }

 private:
  std::string shown_;
  FolderOptions options_;
  std::unique_ptr<data::Loader> training_ =
      data::make_loader(random_dataset(60, 1), {.batch_size = 8, .seed = 3, .threads = 0});
  std::unique_ptr<data::Loader> validation_ =
      data::make_loader(random_dataset(20, 2), {.batch_size = 8, .shuffle = false, .threads = 0});
  Trainer trainer_{[](std::int64_t batch, Phase) { return small_mlp(batch); }, 8,
                   TrainConfig{.optimizer = optim::adam(0.01), .log_interval = 0}};
};

std::vector<std::string> losses_in(const fs::path& folder) {
  std::vector<std::string> losses;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);)
    losses.push_back(nlohmann::json::parse(line).at("loss").dump());
  return losses;
}

std::string refusal(const fs::path& folder) {
  return tests::message_of<TypeError>([&] { Program(folder).fit(); });
}

TEST(FitInFolder, leaves_metrics_environment_checkpoints_model_and_plots) {
  const TemporaryFolder folder;
  Program program(folder.path() / "run");
  EXPECT_EQ(program.fit().end, FitEnd::finished);
  for (const char* name : {"metrics.jsonl", "metrics.csv", "environment.json", "model.safetensors",
                           "checkpoints/step-000000024", "plots/loss.svg", "plots/accuracy.svg"})
    EXPECT_TRUE(fs::exists(folder.path() / "run" / name)) << name;
  std::ifstream file(folder.path() / "run/environment.json");
  EXPECT_EQ(nlohmann::json::parse(file).at("command").at(1), "--fast");
  EXPECT_THAT(program.shown(), StartsWith("begins in " + folder.file("run")));
  EXPECT_THAT(program.shown(), HasSubstr("\nepoch 3/3  loss "));
}

TEST(FitInFolder, an_interrupted_run_ends_with_the_same_bits) {
  const TemporaryFolder folder;
  Program whole(folder.path() / "whole");
  whole.fit();
  // A poll comes after the epoch too: 3 and 7 batches.
  for (const std::int64_t polls : {3, 8})
    EXPECT_EQ(Program(folder.path() / "parts").fit(polls).end, FitEnd::interrupted);
  EXPECT_FALSE(fs::exists(folder.path() / "parts/model.safetensors"));
  Program last(folder.path() / "parts");
  EXPECT_EQ(last.fit().end, FitEnd::finished);
  EXPECT_THAT(last.shown(), HasSubstr(" from epoch 2, batch 3 (10 updates done)"));
  expect_same_bits(last.trainer().session(), whole.trainer().session());
  EXPECT_EQ(losses_in(folder.path() / "parts"), losses_in(folder.path() / "whole"));
}

TEST(FitInFolder, restart_begins_anew) {
  const TemporaryFolder folder;
  Program(folder.path()).fit(5);
  Program again(folder.path());
  again.fit(2, true);
  EXPECT_THAT(again.shown(), StartsWith("begins in "));
  EXPECT_EQ(again.trainer().state().global_steps, 2);
  EXPECT_EQ(losses_in(folder.path()).size(), 2U);
}

TEST(FitInFolder, folders_of_others_are_left_alone) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "thesis.tex") << "years of work";
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is not the folder of a run"));
  EXPECT_FALSE(fs::exists(folder.path() / "run.lock"));
  const TemporaryFolder of_config;
  std::ofstream(of_config.path() / "config.toml")
      << "# The config of this run, as pantala train has written it.\n";
  EXPECT_THAT(refusal(of_config.path()), HasSubstr("holds a run of a config"));
}

TEST(RunMonitor, draws_plots_after_every_epoch_if_it_is_asked) {
  const TemporaryFolder folder;
  const auto loader = data::make_loader(random_dataset(24, 1), {.batch_size = 8, .threads = 0});
  for (const bool plots : {false, true}) {
    Trainer trainer([](std::int64_t batch, Phase) { return small_mlp(batch); }, 8);
    trainer.add_callback(std::make_shared<monitor::RunMonitor>(monitor::RunMonitorOptions{
        .progress = {.mode = kQuiet}, .folder = folder.path(), .plots = plots}));
    trainer.fit(*loader);
    EXPECT_EQ(fs::exists(folder.path() / "plots/loss.svg"), plots);
  }
}

TEST(RunConfig, is_read_from_a_file_and_values_on_top) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "run.toml") << "epochs = 2\n[optimizer]\nname = \"sgd\"\n";
  const RunConfig config = read_config(folder.path() / "run.toml", {"epochs=4", "seed=7"});
  EXPECT_EQ(config.epochs, 4);
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.optimizer.name, "sgd");
  EXPECT_EQ(config.output.folder, "runs/lenet-fashion-mnist");
  EXPECT_THROW(read_config("", {"epoch=4"}), TypeError);
  EXPECT_EQ(read_config("", {}).output.log_interval, std::nullopt);
  EXPECT_EQ(read_config("", {"output.log_interval=auto"}).output.log_interval, std::nullopt);
  EXPECT_EQ(read_config("", {"output.log_interval=50"}).output.log_interval, 50);
  EXPECT_THROW(read_config("", {"output.log_interval=0"}), TypeError);
  EXPECT_THROW(read_config("", {"output.log_interval=often"}), TypeError);
}

}  // namespace
}  // namespace pantala::run
