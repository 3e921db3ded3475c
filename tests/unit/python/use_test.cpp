// Who uses a session of the Python package: one thread at a time, however many try. It needs no
// Python, so that it also runs where threads are watched (make test-tsan).
#include "python/src/use.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pantala::python {
namespace {

TEST(PythonUse, only_one_thread_at_a_time_has_it) {
  constexpr int kThreads = 4, kTries = 20000;
  Usable usable("session");
  std::int64_t held = 0;  // by whoever has it, without any other protection
  std::atomic<std::int64_t> taken = 0, refused = 0;
  const auto tries = [&] {
    for (int k = 0; k < kTries; ++k) {
      try {
        const Usable::Use outer(usable);
        const Usable::Use inner(usable);  // a callback of the same thread
        ++held;
        ++taken;
      } catch (const ThreadError&) { ++refused; }
    }
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k) threads.emplace_back(tries);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held, taken);
  EXPECT_EQ(taken + refused, std::int64_t{kThreads} * kTries);
  EXPECT_GT(taken, 0);
  EXPECT_NO_THROW(Usable::Use{usable});
}

TEST(PythonUse, a_thread_that_comes_in_between_is_refused) {
  Usable usable("trainer");
  const Usable::Use here(usable);
  std::string message;
  std::thread([&] {
    try {
      const Usable::Use there(usable);
    } catch (const ThreadError& error) { message = error.what(); }
  }).join();
  EXPECT_NE(message.find("this trainer"), std::string::npos);
}

TEST(PythonUse, a_forked_process_is_told) {
  Usable usable("session");
  const pid_t child = fork();
  if (child == 0) {
    try {
      const Usable::Use use(usable);
    } catch (const ThreadError&) { _exit(7); }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(usable.is_of_a_parent());
}

}  // namespace
}  // namespace pantala::python
