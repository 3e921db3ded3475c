// pantala plot: the plots of one run and of several, and what a user gets wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "io/file.h"
#include "monitor/run_log.h"
#include "support/temporary.h"

namespace pantala::tests::plot_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

void write_run(const std::filesystem::path& folder, bool with_validation = true) {
  monitor::RunLog log(folder, {.log_interval = 1});
  for (std::int64_t k = 1; k <= 20; ++k) {
    log.step({.epoch = (k - 1) / 10,
              .step = (k - 1) % 10,
              .global_step = k,
              .loss = 1 / static_cast<double>(k),
              .learning_rate = 0.1});
    if (k % 10 != 0) continue;
    monitor::EpochRecord epoch{.epoch = k / 10 - 1, .steps = 10, .global_step = k, .avg_loss = 0.5};
    if (with_validation) {
      epoch.validation_loss = 0.4;
      epoch.metrics = {{"accuracy", 0.9}};
    }
    log.epoch(epoch);
  }
}

TEST(PlotVerb, redraws_the_runs_plots_into_its_folder) {
  const TemporaryFolder folder;
  write_run(folder.path() / "a");
  const Outcome outcome = run_pantala({"plot", folder.file("a")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(outcome.out,
            folder.file("a/plots/loss.svg") + "\n" + folder.file("a/plots/accuracy.svg") + "\n");
  EXPECT_THAT(io::read_file(folder.file("a/plots/loss.svg")), HasSubstr("<title>Loss: a</title>"));
  EXPECT_THAT(io::read_file(folder.file("a/plots/accuracy.svg")), HasSubstr("Accuracy: a"));
}

TEST(PlotVerb, without_validation_there_is_no_accuracy) {
  const TemporaryFolder folder;
  write_run(folder.path() / "a", false);
  const Outcome outcome = run_pantala({"plot", folder.file("a") + "/", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("plots").size(), 1U);
}

TEST(PlotVerb, draws_several_runs_over_each_other) {
  const TemporaryFolder folder;
  write_run(folder.path() / "a" / "run");
  write_run(folder.path() / "b" / "run");
  const std::vector<std::string> runs = {folder.file("a/run"), folder.file("b/run")};
  const Outcome one = run_pantala(
      {"plot", runs[0], runs[1], "--out", folder.file("both.svg"), "--metric", "accuracy"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, folder.file("both.svg") + "\n");
  // Told apart by their folders; their names are the same.
  const std::string drawing = io::read_file(folder.file("both.svg"));
  EXPECT_THAT(drawing, HasSubstr("<title>Accuracy</title>"));
  EXPECT_THAT(drawing, testing::AnyOf(HasSubstr("a/run</text>"), HasSubstr("…</text>")));

  const Outcome many = run_pantala({"plot", runs[0], runs[1], "--out", folder.file("new/folder"),
                                    "--metric", "loss", "--metric", "learning_rate"});
  EXPECT_EQ(many.exit_code, 0) << many.err;
  EXPECT_EQ(many.out, folder.file("new/folder/loss.svg") + "\n" +
                          folder.file("new/folder/learning_rate.svg") + "\n");
}

TEST(PlotVerb, mistakes_are_answered) {
  const TemporaryFolder folder;
  write_run(folder.path() / "a");
  std::filesystem::create_directories(folder.path() / "empty");
  std::filesystem::create_directories(folder.path() / "broken");
  io::write_file(folder.path() / "broken" / "metrics.jsonl", "{\"kind\":\"step\"}\n");
  const auto answer = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_pantala(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_EQ(answer({"plot", folder.file("no")}),
            "pantala: " + folder.file("no") +
                ": there is no such folder; expected the folder of a run\n");
  EXPECT_EQ(answer({"plot", folder.file("empty")}),
            "pantala: " + folder.file("empty") +
                ": there is no metrics.jsonl in it; expected the folder of a run\n");
  EXPECT_EQ(answer({"plot", folder.file("broken")}),
            "pantala: " + folder.file("broken/metrics.jsonl") + ":1: 'epoch' is missing\n");
  EXPECT_THAT(answer({"plot", folder.file("a"), "--metric", "acuracy"}),
              HasSubstr("no run has the metric 'acuracy'; did you mean 'accuracy'?"));
  EXPECT_THAT(answer({"plot", folder.file("a"), "--metrics", "loss"}),
              HasSubstr("unknown option '--metrics'; did you mean '--metric'?"));
  EXPECT_THAT(answer({"plot"}), HasSubstr("RUN is required"));
  EXPECT_THAT(answer({"plot", folder.file("a"), "--out", folder.file("x.svg"), "--metric", "loss",
                      "--metric", "accuracy"}),
              HasSubstr("x.svg is one file for 2 metrics; expected a folder"));
  EXPECT_THAT(answer({"plot", folder.file("a"), "--out", folder.file("no/x.svg")}),
              HasSubstr("cannot write: No such file or directory"));
}

}  // namespace
}  // namespace pantala::tests::plot_test
