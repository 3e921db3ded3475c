// A pool of workers: the caller's thread and workers - 1 threads of its own, woken once per job.
#pragma once

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "device/cpu/barrier.h"

namespace pantala::device::cpu {

class WorkerPool {
 public:
  // What every worker runs, worker 0 being the caller. A plain function, so that starting one
  // allocates nothing.
  using Job = void (*)(void* context, int worker);

  // `workers` is at least 1. DeviceError if the system gives no more threads.
  WorkerPool(int workers, std::chrono::microseconds spin);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns when all workers have finished; throws what the first of them (by number) has thrown.
  // One caller at a time.
  void run(Job job, void* context);
  // For use inside of a job: all workers must come, equally often, whatever happens to them.
  void barrier() { barrier_.arrive_and_wait(); }
  int workers() const { return workers_; }

 private:
  void serve(int worker);
  void work(int worker) noexcept;
  void stop();

  const int workers_;
  const std::chrono::microseconds spin_;
  Barrier barrier_;
  alignas(kCacheLine) std::atomic<std::uint32_t> start_{0};  // counts jobs
  Job job_ = nullptr;                                        // null: the threads end
  void* context_ = nullptr;
  std::vector<std::exception_ptr> errors_;  // by worker
  std::vector<std::thread> threads_;
};

}  // namespace pantala::device::cpu
