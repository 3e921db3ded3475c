// Two threads on two CPUs that share work, for measurements of kernels without an executor.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace pantala::bench {

inline void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// A second thread that spins for work, as the workers of an executor do within a step.
class Pair {
 public:
  Pair() : thread_([this] { serve(); }) { run_on(0); }
  ~Pair() { stop_ = true, round_.fetch_add(1); }
  void run(const std::function<void(int)>& work) {
    work_ = [&] { work(1); };
    round_.fetch_add(1);
    work(0);
    while (done_.load() != round_.load()) {}
  }

 private:
  void serve() {
    run_on(1);
    for (int seen = 0;;) {
      while (round_.load() == seen) {}
      ++seen;
      if (stop_) return;
      work_();
      done_.store(seen);
    }
  }
  std::function<void()> work_;
  std::atomic<int> round_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pantala::bench
