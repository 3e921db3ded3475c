// Checkpoints that are damaged, disks that are full: the run says so and goes on from what is
// whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>

#include "support/data_files.h"
#include "train/run.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Damage {
  std::string name;
  std::function<void(const std::string& path)> apply;
};
const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"truncated",
       [](const std::string& path) {
         const std::string content = io::read_file(path);
         put_file(path, content.substr(0, content.size() * 2 / 3));
       }},
      {"empty", [](const std::string& path) { put_file(path, ""); }},
      {"a bit flipped",
       [](const std::string& path) {
         std::string content = io::read_file(path);
         content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 0x10);
         put_file(path, content);
       }},
      {"missing", [](const std::string& path) { fs::remove(path); }},
  };
  return all;
}
constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", "best.safetensors",
                                  "state.json"};

class DamagedRun : public RichRun {
 protected:
  std::string in_checkpoint(const std::string& run, const std::string& checkpoint,
                            const std::string& name) const {
    return file(run + "/checkpoints/" + checkpoint + "/" + name);
  }
};

TEST_F(DamagedRun, the_newest_checkpoint_is_skipped_loudly_and_the_same_bits_come_out) {
  const RunRecord expected = whole();
  // Past an epoch: there are weights to go back to.
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("killed", 10));
  const std::vector<std::string> checkpoints = checkpoints_of(file("killed"));
  const std::string newest = checkpoints.back(), before = checkpoints[checkpoints.size() - 2];
  for (const Damage& damage : damages())
    for (const char* name : kFiles) {
      const std::string about = std::string(name) + ", " + damage.name;
      remove("run");
      fs::copy(file("killed"), file("run"), fs::copy_options::recursive);
      damage.apply(in_checkpoint("run", newest, name));
      const Outcome outcome = finish("run");
      EXPECT_THAT(
          outcome.err,
          AllOf(HasSubstr("checkpoint " + file("run/checkpoints/" + newest) + " cannot be used: "),
                HasSubstr(in_checkpoint("run", newest, name)),
                ContainsRegex("continues .* \\(" + std::to_string(std::stol(before.substr(5))) +
                              " updates done\\)")))
          << about;
      expect_same(record("run"), expected, about);
    }
}

TEST_F(DamagedRun, without_a_whole_checkpoint_it_ends_and_touches_nothing) {
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("run", 4));
  const std::vector<std::string> checkpoints = checkpoints_of(file("run"));
  for (const std::string& checkpoint : checkpoints)
    damages()[2].apply(in_checkpoint("run", checkpoint, "model.safetensors"));
  const std::string metrics = bytes("run/metrics.csv");
  const Outcome outcome = run_pantala(rich("run"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  for (const std::string& checkpoint : checkpoints)
    EXPECT_THAT(outcome.err, HasSubstr(checkpoint + " cannot be used"));
  EXPECT_THAT(outcome.err, HasSubstr("pantala: " + file("run/checkpoints") + ": none of its " +
                                     std::to_string(checkpoints.size()) + " checkpoints is whole"));
  EXPECT_EQ(checkpoints_of(file("run")), checkpoints);
  EXPECT_EQ(bytes("run/metrics.csv"), metrics);
  EXPECT_EQ(run_pantala(rich("run", {"--restart"})).exit_code, 0);
}

TEST_F(DamagedRun, what_a_crash_has_left_is_put_right) {
  const RunRecord expected = whole();
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("run", 6));
  const fs::path checkpoints = file("run/checkpoints");
  const std::string newest = checkpoints_of(file("run")).back();
  // The crash came while the newest was being replaced by one of the same step.
  fs::copy(checkpoints / newest, checkpoints / (".tmp-" + newest));
  fs::remove(checkpoints / (".tmp-" + newest) / "state.json");
  fs::rename(checkpoints / newest, checkpoints / (".old-" + newest));
  // Another one while a later one was begun, and while single files were written.
  fs::create_directory(checkpoints / ".tmp-step-000000900");
  std::ofstream(checkpoints / ".tmp-step-000000900/.model.safetensors.77-0.tmp") << "half";
  std::ofstream(file("run/.environment.json.77-1.tmp")) << "half";
  const Outcome outcome = finish("run");
  EXPECT_THAT(outcome.err,
              AllOf(Not(HasSubstr("cannot be used")),
                    HasSubstr(std::to_string(std::stol(newest.substr(5))) + " updates done")));
  expect_same(record("run"), expected, "put right");
}

TEST_F(DamagedRun, the_only_checkpoint_is_not_lost_while_it_is_replaced) {
  const RunRecord expected = whole();
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("run", 6));
  const fs::path checkpoints = file("run/checkpoints");
  const std::string newest = checkpoints_of(file("run")).back();
  for (const std::string& name : checkpoints_of(file("run")))
    if (name != newest) fs::remove_all(checkpoints / name);
  fs::rename(checkpoints / newest, checkpoints / (".old-" + newest));
  const Outcome outcome = run_pantala(rich("run", {"--resume"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("continues "));
  RunRecord actual = record("run");
  expect_same(actual, expected, "the only one");
}

// Killed when not even the config was written: the folder is nobody else's.
TEST_F(DamagedRun, a_folder_with_nothing_but_half_a_config_is_taken_over) {
  fs::create_directories(file("run"));
  std::ofstream(file("run/run.lock")) << "";
  std::ofstream(file("run/.config.toml.77-0.tmp")) << "# The conf";
  finish("run");
  remove("run");
  fs::create_directories(file("run"));
  std::ofstream(file("run/.notes.txt.77-0.tmp")) << "precious";
  EXPECT_EQ(run_pantala(rich("run")).exit_code, 2);
  EXPECT_EQ(bytes("run/.notes.txt.77-0.tmp"), "precious");
}

// --- full disks: a limit of the size of files, which needs no rights and fails in the same way.
Outcome run_with_file_limit(const std::vector<std::string>& words, rlim_t limit) {
  struct rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small{limit, before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Running running(words);  // inherits it
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  return running.wait();
}

TEST_F(DamagedRun, a_save_that_does_not_fit_is_an_error_and_older_checkpoints_are_whole) {
  const RunRecord expected = whole();
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("run", 6));
  const std::vector<std::string> checkpoints = checkpoints_of(file("run"));
  const std::string newest = checkpoints.back();
  const auto limit_below = [&](const char* name) {
    return static_cast<rlim_t>(fs::file_size(in_checkpoint("run", newest, name)) - 1);
  };
  for (const char* name : {"optimizer.safetensors", "model.safetensors"}) {
    const Outcome outcome = run_with_file_limit(rich("run"), limit_below(name));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, ContainsRegex("\npantala: .*/.tmp-step-[0-9]+/" + std::string(name) +
                                           ": cannot write: File too large\n"));
    EXPECT_EQ(checkpoints_of(file("run")), checkpoints);
    EXPECT_THAT(leftovers_of(file("run")), IsEmpty());
  }
  EXPECT_THAT(finish("run").err, HasSubstr("continues "));
  expect_same(record("run"), expected, "after a full disk");
}

TEST_F(DamagedRun, a_log_that_does_not_fit_is_an_error_and_checkpoints_are_whole) {
  const RunRecord expected = whole();
  ASSERT_NO_FATAL_FAILURE(kill_after_checkpoints("run", 6));
  // With room for what the continuation writes about itself, but not for the logs.
  std::uintmax_t largest = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(file("run")))
    if (entry.is_regular_file()) largest = std::max(largest, entry.file_size());
  const Outcome outcome = run_with_file_limit(
      rich("run", {"--set", "checkpoint.every_steps=0", "--set", "checkpoint.every_epochs=0"}),
      largest + 4000);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("\npantala: .*/(metrics.jsonl|metrics.csv|events.out.*): "
                                         "cannot write: File too large\n"));
  finish("run");
  expect_same(record("run"), expected, "after a full disk");
}

// What is to be said about a divergence is said, saved or not.
TEST_F(DamagedRun, a_divergence_that_cannot_be_saved_is_one) {
  const std::vector<std::string> wild =
      rich("wild", {"--set", "optimizer.name=sgd", "--set", "optimizer.lr=1e30", "--set",
                    "clip.norm=0", "--set", "checkpoint.every_steps=0", "--set",
                    "schedule.name=constant", "--set", "schedule.warmup_steps=0"});
  ASSERT_EQ(run_pantala(wild).exit_code, 3);  // compiles what is needed
  const rlim_t state = fs::file_size(file("wild/diverged/state/model.safetensors"));
  remove("wild");
  const Outcome outcome = run_with_file_limit(wild, state - 1);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("The first number that is not finite is made in "),
                                 ContainsRegex("\nnot saved: .*model.safetensors: cannot write: "
                                               "File too large\n")));
  EXPECT_TRUE(exists("wild/diverged/batch-data.npy"));
  EXPECT_TRUE(exists("wild/diverged/diagnosis.txt"));
}

}  // namespace
}  // namespace pantala::tests
