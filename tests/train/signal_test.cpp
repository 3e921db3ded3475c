// Signals: the run saves and ends or goes on, and its bits are those of a run without them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "train/run.h"

namespace pantala::tests {
namespace {

using testing::ContainsRegex;
using testing::IsEmpty;

class SignalledRun : public RichRun {
 protected:
  // Stops a run with the signal after its n-th checkpoint, and lets it go on to the end.
  void stop_and_finish(int signal, const std::string& name, std::size_t checkpoints,
                       const RunRecord& expected) const {
    Outcome outcome;
    try_until("run", [&] {
      const auto running = run_until(rich("run"), file("run"), checkpoints);
      running->send(signal);
      outcome = running->wait();
      return outcome.exit_code != 0;
    });
    ASSERT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err,
                ContainsRegex("pantala: " + name + ": saved after [0-9]+ updates? in " +
                              file("run") + "; the same command goes on from there"));
    EXPECT_THAT(finish("run").err, ContainsRegex("continues .* from epoch"));
    expect_same(record("run"), expected, name + " after " + std::to_string(checkpoints));
    remove("run");
  }
};

constexpr std::size_t kMoments[] = {1, 4, 9, 14};

TEST_F(SignalledRun, sigint_stops_and_the_same_bits_come_out) {
  const RunRecord expected = whole();
  for (const std::size_t moment : kMoments) stop_and_finish(SIGINT, "SIGINT", moment, expected);
}

TEST_F(SignalledRun, sigterm_stops_and_the_same_bits_come_out) {
  const RunRecord expected = whole();
  for (const std::size_t moment : kMoments) stop_and_finish(SIGTERM, "SIGTERM", moment, expected);
}

// Without checkpoints of its own: what is saved is where the signal came.
TEST_F(SignalledRun, sigusr1_saves_and_the_run_goes_on) {
  std::vector<std::string> quiet = {"--set", "checkpoint.every_steps=0", "--set",
                                    "checkpoint.every_epochs=0"};
  const Outcome outcome = run_pantala(rich("whole", quiet));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const RunRecord expected = record("whole");
  EXPECT_EQ(expected.checkpoints.size(), 1U);
  try_until("run", [&] {
    Running running(rich("run", quiet));
    while (!exists("run/metrics.csv") && !running.ended()) pause_briefly();
    bool saved = false;
    while (!saved && !running.ended()) {
      running.send(SIGUSR1);
      pause_briefly();
      saved = !checkpoints_of(file("run")).empty();
    }
    const Outcome signalled = running.wait();
    EXPECT_EQ(signalled.exit_code, 0) << signalled.err;
    return checkpoints_of(file("run")).size() >= 2;  // and the one at the end
  });
  RunRecord actual = record("run");
  actual.checkpoints = expected.checkpoints;
  expect_same(actual, expected, "SIGUSR1");
}

TEST_F(SignalledRun, sigusr1_within_a_window_of_micro_batches_can_be_continued) {
  const RunRecord expected = whole();
  try_until("run", [&] {
    const auto running = run_until(rich("run"), file("run"), 3);
    for (int k = 0; k < 20; ++k) {
      running->send(SIGUSR1);
      pause_briefly();
    }
    running->send(SIGKILL);
    return running->wait().exit_code == 128 + SIGKILL;
  });
  finish("run");
  expect_same(record("run"), expected, "SIGUSR1, SIGKILL");
}

// Whether a signal waits for the process to take it.
bool is_pending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"))
      if (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) return true;
  return false;
}

// A pipe that takes no more.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    while (::write(ends_[1], "x", 1) == 1) continue;
    ::fcntl(ends_[1], F_SETFL, 0);
  }
  ~FullPipe() {
    for (const int end : ends_) ::close(end);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  int write_end() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

// The first line on stderr cannot be written: the run waits there, between its signals.
TEST_F(SignalledRun, a_second_signal_two_seconds_later_ends_it_at_once) {
  const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  const FullPipe full;
  std::vector<std::unique_ptr<Running>> runs;
  for (const int signal : signals) {
    const std::string out = "run" + std::to_string(signal);
    runs.push_back(std::make_unique<Running>(rich(out), full.write_end()));
    while (!exists(out + "/metrics.csv") && !runs.back()->ended()) pause_briefly();
    // The second one is the same request: it comes too soon.
    for (int k = 0; k < 2; ++k) {
      runs.back()->send(signal);
      while (is_pending(runs.back()->id(), signal)) pause_briefly();
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  for (std::size_t k = 0; k < runs.size(); ++k) {
    EXPECT_FALSE(runs[k]->ended());
    runs[k]->send(signals[k]);
    EXPECT_EQ(runs[k]->wait().exit_code, 128 + signals[k]);
  }
}

TEST_F(SignalledRun, sighup_stops_and_the_same_bits_come_out) {
  const RunRecord expected = whole();
  stop_and_finish(SIGHUP, "SIGHUP", 4, expected);
}

}  // namespace
}  // namespace pantala::tests
