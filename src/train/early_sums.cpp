#include "train/early_sums.h"

#include <chrono>
#include <limits>
#include <utility>

namespace pantala::train {

namespace {

using Clock = std::chrono::steady_clock;

// Between two looks once a part is about to be there.
constexpr std::chrono::microseconds kLook{50};

}  // namespace

EarlySums::EarlySums() : thread_([this] { run(); }) {}

EarlySums::~EarlySums() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::ending;
    changed_.notify_all();
  }
  thread_.join();
}

void EarlySums::begin(std::span<const std::int64_t> ready,
                      std::function<void(std::size_t)> hand_on) {
  const std::lock_guard lock(mutex_);
  finished_ = 0;
  ready_ = ready;
  hand_on_ = std::move(hand_on);
  thrown_ = nullptr;
  begin_ = Clock::now();
  taken_.resize(ready.size());
  state_ = State::running;
  changed_.notify_all();
}

void EarlySums::end() {
  finished_ = std::numeric_limits<std::int64_t>::max();
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  changed_.wait(lock, [&] { return state_ == State::idle; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void EarlySums::give_up() noexcept {
  std::unique_lock lock(mutex_);
  if (state_ != State::running) return;
  state_ = State::given_up;
  changed_.notify_all();
  changed_.wait(lock, [&] { return state_ == State::idle; });
}

void EarlySums::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return state_ != State::idle; });
    if (state_ == State::ending) return;
    lock.unlock();
    try {
      hand_on_all();
    } catch (...) { thrown_ = std::current_exception(); }
    lock.lock();
    if (state_ == State::ending) return;
    state_ = State::idle;
    changed_.notify_all();
  }
}

void EarlySums::hand_on_all() {
  for (std::size_t part = 0; part < ready_.size(); ++part) {
    if (!wait_for(part)) return;
    hand_on_(part);
  }
}

// False: the run was given up.
bool EarlySums::wait_for(std::size_t part) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] {
    return finished_.load(std::memory_order_acquire) >= ready_[part] || state_ != State::running;
  };
  changed_.wait_until(lock, begin_ + taken_[part] * 15 / 16, is_over);
  while (!is_over()) changed_.wait_for(lock, kLook);
  taken_[part] = Clock::now() - begin_;
  return finished_.load(std::memory_order_acquire) >= ready_[part];
}

}  // namespace pantala::train
