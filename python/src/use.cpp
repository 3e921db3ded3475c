#include "use.h"

#include <pthread.h>

namespace pantala::python {

int forks() {
  static std::atomic<int> count = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return count.load(std::memory_order_relaxed);
}

Usable::Use::Use(Usable& used) : used_(used) {
  if (used.is_of_a_parent())
    throw ThreadError("this " + used.what_ +
                      " belongs to the process that this one was forked from, and its threads are "
                      "not here: make it behind the fork, or start processes by 'spawn' "
                      "(multiprocessing.set_start_method)");
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id owner = {};
  if (!used.owner_.compare_exchange_strong(owner, self) && owner != self)
    throw ThreadError("another thread is using this " + used.what_ +
                      "; it may be used from any thread, but from one at a time");
  ++used.depth_;
}

Usable::Use::~Use() {
  if (--used_.depth_ == 0) used_.owner_.store({});
}

}  // namespace pantala::python
