// Results that are made before they are wanted, one after the other in the order in which they were
// added, by a thread of its own that gives way to others: whoever makes use of the time meanwhile
// is not to be slowed down. What making one throws is thrown to whoever takes it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace pantala {

// The calling thread, and those that it starts from now on, get less time than others.
void give_way_to_other_threads() noexcept;

// One thread adds, takes and destroys.
template <class Key, class Result>
class Ahead {
 public:
  // The token says when the result is not wanted any more.
  using Make = std::function<Result(std::stop_token)>;

  Ahead() = default;
  // Waits until what is being made has ended.
  ~Ahead() = default;
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // Does nothing for a key that is there already, or if the system gives no thread: then take()
  // gives nothing.
  void add(const Key& key, Make make) {
    const std::lock_guard lock(mutex_);
    if (holds(key)) return;
    waiting_.emplace_back(key, std::move(make));
    if (working_) return;
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
      working_ = true;
    } catch (const std::system_error&) { waiting_.clear(); }
  }

  // The result, once: waits while it is being made. None if it was not added, or if nobody has
  // begun to make it: then whoever wants it now makes it sooner, and it is forgotten here.
  std::optional<Result> take(const Key& key) {
    std::unique_lock lock(mutex_);
    std::erase_if(waiting_, [&](const Waiting& one) { return one.first == key; });
    const auto found = begun_.find(key);
    if (found == begun_.end()) return {};
    ended_.wait(lock, [&] { return found->second.ended; });
    Made made = std::move(found->second);
    begun_.erase(found);
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.result);
  }

  // Whether it was added, and not taken.
  bool has(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return holds(key);
  }
  // Whether take() would not have to wait for it.
  bool is_made(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = begun_.find(key);
    return found != begun_.end() && found->second.ended;
  }

 private:
  using Waiting = std::pair<Key, Make>;
  struct Made {
    bool ended = false;
    std::optional<Result> result = {};
    std::exception_ptr error = {};
  };

  // With the lock held.
  bool holds(const Key& key) const {
    return begun_.contains(key) ||
           std::ranges::find(waiting_, key, &Waiting::first) != waiting_.end();
  }

  void work(const std::stop_token& stop) {
    give_way_to_other_threads();
    std::unique_lock lock(mutex_);
    while (!waiting_.empty() && !stop.stop_requested()) {
      const auto [key, make] = std::move(waiting_.front());
      waiting_.pop_front();
      begun_.try_emplace(key);
      lock.unlock();
      Made made = made_by(make, stop);
      lock.lock();
      begun_.at(key) = std::move(made);
      ended_.notify_all();
    }
    working_ = false;
  }

  static Made made_by(const Make& make, const std::stop_token& stop) {
    Made made{.ended = true};
    try {
      made.result = make(stop);
    } catch (...) { made.error = std::current_exception(); }
    return made;
  }

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<Waiting> waiting_;
  std::map<Key, Made> begun_;
  bool working_ = false;  // the thread will look at what waits
  std::jthread thread_;   // the last member: it ends before the others go
};

}  // namespace pantala
