#include "base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace pantala {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto take_parts = [&] {
    for (std::size_t k = next++; k < count; k = next++) {
      try {
        work(k);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (int t = 1; t < threads && static_cast<std::size_t>(t) < count; ++t)
        helpers.emplace_back(take_parts);
    } catch (const std::system_error&) {
      // The system gives no more threads: those that there are do the work.
    }
    take_parts();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace pantala
