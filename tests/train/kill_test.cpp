// Runs that are killed, wherever they are, and started again end with the same bits as a run that
// nobody touched. Thirty of them.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "train/run.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class KilledRun : public RichRun {
 protected:
  // Kills the command after a time. False if it had ended before.
  bool kill_after(const std::string& out, std::chrono::duration<double> time) const {
    Running running(rich(out));
    std::this_thread::sleep_for(time);
    running.send(SIGKILL);
    return running.wait().exit_code == 128 + SIGKILL;
  }

  // Kills the command within its n-th save, as soon as `stage` is among the files of the temporary
  // folder ("": at once). False if it was not met: then nothing unfinished has stayed behind.
  bool kill_in_save(const std::string& out, std::size_t save, const std::string& stage) const {
    const fs::path run = file(out);
    Running running(rich(out));
    std::set<std::string> seen;
    while (!running.ended()) {
      for (const std::string& name : unfinished(run)) {
        seen.insert(name);
        if (seen.size() >= save &&
            (stage.empty() || fs::exists(run / "checkpoints" / name / stage))) {
          running.send(SIGKILL);
          return running.wait().exit_code == 128 + SIGKILL && !unfinished(run).empty();
        }
      }
      pause_briefly();
    }
    return false;
  }

 private:
  static std::vector<std::string> unfinished(const fs::path& run) {
    std::vector<std::string> names;
    for (std::string& name : leftovers_of(run))
      if (name.starts_with(".tmp-step-")) names.push_back(std::move(name));
    return names;
  }
};

TEST_F(KilledRun, at_random_moments_ends_with_the_same_bits) {
  whole();  // fills the cache of plans
  remove("whole");
  const Clock::time_point begin = Clock::now();
  const RunRecord expected = whole();
  const std::chrono::duration<double> duration = Clock::now() - begin;

  constexpr int kRuns = 16;
  std::mt19937 random(7);
  std::uniform_real_distribution<> within(0, 1);
  for (int k = 0; k < kRuns; ++k) {
    // One in each part of the run; one that comes too late is made earlier.
    double moment = (k + within(random)) / kRuns;
    try_until("run",
              [&] { return kill_after("run", std::exchange(moment, moment * 0.8) * duration); });
    finish("run");
    expect_same(record("run"), expected, "run " + std::to_string(k));
    remove("run");
  }
}

TEST_F(KilledRun, inside_a_save_ends_with_the_same_bits) {
  const RunRecord expected = whole();
  const char* const kStages[] = {"", "model.safetensors", "optimizer.safetensors", "state.json"};
  constexpr std::size_t kRuns = 12;
  std::mt19937 random(11);
  for (std::size_t k = 0; k < kRuns; ++k) {
    std::size_t save = 1 + k * 2 + random() % 2;
    const std::string stage = kStages[k % std::size(kStages)];
    // A save that was over before the signal came is no such case.
    try_until("run", [&] {
      if (kill_in_save("run", save, stage)) return true;
      save = save > 1 ? save - 1 : 1 + random() % 20;
      return false;
    });
    finish("run");
    expect_same(record("run"), expected,
                "run " + std::to_string(k) + ", save " + std::to_string(save) + " " + stage);
    remove("run");
  }
}

TEST_F(KilledRun, again_and_again_ends_with_the_same_bits) {
  const RunRecord expected = whole();
  std::mt19937 random(13);
  for (int k = 0; k < 2; ++k) {
    constexpr int kLives = 6;
    try_until("run", [&] {
      for (int life = 0; life < kLives; ++life) {
        const auto running = run_until(rich("run"), file("run"), 1 + random() % 3);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        running->send(SIGKILL);
        if (running->wait().exit_code != 128 + SIGKILL) return false;
      }
      return true;
    });
    finish("run");
    expect_same(record("run"), expected, "killed six times");
    remove("run");
  }
}

}  // namespace
}  // namespace pantala::tests
