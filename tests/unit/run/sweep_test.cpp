// Sweeps and comparisons from C++.
#include "pantala/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "pantala/error.h"
#include "run/grid.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::run {
namespace {

// Two steps with 40 items, for these values.
SweepRequest small_sweep(const tests::TemporaryFolder& folder, const std::string& key) {
  std::ofstream csv(folder.file("points.csv"));
  for (int k = 0; k < 40; ++k)
    csv << k % 7 << ',' << k % 5 << ',' << (k % 7 > k % 5 ? 'a' : 'b') << '\n';
  return {.values = {"model.name=mlp", "data.source=csv:" + folder.file("points.csv"),
                     "model.hidden=[3]", "max_steps=2", "threads=1", "output.progress=none",
                     "output.folder=" + folder.file("all")},
          .keys = {key}};
}

TEST(RunSweep, trains_compares_and_stops_when_asked) {
  const tests::TemporaryFolder folder;
  SweepRequest request = small_sweep(folder, "seed=1,2");
  request.options.poll = [](const Trainer&) { return Request::save_and_stop; };
  const SweepOutcome stopped = run_sweep(request);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.comparison, "");
  request.options.poll = {};
  request.options.stop = [] { return true; };  // before anything is compiled
  EXPECT_TRUE(run_sweep(request).interrupted);
  request.options.stop = {};
  request.options.trace = folder.path() / "trace.json";
  EXPECT_EQ(tests::message_of<TypeError>([&] { run_sweep(request); }),
            "a profile and a trace are of one run, and a sweep trains several");
  request.options.trace.clear();
  const SweepOutcome ended = run_sweep(request);
  EXPECT_FALSE(ended.interrupted);
  EXPECT_THAT(ended.folders,
              testing::ElementsAre(folder.file("all/seed=1"), folder.file("all/seed=2")));
  EXPECT_EQ(ended.comparison, compare({folder.file("all")}));
  const auto told = nlohmann::json::parse(compare({folder.file("all")}, "train_loss"));
  EXPECT_EQ(told.at("keys"), nlohmann::json({"seed"}));
  EXPECT_EQ(told.at("runs")[1].at("steps"), 2);
  EXPECT_EQ(tests::message_of<TypeError>([] { compare({}); }), "there is no run to compare");
}

TEST(RunSweep, a_run_that_fails_is_told_behind_the_others) {
  const tests::TemporaryFolder folder;
  const SweepOutcome outcome = run_sweep(small_sweep(folder, "data.subset=41,20"));
  ASSERT_EQ(outcome.failed.size(), 1U);
  EXPECT_EQ(outcome.failed[0].folder, folder.file("all/subset=41"));
  EXPECT_EQ(tests::message_of<TypeError>([&] { std::rethrow_exception(outcome.failed[0].error); }),
            "data.subset is 41, but points.csv has 40 items only");
  const auto told = nlohmann::json::parse(outcome.comparison);
  EXPECT_EQ(told.at("runs")[0].at("state"), "failed");
  EXPECT_EQ(told.at("best"), outcome.folders.at(1));
}

// Asked while the first run compiles, and not only when it is over.
TEST(RunSweep, that_is_stopped_while_a_run_compiles_leaves_that_run_as_it_was) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.file("points.csv")) << "1,2,a\n2,1,b\n3,1,b\n1,3,a\n2,2,a\n3,3,b\n";
  const Grid grid = make_grid(
      {parse_set("model.name=mlp"), parse_set("data.source=csv:" + folder.file("points.csv")),
       parse_set("data.validation=none"), parse_set("model.hidden=[3]"), parse_set("max_steps=2"),
       parse_set("threads=1"), parse_set("output.progress=none"),
       parse_set("output.folder=" + folder.file("all"))},
      {parse_axis("seed=1,2")});
  std::atomic<bool> begun = false;
  const GridOutcome outcome =
      run_grid(grid, {.begins = [&](std::size_t, const GridRun&) { begun = true; },
                      .stop = [&] { return begun.load(); }});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.number, 0u);
  EXPECT_FALSE(std::filesystem::exists(folder.file("all/seed=1/config.toml")));
}

}  // namespace
}  // namespace pantala::run
