// train --sweep, compare, and the plot over all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/training.h"

namespace pantala::tests::sweep_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Sweep : public TrainingTest {
 protected:
  // What --sweep says counts more than --lr.
  std::vector<std::string> sweep(const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words =
        train(out, {"--progress", "none", "--sweep", "optimizer.lr=1e-4,1e-2"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  json result(const std::string& run) const { return json::parse(bytes(run + "/result.json")); }
};

TEST_F(Sweep, trains_one_run_for_each_value_and_marks_the_best) {
  const Outcome outcome = run_pantala(sweep("all"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("optimizer.lr"), HasSubstr("accuracy"),
                                 HasSubstr("\n*  " + file("all/lr=0.01") + " "),
                                 HasSubstr("* the best by loss: " + file("all/lr=0.01") + "\n"),
                                 HasSubstr("plot: " + file("all/plots/loss.svg") + "\n")));
  EXPECT_TRUE(exists("all/plots/loss.svg"));
  // Each is a run like any other.
  ASSERT_EQ(run_pantala(train("alone")).exit_code, 0);
  EXPECT_EQ(bytes("all/lr=0.01/model.safetensors"), bytes("alone/model.safetensors"));
  EXPECT_EQ(run_pantala({"eval", file("all/lr=0.0001")}).exit_code, 0);
}

TEST_F(Sweep, of_several_keys_is_the_grid_and_a_dry_run_lists_it) {
  const Outcome outcome =
      run_pantala(sweep("all", {"--sweep", "model.hidden=[4],[4,3]", "--dry-run"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "4 runs in " + file("all") + ":\n  " + file("all/lr=0.0001,hidden=4") +
                ": optimizer.lr=0.0001 model.hidden=[4]\n  " + file("all/lr=0.0001,hidden=4x3") +
                ": optimizer.lr=0.0001 model.hidden=[4, 3]\n  " + file("all/lr=0.01,hidden=4") +
                ": optimizer.lr=0.01 model.hidden=[4]\n  " + file("all/lr=0.01,hidden=4x3") +
                ": optimizer.lr=0.01 model.hidden=[4, 3]\n");
  EXPECT_FALSE(exists("all"));
}

TEST_F(Sweep, the_same_command_goes_on_where_it_was_interrupted) {
  ASSERT_EQ(run_pantala(sweep("whole")).exit_code, 0);
  ASSERT_EQ(run_pantala(sweep("parts")).exit_code, 0);
  // As a kill would have left it: the second run in its middle, without a result.
  namespace fs = std::filesystem;
  const fs::path second = file("parts/lr=0.01");
  fs::remove(second / "result.json");
  fs::remove(second / "model.safetensors");
  fs::remove_all(second / "checkpoints/step-000000036");
  const auto first_written = fs::last_write_time(file("parts/lr=0.0001/model.safetensors"));
  const Outcome outcome = run_pantala(sweep("parts"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(fs::last_write_time(file("parts/lr=0.0001/model.safetensors")), first_written);
  EXPECT_EQ(bytes("whole/lr=0.01/model.safetensors"), bytes("parts/lr=0.01/model.safetensors"));
  EXPECT_EQ(result("parts/lr=0.01").at("steps"), 36);
}

TEST_F(Sweep, a_signal_saves_the_run_at_hand) {
  std::vector<std::string> words = sweep("all");
  *std::find(words.begin(), words.end(), "4") = "1000000";  // epochs
  Running running(words);
  while (!exists("all/lr=0.0001/checkpoints") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGTERM);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("SIGTERM: stopped in run 1 of 2 (" + file("all/lr=0.0001") +
                                     "); the same command goes on from there\n"));
  EXPECT_FALSE(exists("all/lr=0.01"));
}

// Without compiled plans, as soon as the folder of the first run is there.
TEST_F(Sweep, a_signal_while_a_run_compiles_is_answered_at_once) {
  std::vector<std::string> words = sweep("all", {"--set", "model.hidden=[60,50,40,30,20,10]"});
  Running running(words);
  while (!exists("all/lr=0.0001/run.lock") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGTERM);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("SIGTERM: stopped in run 1 of 2 ("));
  EXPECT_FALSE(exists("all/lr=0.01"));
  EXPECT_FALSE(exists("all/lr=0.0001/result.json"));
}

TEST_F(Sweep, has_neither_a_profile_nor_a_trace) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--profile"}, {"--trace", file("trace.json")}}) {
    const Outcome outcome = run_pantala(sweep("all", more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_EQ(outcome.err,
              "pantala: " + more[0] +
                  " is of one run and --sweep trains several: train one of them alone\n");
    EXPECT_FALSE(exists("all"));
  }
}

TEST_F(Sweep, interrupted_by_a_signal_and_gone_on_with_has_the_same_bits) {
  const auto endless = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words = sweep(out, more);
    *std::find(words.begin(), words.end(), "4") = "1000000";  // epochs
    return words;
  };
  Running running(endless("parts", {}));
  while (!exists("parts/lr=0.0001/metrics.jsonl") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGTERM);
  ASSERT_EQ(running.wait().exit_code, 75);
  long saved = 0;  // the steps behind the last checkpoint
  for (const auto& entry :
       std::filesystem::directory_iterator(file("parts/lr=0.0001/checkpoints"))) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-")) saved = std::max(saved, std::stol(name.substr(5)));
  }
  ASSERT_GT(saved, 0);
  const std::vector<std::string> limit = {"--max-steps", std::to_string(saved + 20)};
  const Outcome outcome = run_pantala(endless("parts", limit));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(run_pantala(endless("whole", limit)).exit_code, 0);
  for (const std::string run : {"lr=0.0001", "lr=0.01"}) {
    EXPECT_EQ(result("parts/" + run).at("steps"), saved + 20);
    EXPECT_TRUE(bytes("parts/" + run + "/model.safetensors") ==
                bytes("whole/" + run + "/model.safetensors"))
        << run;
  }
}

// More items than there are is an error that only the data can tell.
TEST_F(Sweep, goes_on_after_a_run_that_failed_and_ends_with_its_code) {
  const auto words = [&](const std::string& values) {
    return train("all", {"--progress", "none", "--json", "--sweep", "data.subset=" + values});
  };
  const Outcome outcome = run_pantala(words("1000000,100"));
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string complaint = "data.subset is 1000000, but points.csv has 150 items only";
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(file("all/subset=1000000") + ": " + complaint + "\n"),
                                 testing::EndsWith("pantala: " + complaint + "\n")));
  const json told = json::parse(outcome.out);
  EXPECT_EQ(told.at("runs")[0].at("state"), "failed");
  EXPECT_EQ(told.at("runs")[0].at("config").at("data.subset"), 1000000);
  EXPECT_EQ(told.at("runs")[1].at("state"), "finished");
  EXPECT_EQ(told.at("best"), file("all/subset=100"));
  // It is tried again, the other is not.
  const auto written = std::filesystem::last_write_time(file("all/subset=100/model.safetensors"));
  EXPECT_EQ(run_pantala(words("1000000,100")).exit_code, 2);
  EXPECT_EQ(std::filesystem::last_write_time(file("all/subset=100/model.safetensors")), written);
  EXPECT_EQ(run_pantala(words("100,120")).exit_code, 0);
}

TEST_F(Sweep, goes_on_after_a_run_that_diverged) {
  const auto words = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"--progress", "none", "--optimizer", "sgd", "--json"});
    return train(out, more);
  };
  const std::vector<std::string> rates = {"--sweep", "optimizer.lr=1e30,0.01"};
  const Outcome outcome = run_pantala(words("all", rates));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json told = json::parse(outcome.out);
  EXPECT_EQ(told.at("runs")[0].at("state"), "diverged");
  EXPECT_EQ(told.at("runs")[1].at("state"), "finished");
  EXPECT_EQ(told.at("best"), file("all/lr=0.01"));
  // It would again: it is not trained again.
  const Outcome again = run_pantala(words("all", rates));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("not finite")));
  EXPECT_EQ(run_pantala(words("none", {"--sweep", "optimizer.lr=1e30"})).exit_code, 3);
}

TEST_F(Sweep, mistakes_are_named_before_anything_is_trained) {
  const auto complaint = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run_pantala(train("refused", more));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_FALSE(exists("refused"));
    return outcome.err;
  };
  EXPECT_EQ(complaint({"--sweep", "optimizer.lr"}),
            "pantala: --sweep must be KEY=VALUE,VALUE,..., got \"optimizer.lr\"\n");
  EXPECT_EQ(complaint({"--sweep", "optimizer.rl=1,2"}),
            "pantala: --sweep: adam has no option 'rl'; did you mean 'lr'?\n");
  EXPECT_EQ(complaint({"--sweep", "batch_size=16,0"}),
            "pantala: --sweep: batch_size must be a whole number from 1 to 1048576, got 0\n");
  EXPECT_EQ(complaint({"--sweep", "optimizer.lr=0.1,1e-1"}),
            "pantala: --sweep: optimizer.lr is 0.1 twice\n");
  EXPECT_EQ(complaint({"--sweep", "seed=1", "--sweep", "seed=2"}),
            "pantala: --sweep: seed is given twice\n");
  EXPECT_EQ(complaint({"--sweep", "output.folder=a,b"}),
            "pantala: --sweep: every run has a folder of its own; output.folder is the sweep's\n");
  EXPECT_THAT(complaint({"--sweep", "seed=1,2", "--resume"}), HasSubstr("--resume is for one run"));
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  EXPECT_THAT(run_pantala(train("run", {"--sweep", "seed=1,2"})).err,
              HasSubstr("holds a run, not a sweep; choose another with --out"));
}

class Compare : public Sweep {
 protected:
  Compare() { EXPECT_EQ(run_pantala(sweep("all")).exit_code, 0); }
};

TEST_F(Compare, shows_the_keys_that_differ_and_marks_the_best) {
  const Outcome text =
      run_pantala({"compare", file("all/lr=0.01"), file("all/lr=0.0001"), "--metric", "f1"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("optimizer.lr"), Not(HasSubstr("output.folder")),
                    Not(HasSubstr("batch_size")), HasSubstr("f1"), Not(HasSubstr("precision")),
                    HasSubstr("* the best by f1: " + file("all/lr=0.01"))));
  const json told = json::parse(run_pantala({"compare", file("all"), "--json"}).out);
  EXPECT_EQ(told.at("keys"), json({"optimizer.lr"}));
  EXPECT_EQ(told.at("runs").size(), 2U);
  EXPECT_EQ(told.at("runs")[1].at("config").at("optimizer.lr"), 0.01);
  EXPECT_EQ(told.at("runs")[1].at("metrics").at("loss"),
            result("all/lr=0.01").at("evaluation").at("loss"));
  EXPECT_EQ(told.at("best"), file("all/lr=0.01"));
  const Outcome csv = run_pantala({"compare", file("all"), "--csv"});
  EXPECT_THAT(csv.out, HasSubstr("run,best,state,optimizer.lr,steps,train_loss,loss,accuracy,"
                                 "precision,recall,f1\n"));
  EXPECT_THAT(csv.out, HasSubstr("\n" + file("all/lr=0.01") + ",1,finished,0.01,36,"));
}

TEST_F(Compare, shows_a_run_that_is_not_finished_as_it_stands) {
  std::filesystem::remove(file("all/lr=0.01/result.json"));
  const json told = json::parse(run_pantala({"compare", file("all"), "--json"}).out);
  const json& run = told.at("runs")[1];
  EXPECT_EQ(run.at("state"), "unfinished");
  EXPECT_EQ(run.at("steps"), 36);
  EXPECT_TRUE(run.at("metrics").contains("accuracy"));
  EXPECT_THAT(run_pantala({"compare", file("all")}).out, HasSubstr("unfinished"));
}

TEST_F(Compare, mistakes_are_named) {
  const Outcome metric = run_pantala({"compare", file("all"), "--metric", "acuracy"});
  EXPECT_EQ(metric.exit_code, 2);
  EXPECT_THAT(metric.err,
              HasSubstr("no run has the metric 'acuracy'; did you mean 'accuracy'?; there are: "
                        "train_loss, loss, accuracy"));
  EXPECT_THAT(run_pantala({"compare", file("nothing")}).err,
              HasSubstr("a run folder is what pantala train --out makes"));
}

TEST_F(Compare, plot_draws_a_sweep_over_each_other_into_its_folder) {
  std::filesystem::remove_all(file("all/plots"));
  const Outcome outcome = run_pantala({"plot", file("all")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, file("all/plots/loss.svg") + "\n" + file("all/plots/accuracy.svg") + "\n");
  EXPECT_THAT(bytes("all/plots/loss.svg"), AllOf(HasSubstr("lr=0.01"), HasSubstr("lr=0.0001")));
}

TEST_F(Compare, plot_leaves_out_a_run_of_a_sweep_that_has_logged_nothing_yet) {
  std::filesystem::resize_file(file("all/lr=0.0001/metrics.jsonl"), 0);
  const Outcome outcome = run_pantala({"plot", file("all"), "--out", file("one.svg")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(bytes("one.svg"), HasSubstr("Loss: lr=0.01"));
  std::filesystem::resize_file(file("all/lr=0.01/metrics.jsonl"), 0);
  EXPECT_THAT(run_pantala({"plot", file("all")}).err,
              HasSubstr("no run of the sweep has logged anything yet"));
}

}  // namespace
}  // namespace pantala::tests::sweep_test
