// Signals of a run. The first SIGINT, SIGTERM or SIGHUP asks for a checkpoint and the end; another
// one in the next two seconds is the same request (timeout(1) signals a process and its group, so
// that it gets two), a later one ends the process at once. SIGUSR1 asks for a checkpoint. Handlers
// only set flags, which poll() reads between two batches and stop_requested() while something is
// compiled. A SIGHUP that the process was told to ignore (nohup) stays ignored. A file that grows
// beyond the limit of the process and a reader who has gone are errors of the write, and no
// signals.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

#include "pantala/trainer.h"

namespace pantala::tools {

// Handlers are in place as long as it lives; those before it come back afterwards, unless a signal
// has asked to stop. One at a time.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  Request poll() const;
  // From any thread.
  bool stop_requested() const { return stop_signal() != nullptr; }
  // The name of the signal that asks to stop; null: none did.
  const char* stop_signal() const;

 private:
  void install(int signal, void (*handler)(int));

  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace pantala::tools
