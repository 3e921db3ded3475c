// Threads that make batches ahead of their reader. Batches come out in order, whoever made them;
// at most `depth` are made or wait at a time. The reader is one thread; its calls never wait for a
// batch that it does not want any more: work that was under way is thrown away when it is done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pantala/data.h"

namespace pantala::data {

class Prefetcher {
 public:
  // Batch number k; called by several threads at a time. It must own what it reads: a thread may
  // still be in it after stop().
  using Make = std::function<Batch(std::int64_t)>;

  // At least one thread, a depth of at least 1. The threads begin with the first start().
  Prefetcher(int threads, std::int64_t depth);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Begins with batch `first`; `end` is the one after the last.
  void start(Make make, std::int64_t first, std::int64_t end);
  void stop();
  bool running() const { return job_ != nullptr; }
  // The next batch, of which there is one. Throws what making it threw, again if asked again.
  Batch take();

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr error;
  };
  // One start(): threads that are still at an older one write into slots that nobody reads.
  struct Job {
    Make make;
    std::int64_t next = 0, end = 0;  // to be made
    std::int64_t reader = 0;         // to be taken
    std::vector<Slot> slots;         // batch k in slot k modulo their number
  };

  void open_threads();
  void work();
  bool has_work() const;

  const int thread_count_;
  const std::int64_t depth_;
  std::mutex mutex_;
  std::condition_variable work_there_, batch_there_;
  std::shared_ptr<Job> job_;  // changed under the mutex, by the reader alone
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pantala::data
