#include "tools/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace pantala::tools {

namespace {

constexpr std::int64_t kSameRequest = 2'000'000'000;  // nanoseconds

// Handlers may use them: they have no lock.
std::atomic<int> stop_requested_by = 0;  // the signal
std::atomic<std::int64_t> stop_time = 0;
std::atomic<bool> save_requested = false;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

extern "C" void on_stop(int signal) {
  const int error = errno;
  int none = 0;
  if (stop_requested_by.compare_exchange_strong(none, signal))
    stop_time = now();
  else if (const std::int64_t first = stop_time; first != 0 && now() - first > kSameRequest)
    _exit(128 + signal);
  errno = error;
}
extern "C" void on_save(int) { save_requested = true; }

}  // namespace

SignalWatch::SignalWatch() {
  stop_requested_by = 0;
  stop_time = 0;
  save_requested = false;
  install(SIGINT, on_stop);
  install(SIGTERM, on_stop);
  struct sigaction hang_up = {};
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
    install(SIGHUP, on_stop);
  install(SIGUSR1, on_save);
  install(SIGXFSZ, SIG_IGN);
  install(SIGPIPE, SIG_IGN);
}

// A process that was told to stop is about to end: what it has saved is told by its exit code,
// which a signal that comes meanwhile must not replace.
SignalWatch::~SignalWatch() {
  if (stop_requested()) return;
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
}

void SignalWatch::install(int signal, void (*handler)(int)) {
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  if (sigaction(signal, &action, &before) == 0) before_.emplace_back(signal, before);
}

Request SignalWatch::poll() const {
  if (stop_requested()) return Request::save_and_stop;
  return save_requested.exchange(false) ? Request::save : Request::none;
}

const char* SignalWatch::stop_signal() const {
  switch (stop_requested_by) {
    case 0:
      return nullptr;
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "SIGTERM";
  }
}

}  // namespace pantala::tools
