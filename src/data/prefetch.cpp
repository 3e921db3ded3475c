#include "data/prefetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "pantala/error.h"

namespace pantala::data {

Prefetcher::Prefetcher(int threads, std::int64_t depth) : thread_count_(threads), depth_(depth) {}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::open_threads() {
  while (threads_.size() < static_cast<std::size_t>(thread_count_)) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      // Fewer threads are slower, and give the same batches.
      if (!threads_.empty()) return;
      throw DeviceError(fmt::format("cannot start a thread that loads data: {}", error.what()));
    }
  }
}

void Prefetcher::start(Make make, std::int64_t first, std::int64_t end) {
  open_threads();
  auto job = std::make_shared<Job>();
  job->make = std::move(make);
  job->next = job->reader = first;
  job->end = end;
  job->slots.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(end - first, 1, depth_)));
  {
    const std::lock_guard lock(mutex_);
    job_.swap(job);  // the old one is freed after the lock
  }
  work_there_.notify_all();
}

void Prefetcher::stop() {
  std::shared_ptr<Job> old;
  const std::lock_guard lock(mutex_);
  job_.swap(old);
}

Batch Prefetcher::take() {
  std::optional<Batch> batch;
  {
    std::unique_lock lock(mutex_);
    Job& job = *job_;
    Slot& slot = job.slots[static_cast<std::size_t>(job.reader) % job.slots.size()];
    batch_there_.wait(lock, [&] { return slot.batch || slot.error; });
    if (slot.error) std::rethrow_exception(slot.error);
    batch.swap(slot.batch);
    ++job.reader;
  }
  work_there_.notify_one();
  return std::move(*batch);
}

bool Prefetcher::has_work() const {
  return job_ && job_->next < job_->end &&
         job_->next - job_->reader < static_cast<std::int64_t>(job_->slots.size());
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_there_.wait(lock, [this] { return closing_ || has_work(); });
    if (closing_) return;
    const std::shared_ptr<Job> job = job_;
    const std::int64_t number = job->next++;
    Slot made;
    lock.unlock();
    try {
      made.batch = job->make(number);
    } catch (...) { made.error = std::current_exception(); }
    lock.lock();
    job->slots[static_cast<std::size_t>(number) % job->slots.size()] = std::move(made);
    batch_there_.notify_one();
  }
}

}  // namespace pantala::data
