// Signals of a run. The first SIGINT or SIGTERM asks for a checkpoint and the end, a second one
// ends the process at once; SIGUSR1 asks for a checkpoint. Handlers only set flags, which poll()
// reads between two batches. A file that grows beyond the limit of the process is an error of the
// write, and no signal.
#pragma once

#include <csignal>

#include "pantala/trainer.h"

namespace pantala::tools {

// Handlers are in place as long as it lives; those before it come back afterwards. One at a time.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  Request poll() const;
  // The name of the signal that asks to stop; null: none did.
  const char* stop_signal() const;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {}, user_ = {}, file_size_ = {};
};

}  // namespace pantala::tools
