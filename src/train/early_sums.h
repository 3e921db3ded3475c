// A thread that hands on what a plan has made while the plan still runs: parts in their order, each
// as soon as the launch that makes the last of it has finished.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace pantala::train {

class EarlySums {
 public:
  EarlySums();
  ~EarlySums();
  EarlySums(const EarlySums&) = delete;
  EarlySums& operator=(const EarlySums&) = delete;

  // Part k can be handed on when so many launches have finished as `ready[k]` says. `hand_on` is
  // called by the thread. Both stay until end().
  void begin(std::span<const std::int64_t> ready, std::function<void(std::size_t part)> hand_on);
  // For the plan's run.
  std::atomic<std::int64_t>* finished() { return &finished_; }
  // The plan has run: returns when all parts have been handed on. Throws what hand_on has thrown.
  void end();
  // The run has failed: the same, but nothing more is handed on and nothing thrown. What hand_on
  // waits for must fail, too.
  void give_up() noexcept;

 private:
  enum class State : std::uint8_t { idle, running, given_up, ending };

  void run();
  void hand_on_all();
  bool wait_for(std::size_t part);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<State> state_ = State::idle;
  std::atomic<std::int64_t> finished_ = 0;
  std::span<const std::int64_t> ready_;
  std::function<void(std::size_t)> hand_on_;
  // When the run began, and how long after that each part was there in the run before: to look all
  // the time would take a share of the CPU that computes.
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::chrono::steady_clock::duration> taken_;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace pantala::train
