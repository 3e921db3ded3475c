// A run that is stopped at any change of a file, of a checkpoint, of the logs, of its beginning and
// of its end, goes on to the same bits, with every log line, and leaves nothing half done behind;
// so does one that goes on itself, one that replaces another, and a sweep. Kills at random moments
// meet such places by luck; here each is met once.
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
#include "run/grid.h"
#include "train/run.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;

constexpr int kKilled = 9, kFailed = 2, kRefused = 3;

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

class StoppedAtAChange : public TrainingTest {
 protected:
  StoppedAtAChange() : TrainingTest(Place::memory) {}

  using Job = std::function<void()>;
  // Is asked before every change of a file in the folder of the job, with the number of the change,
  // from 1.
  using Watcher = std::function<int(int number, io::Change change)>;

  // The job, which works in the folder `out`, in a process of its own. The exit code.
  int run(const std::string& out, const Job& job, const Watcher& watcher = {}) const {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_here(out, job, watcher));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // In one piece; how many changes there were.
  int count_changes(const std::string& out, const Job& job) const {
    const SharedNumber count;
    EXPECT_EQ(run(out, job, [&](int number, io::Change) { return *count = number, 0; }), 0);
    expect_nothing_half_done(out, "in one piece");
    return *count;
  }

  int run_and_kill(const std::string& out, const Job& job, int stop) const {
    return run(out, job, [&](int number, io::Change) {
      if (number == stop) ::_exit(kKilled);
      return 0;
    });
  }

  // Kills the job at each of its changes in turn, always beginning with a copy of the folder `from`
  // ("": with none), and hands over what is left in `out`.
  void kill_at_each_change(const std::string& out, const std::string& from, const Job& job,
                           const std::function<void(const std::string& about)>& check) const {
    const auto begin = [&] {
      fs::remove_all(file(out));
      if (!from.empty()) fs::copy(file(from), file(out), fs::copy_options::recursive);
    };
    begin();
    const int changes = count_changes(out, job);
    ASSERT_GT(changes, 20);
    for (int stop = 1; stop <= changes && !HasFailure(); ++stop) {
      begin();
      ASSERT_EQ(run_and_kill(out, job, stop), kKilled) << stop;
      check("killed at change " + std::to_string(stop) + " of " + std::to_string(changes));
    }
  }

  // What begins with a dot is half done.
  void expect_nothing_half_done(const std::string& out, const std::string& about) const {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(file(out)))
      EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry << ' ' << about;
  }

  run::RunOptions options() const { return {.surroundings = {.plan_cache = file("plans")}}; }

 private:
  int run_here(const std::string& out, const Job& job, const Watcher& watcher) const {
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
      job();
      return 0;
    } catch (const IoError&) { return kFailed; } catch (const TypeError&) {
      return kRefused;
    } catch (const std::exception&) { return kRefused + 1; }
  }
};

// Small, with all that a checkpoint can hold: moments, averages, the best weights; a checkpoint
// that replaces the one of the same step at the end of each epoch, and older ones that are removed.
class RunStoppedAtAChange : public StoppedAtAChange {
 protected:
  Job training(const std::string& out, bool restart = false, const std::string& seed = "1") const {
    return [this, out, restart, seed] {
      const run::RunConfig config = run::read_config(
          "", {"model.name=mlp", "model.hidden=[4]", "data.source=" + points(),
               "data.validation=0.2", "batch_size=60", "epochs=2", "threads=1", "data.threads=0",
               "ema.decay=0.5", "optimizer.lr=0.05", "early_stopping.patience=5",
               "checkpoint.every_steps=2", "checkpoint.keep=1", "output.folder=" + file(out),
               "output.log_interval=1", "output.progress=none", "seed=" + seed});
      run::RunOptions how = options();
      how.restart = restart;
      run::run_training(config, how);
    };
  }

  // In one piece; `changes` is how many there were.
  RunRecord whole(int& changes) const {
    EXPECT_EQ(run("cached", training("cached")), 0);  // compiles the plans
    changes = count_changes("whole", training("whole"));
    return record_of(file("whole"));
  }

  void expect_finished(const std::string& out, const RunRecord& expected,
                       const std::string& about) const {
    ASSERT_EQ(run(out, training(out)), 0) << about;
    expect_nothing_half_done(out, about);
    expect_same(record_of(file(out)), expected, about);
    fs::remove_all(file(out));
  }
};

TEST_F(RunStoppedAtAChange, by_a_kill_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  ASSERT_GT(changes, 100);
  kill_at_each_change("run", "", training("run"),
                      [&](const std::string& about) { expect_finished("run", expected, about); });
}

// The run that goes on finds what another kill has left: here the second checkpoint is being
// written, under its temporary name.
TEST_F(RunStoppedAtAChange, by_a_second_kill_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  const auto is_writing = [&] {
    for (const std::string& name : leftovers_of(file("half")))
      if (name.starts_with(".tmp-step-")) return checkpoints_of(file("half")).size() == 1;
    return false;
  };
  for (int stop = 1; stop <= changes && !is_writing(); ++stop) {
    fs::remove_all(file("half"));
    ASSERT_EQ(run_and_kill("half", training("half"), stop), kKilled);
  }
  ASSERT_TRUE(is_writing());
  kill_at_each_change("run", "half", training("run"),
                      [&](const std::string& about) { expect_finished("run", expected, about); });
}

// What is there is the old run, which the command refuses to go on with, or the new one; never a
// mixture.
TEST_F(RunStoppedAtAChange, by_a_kill_while_it_replaces_another_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  ASSERT_EQ(run("other", training("other", false, "2")), 0);
  int refused = 0;
  kill_at_each_change("run", "other", training("run", true), [&](const std::string& about) {
    const int code = run("run", training("run"));
    if (code == kRefused) {
      ++refused;
      ASSERT_EQ(run("run", training("run", true)), 0) << about;
    }
    expect_finished("run", expected, about);
  });
  EXPECT_GT(refused, 5);
}

// A disk that is full, or fails, for a moment: the run ends with an error, or goes on without what
// is not worth it (an old checkpoint that cannot be removed, a plot).
TEST_F(RunStoppedAtAChange, by_an_error_ends_with_the_same_bits) {
  int changes = 0;
  const RunRecord expected = whole(changes);
  int errors = 0;
  for (int stop = 1; stop <= changes && !HasFailure(); ++stop) {
    const int code = run("run", training("run"),
                         [&](int number, io::Change) { return number == stop ? ENOSPC : 0; });
    ASSERT_TRUE(code == 0 || code == kFailed) << stop << ": " << code;
    errors += code == kFailed ? 1 : 0;
    expect_finished("run", expected, "failed at change " + std::to_string(stop));
  }
  EXPECT_GT(errors, changes / 2);
}

class SweepStoppedAtAChange : public StoppedAtAChange {
 protected:
  Job sweep(const std::string& out) const {
    return [this, out] {
      std::vector<run::Assignment> values;
      for (const std::string& text :
           {std::string("model.name=mlp"), std::string("model.hidden=[2]"),
            "data.source=" + points(), std::string("data.validation=0.2"),
            std::string("batch_size=120"), std::string("epochs=1"), std::string("threads=1"),
            std::string("data.threads=0"), "output.folder=" + file(out),
            std::string("output.progress=none")})
        values.push_back(run::parse_set(text));
      run::run_grid(run::make_grid(values, {run::parse_axis("seed=1,2")}), {.run = options()});
      run::draw_grid(file(out));
    };
  }

  std::vector<RunRecord> records(const std::string& out) const {
    return {record_of(file(out + "/seed=1")), record_of(file(out + "/seed=2"))};
  }
};

TEST_F(SweepStoppedAtAChange, by_a_kill_ends_with_the_same_bits) {
  ASSERT_EQ(run("whole", sweep("whole")), 0);  // compiles the plans, too
  const std::vector<RunRecord> expected = records("whole");
  kill_at_each_change("all", "", sweep("all"), [&](const std::string& about) {
    ASSERT_EQ(run("all", sweep("all")), 0) << about;
    expect_nothing_half_done("all", about);
    EXPECT_EQ(bytes("all/sweep.json"), bytes("whole/sweep.json")) << about;
    const std::vector<RunRecord> actual = records("all");
    for (std::size_t k = 0; k < expected.size(); ++k) expect_same(actual[k], expected[k], about);
  });
}

}  // namespace
}  // namespace pantala::tests
