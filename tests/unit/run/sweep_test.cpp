// Sweeps and comparisons from C++.
#include "pantala/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::run {
namespace {

TEST(RunSweep, trains_compares_and_stops_when_asked) {
  const tests::TemporaryFolder folder;
  std::ofstream csv(folder.file("points.csv"));
  for (int k = 0; k < 40; ++k)
    csv << k % 7 << ',' << k % 5 << ',' << (k % 7 > k % 5 ? 'a' : 'b') << '\n';
  csv.close();
  SweepRequest request{.values = {"model.name=mlp", "data.source=csv:" + folder.file("points.csv"),
                                  "model.hidden=[3]", "max_steps=2", "threads=1",
                                  "output.progress=none", "output.folder=" + folder.file("all")},
                       .keys = {"seed=1,2"}};
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

}  // namespace
}  // namespace pantala::run
