// Options of a compilation and of a session as Python's functions hand them over.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "bind.h"
#include "pantala/cancelled.h"
#include "pantala/compile.h"
#include "pantala/session.h"

namespace pantala::python {

// Of the keys that `compile`, `build_session` and the trainer have in common.
CompileOptions compile_options(const nb::dict& given);
SessionOptions session_options(const nb::dict& given);

// Lets Ctrl-C end a compilation: asked by the threads that compile, of which only the one that
// made it looks for signals. The interpreter's lock is not held.
class Interrupts {
 public:
  // Whether to stop; from then on it stays so.
  bool operator()();
  // Throws what the user's handler of the signal has raised, if it has. The lock is held.
  void rethrow();
  // Drops a KeyboardInterrupt: whoever was interrupted returns to its caller. The lock is held.
  void forget_interrupt();
  // Before other work of the same thread. The lock is held.
  void reset(std::thread::id thread);

 private:
  std::atomic<std::thread::id> thread_ = std::this_thread::get_id();
  std::atomic<bool> stopped_ = false;
  std::unique_ptr<nb::python_error> raised_;
};

// Runs work without the interpreter's lock; what a signal's handler raised comes first.
template <class F>
auto interruptible(CompileOptions& options, F&& work,
                   const std::shared_ptr<Interrupts>& interrupts = std::make_shared<Interrupts>()) {
  options.cancelled = [interrupts] { return (*interrupts)(); };
  try {
    const nb::gil_scoped_release others_run;
    return work();
  } catch (const CancelledError&) {
    interrupts->rethrow();
    throw;
  }
}

}  // namespace pantala::python
