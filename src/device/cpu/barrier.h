// How CPU workers wait for each other: they spin for a while and then sleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace pantala::device::cpu {

constexpr std::size_t kCacheLine = 64;

// A hint to the processor that this thread spins.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when the word is no longer `old`. Whoever changes it must store with seq_cst (so that the
// store is seen before the sleepers are counted) and call notify_all.
inline void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                         std::chrono::microseconds spin) {
  constexpr int kPausesPerLook = 64;  // at the clock
  if (spin.count() > 0) {
    std::chrono::steady_clock::time_point begin{};
    for (bool first = true;; first = false) {
      for (int k = 0; k < kPausesPerLook; ++k) {
        if (word.load(std::memory_order_acquire) != old) return;
        relax();
      }
      const auto now = std::chrono::steady_clock::now();
      if (first) begin = now;
      if (now - begin > spin) break;
      // Whoever is waited for may stand in the queue of this very CPU.
      std::this_thread::yield();
    }
  }
  word.wait(old, std::memory_order_acquire);
}

// A sense-reversing barrier; the sense is the last bit of a generation that counts up, so that a
// sleeper cannot mistake one round for another.
class Barrier {
 public:
  Barrier(int workers, std::chrono::microseconds spin) : workers_(workers), spin_(spin) {}

  // Returns when all workers have come. What they did before is seen by all of them afterwards.
  void arrive_and_wait() {
    if (workers_ == 1) return;
    // It cannot change before this worker has come.
    const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_seq_cst);
      generation_.notify_all();
    } else {
      await_change(generation_, generation, spin_);
    }
  }

 private:
  const int workers_;
  const std::chrono::microseconds spin_;
  alignas(kCacheLine) std::atomic<int> arrived_{0};
  alignas(kCacheLine) std::atomic<std::uint32_t> generation_{0};
};

}  // namespace pantala::device::cpu
