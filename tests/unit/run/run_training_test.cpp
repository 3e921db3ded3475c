// Runs of a config in this process: what becomes of them if somebody else is in their folder, or
// calls them off while they compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/cost_tables.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::run {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::logged;

class RunTraining : public testing::Test {
 protected:
  RunTraining() {
    std::ofstream out(folder_.path() / "points.csv");
    for (int k = 0; k < 40; ++k)
      out << k % 7 << ',' << k % 5 << ',' << k * 3 % 11 << ',' << k % 3 << '\n';
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  RunConfig config(const std::string& out) const {
    return read_config(
        "", {"model.name=mlp", "model.hidden=[4]", "data.source=csv:" + path("points.csv").string(),
             "data.validation=0.2", "batch_size=8", "epochs=2", "threads=1", "data.threads=0",
             "output.folder=" + path(out).string(), "output.progress=none"});
  }
  RunOutcome train(const std::string& out, RunOptions options = {}) const {
    options.surroundings.plan_cache = path("plans");
    return run_training(config(out), options);
  }
  // Saves and stops after the second batch, before which `disturb` is called.
  RunOutcome train_disturbed(const std::string& out, const std::function<void()>& disturb) const {
    int batches = 0;
    return train(out, {.poll = [&](const Trainer&) {
                   if (++batches < 2) return Request::none;
                   disturb();
                   return Request::save_and_stop;
                 }});
  }
  std::string model(const std::string& out) const {
    return io::read_file(path(out) / "model.safetensors");
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_F(RunTraining, says_that_its_folder_was_removed_or_moved_and_saves_nothing) {
  const auto message = [&](const std::function<void()>& disturb) {
    return tests::message_of<IoError>([&] { train_disturbed("run", disturb); });
  };
  const std::string expected =
      "the folder of the run, " + path("run").string() +
      ", was removed, moved or replaced while it was training: nothing more can be saved there. If "
      "it was moved, train --out NEW goes on from its last checkpoint";
  EXPECT_EQ(message([&] { fs::remove_all(path("run")); }), expected);
  EXPECT_FALSE(fs::exists(path("run")));
  EXPECT_EQ(message([&] { fs::rename(path("run"), path("moved")); }), expected);
  EXPECT_FALSE(fs::exists(path("run")));
  const auto replace = [&] {
    fs::rename(path("run"), path("other"));
    fs::create_directory(path("run"));
    std::ofstream(path("run") / "run.lock");
  };
  EXPECT_EQ(message(replace), expected);
}

TEST_F(RunTraining, goes_on_without_the_file_of_its_lock) {
  const RunOutcome outcome = train_disturbed("run", [&] { fs::remove(path("run") / "run.lock"); });
  EXPECT_EQ(outcome.end, RunOutcome::End::interrupted);
  EXPECT_TRUE(fs::exists(path("run") / "checkpoints"));
  EXPECT_EQ(train("run").end, RunOutcome::End::finished);
}

TEST_F(RunTraining, writes_its_config_again_if_it_was_removed) {
  RunOutcome outcome;
  const std::vector<std::string> warnings = logged(logging::Level::warning, [&] {
    outcome = train_disturbed("run", [&] { fs::remove(path("run") / "config.toml"); });
  });
  EXPECT_EQ(outcome.end, RunOutcome::End::interrupted);
  EXPECT_THAT(warnings,
              ElementsAre((path("run") / "config.toml").string() +
                          " was removed while the run was training; it is written again"));
  EXPECT_EQ(train("run").end, RunOutcome::End::finished);
  train("whole");
  EXPECT_TRUE(model("run") == model("whole"));
}

TEST_F(RunTraining, that_is_called_off_while_it_compiles_leaves_the_folder_as_it_was) {
  std::atomic<int> asked = 0;
  const RunOutcome outcome = train("run", {.stop = [&] { return ++asked > 2; }});
  EXPECT_EQ(outcome.end, RunOutcome::End::not_begun);
  EXPECT_FALSE(fs::exists(path("run") / "config.toml"));
  EXPECT_EQ(train("run").end, RunOutcome::End::finished);
}

// Evaluation is compiled when the step is there.
TEST_F(RunTraining, that_is_called_off_while_evaluation_compiles_saves_what_it_has_trained) {
  const auto step_is_compiled = [&] { return fs::exists(path("plans")); };
  const RunOutcome outcome = train("run", {.stop = step_is_compiled});
  EXPECT_EQ(outcome.end, RunOutcome::End::interrupted);
  EXPECT_EQ(outcome.steps, 4);
  EXPECT_TRUE(fs::exists(path("run") / "checkpoints/step-000000004"));
  EXPECT_EQ(train("run").end, RunOutcome::End::finished);
  train("whole");
  EXPECT_TRUE(model("run") == model("whole"));
}

// The result may be there before all is put right.
TEST_F(RunTraining, of_a_finished_run_puts_right_what_a_kill_has_left) {
  train("run");
  const fs::path checkpoints = path("run") / "checkpoints";
  fs::copy(checkpoints / "step-000000008", checkpoints / ".old-step-000000008");
  fs::copy(checkpoints / "step-000000008", checkpoints / ".tmp-step-000000004");
  std::ofstream(path("run") / "plots/.loss.svg.12-3.tmp");
  std::ofstream(path("run") / ".result.json.12-3.tmp");
  EXPECT_EQ(train("run").end, RunOutcome::End::was_finished);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path("run")))
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
}

std::string named_table(const std::string& name) {
  schedule::CostTable table = schedule::cpu::shipped_cost_table(32);
  table.name = name;
  return to_text(table);
}

class RunTables : public RunTraining {
 protected:
  RunTables() { io::write_file(path("table"), named_table("first")); }

  RunOutcome train_by(const std::string& table, bool interrupted = false) const {
    RunConfig by = config("run");
    by.compile.cost_table = table.empty() ? "" : path(table).string();
    RunOptions options;
    if (interrupted) options.poll = [](const Trainer&) { return Request::save_and_stop; };
    return run_training(by, options);
  }
  std::string recorded() const { return io::read_file(path("run") / "cost-table.txt"); }
  std::string warning_of(const std::function<void()>& work) const {
    const std::vector<std::string> lines = logged(logging::Level::warning, work);
    EXPECT_LE(lines.size(), 1u);
    return lines.empty() ? "" : lines[0];
  }
};

TEST_F(RunTables, keep_the_one_that_the_run_began_with) {
  EXPECT_EQ(train_by("table", true).end, RunOutcome::End::interrupted);
  EXPECT_EQ(recorded(), named_table("first"));
  EXPECT_EQ(warning_of([&] { train_by("table", true); }), "");
  EXPECT_EQ(warning_of([&] { train_by("", true); }), "") << "none named: its own";
  EXPECT_EQ(recorded(), named_table("first"));
}

TEST_F(RunTables, a_file_that_has_changed_or_gone_is_told_of_in_one_line) {
  train_by("table", true);
  io::write_file(path("table"), named_table("second"));
  EXPECT_THAT(warning_of([&] { train_by("table", true); }),
              AllOf(HasSubstr("goes on with the cost table that it began with, first "),
                    HasSubstr("holds second ")));
  fs::remove(path("table"));
  EXPECT_THAT(warning_of([&] { train_by("table"); }), HasSubstr("goes on with the cost table"));
  EXPECT_EQ(recorded(), named_table("first"));
}

TEST_F(RunTables, another_one_is_another_run) {
  train_by("", true);
  EXPECT_TRUE(recorded().starts_with("name = avx"));
  EXPECT_THAT(tests::message_of<TypeError>([&] { train_by("table"); }),
              AllOf(HasSubstr("holds a run with another config"),
                    HasSubstr("compile.cost_table: avx"), HasSubstr(" there, first ")));
  io::write_file(path("same"), recorded());
  EXPECT_EQ(train_by("same").end, RunOutcome::End::finished) << "by what it says, not by its name";
}

TEST_F(RunTables, runs_of_earlier_versions_have_none) {
  train_by("", true);
  fs::remove(path("run") / "cost-table.txt");
  EXPECT_EQ(train_by("").end, RunOutcome::End::finished);
  EXPECT_TRUE(fs::exists(path("run") / "cost-table.txt"));
}

}  // namespace
}  // namespace pantala::run
