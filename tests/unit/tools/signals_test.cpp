// Signals in a process of its own, which ends by one or with the code that the function gives.
#include "tools/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace pantala::tools {
namespace {

constexpr int kSaved = 75;

int end_of(const std::function<int()>& process) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(process());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Signals, after_a_request_to_stop_do_not_end_the_process_while_it_winds_up) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(end_of([&] {
                {
                  const SignalWatch watch;
                  ::raise(signal);
                  if (watch.poll() != Request::save_and_stop) return 1;
                }
                ::raise(signal);
                return kSaved;
              }),
              kSaved);
}

TEST(Signals, without_a_request_are_afterwards_what_they_were_before) {
  EXPECT_EQ(end_of([] {
              { const SignalWatch watch; }
              ::raise(SIGTERM);
              return kSaved;
            }),
            128 + SIGTERM);
}

TEST(Signals, that_nohup_ignores_stay_ignored) {
  EXPECT_EQ(end_of([] {
              ::signal(SIGHUP, SIG_IGN);
              const SignalWatch watch;
              ::raise(SIGHUP);
              return watch.poll() == Request::none ? kSaved : 1;
            }),
            kSaved);
}

}  // namespace
}  // namespace pantala::tools
