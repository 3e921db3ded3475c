#include "device/cpu/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "device/float_environment.h"
#include "pantala/error.h"

namespace pantala::device::cpu {

WorkerPool::WorkerPool(int workers, std::chrono::microseconds spin)
    : workers_(workers),
      spin_(spin),
      barrier_(workers, spin),
      errors_(static_cast<std::size_t>(std::max(workers, 0))) {
  if (workers < 1) throw DeviceError(fmt::format("a pool of {} workers", workers));
  try {
    for (int worker = 1; worker < workers; ++worker)
      threads_.emplace_back([this, worker] { serve(worker); });
  } catch (const std::system_error& e) {
    stop();
    throw DeviceError(fmt::format("{} threads cannot be started: {}", workers - 1, e.what()));
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  job_ = nullptr;
  start_.fetch_add(1, std::memory_order_seq_cst);
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::serve(int worker) {
  const DefaultFloatEnvironment environment;
  for (std::uint32_t seen = 0;; ++seen) {
    await_change(start_, seen, spin_);
    if (!job_) return;
    work(worker);
    barrier_.arrive_and_wait();
  }
}

void WorkerPool::work(int worker) noexcept {
  try {
    job_(context_, worker);
  } catch (...) { errors_[static_cast<std::size_t>(worker)] = std::current_exception(); }
}

void WorkerPool::run(Job job, void* context) {
  job_ = job;
  context_ = context;
  if (workers_ > 1) {
    start_.fetch_add(1, std::memory_order_seq_cst);
    start_.notify_all();
  }
  work(0);
  barrier_.arrive_and_wait();
  std::exception_ptr first;
  for (std::exception_ptr& error : errors_) {
    const std::exception_ptr taken = std::exchange(error, nullptr);
    if (!first) first = taken;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace pantala::device::cpu
