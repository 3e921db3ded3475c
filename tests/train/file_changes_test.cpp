// A run that is stopped at any change of a file, of a checkpoint, of the logs, of its beginning and
// of its end, goes on to the same bits, with every log line, and leaves nothing half done behind.
// Kills at random moments meet such places by luck; here each is met once.
#include "io/file_changes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>

#include "base/log.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "train/run.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;

constexpr int kKilled = 9, kFailed = 2;

// A number that a child can write and its parent read.
class SharedNumber {
 public:
  SharedNumber()
      : at_(static_cast<int*>(::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedNumber() { ::munmap(at_, sizeof(int)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  int& operator*() const { return *at_; }

 private:
  int* at_;
};

// Small, with all that a checkpoint can hold: moments, averages, the best weights; a checkpoint
// that replaces the one of the same step at the end of each epoch, and older ones that are removed.
class RunStoppedAtAChange : public TrainingTest {
 protected:
  RunStoppedAtAChange() : TrainingTest(Place::memory) {}

  run::RunConfig config(const std::string& out) const {
    return run::read_config(
        "", {"model.name=mlp", "model.hidden=[4]", "data.source=" + points(), "data.validation=0.2",
             "batch_size=60", "epochs=2", "threads=1", "data.threads=0", "ema.decay=0.5",
             "optimizer.lr=0.05", "early_stopping.patience=5", "checkpoint.every_steps=2",
             "checkpoint.keep=1", "output.folder=" + file(out), "output.log_interval=1",
             "output.progress=none"});
  }

  // The run in a process of its own, in which the watcher is asked before every change of a file in
  // its folder, with the number of the change, from 1. The exit code.
  using Watcher = std::function<int(int number, io::Change change)>;
  int run(const std::string& out, const Watcher& watcher = {}) const {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_here(out, watcher));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // In one piece; `changes` is how many there were.
  RunRecord whole(int& changes) const {
    EXPECT_EQ(run("cached"), 0);  // compiles the plans
    const SharedNumber count;
    EXPECT_EQ(run("whole", [&](int number, io::Change) { return *count = number, 0; }), 0);
    changes = *count;
    EXPECT_TRUE(leftovers("whole").empty());
    return record_of(file("whole"));
  }

  // What begins with a dot is half done.
  std::vector<std::string> leftovers(const std::string& out) const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(file(out)))
      if (entry.path().filename().string().starts_with('.')) names.push_back(entry.path().string());
    return names;
  }

  void expect_finished(const std::string& out, const RunRecord& expected,
                       const std::string& about) const {
    ASSERT_EQ(run(out), 0) << about;
    EXPECT_TRUE(leftovers(out).empty()) << about << testing::PrintToString(leftovers(out));
    expect_same(record_of(file(out)), expected, about);
    fs::remove_all(file(out));
  }

 private:
  int run_here(const std::string& out, const Watcher& watcher) const {
    const logging::Capture quiet(logging::Level::error, [](logging::Level, std::string_view) {});
    std::optional<io::WatchedChanges> watched;
    int number = 0, writes = 0;
    const std::string folder = file(out);
    if (watcher)
      watched.emplace([&](io::Change change, const fs::path& path) {
        if (!path.string().starts_with(folder)) return 0;
        // Of the many writes of a file of tensors the first two tell as much as all of them.
        writes = change == io::Change::write ? writes + 1 : 0;
        return writes > 2 ? 0 : watcher(++number, change);
      });
    try {
      run::run_training(config(out), {.surroundings = {.plan_cache = file("plans")}});
      return 0;
    } catch (const IoError&) { return kFailed; } catch (const std::exception&) {
      return 3;
    }
  }
};

TEST_F(RunStoppedAtAChange, by_a_kill_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  ASSERT_GT(changes, 100);
  for (int stop = 1; stop <= changes && !HasFailure(); ++stop) {
    const int code = run("run", [&](int number, io::Change) {
      if (number == stop) ::_exit(kKilled);
      return 0;
    });
    ASSERT_EQ(code, kKilled) << stop;
    expect_finished("run", expected, "killed at change " + std::to_string(stop));
  }
}

// A disk that is full, or fails, for a moment: the run ends with an error, or goes on without what
// is not worth it (an old checkpoint that cannot be removed, a plot).
TEST_F(RunStoppedAtAChange, by_an_error_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  int errors = 0;
  for (int stop = 1; stop <= changes && !HasFailure(); ++stop) {
    const int code =
        run("run", [&](int number, io::Change) { return number == stop ? ENOSPC : 0; });
    ASSERT_TRUE(code == 0 || code == kFailed) << stop << ": " << code;
    errors += code == kFailed ? 1 : 0;
    expect_finished("run", expected, "failed at change " + std::to_string(stop));
  }
  EXPECT_GT(errors, changes / 2);
}

}  // namespace
}  // namespace pantala::tests
