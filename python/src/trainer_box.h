// A trainer as Python holds it, with its session in use by the same thread, and what Python's
// callbacks ask it to do.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>

#include "compile.h"
#include "loaders.h"
#include "pantala/trainer.h"
#include "session_box.h"

namespace pantala::python {

// What becomes of a run between two batches: it ends, with its checkpoint, when a callback of
// Python asks for it or has thrown, and when the user has pressed Ctrl-C.
class RunControl {
 public:
  // The interpreter's lock is not held.
  Request poll();
  // Before another run. The lock is held.
  void reset();
  void stop() { stopped_ = true; }
  void save() { saves_ = true; }
  // Keeps what a callback has thrown, for rethrow(). The lock is held.
  void fail(std::exception_ptr error);
  // Ctrl-C: the run ends with its checkpoint, and its caller goes on.
  void interrupt() { interrupted_ = stopped_ = true; }
  bool has_failed() const { return error_ != nullptr; }
  // The lock is held.
  void rethrow();
  bool was_interrupted() const { return interrupted_; }

 private:
  void look_for_signals();

  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stopped_ = false, saves_ = false;
  std::atomic<bool> interrupted_ = false;
  std::exception_ptr error_;
  Clock::time_point looked_ = Clock::now();
};

class TrainerBox {
 public:
  TrainerBox(Trainer trainer, std::shared_ptr<Interrupts> interrupts)
      : trainer_(shared_unless_forked(std::move(trainer), usable_)),
        interrupts_(std::move(interrupts)) {}

  template <class F>
  auto use(F&& work) const {
    const Usable::Use use(*usable_);
    return work(*trainer_);
  }
  template <class F>
  auto run(F&& work) const {
    const Usable::Use use(*usable_);
    const nb::gil_scoped_release others_run;
    return work(*trainer_);
  }
  SessionBox session() const {
    return {std::shared_ptr<Session>(trainer_, &trainer_->session()), usable_};
  }
  // Runs fit() of some kind; Ctrl-C ends it also while it compiles.
  template <class F>
  FitResult fit(RunControl& control, F&& work) const {
    interrupts_->reset(std::this_thread::get_id());
    FitResult result;
    try {
      result = run(work);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) throw;
      // In the middle of the user's own data: the batch is asked for again, and the run ends with
      // it.
      control.interrupt();
      result = run(work);
    }
    control.rethrow();
    interrupts_->forget_interrupt();
    interrupts_->rethrow();
    return result;
  }

 private:
  std::shared_ptr<Usable> usable_ = std::make_shared<Usable>("trainer");
  std::shared_ptr<Trainer> trainer_;
  std::shared_ptr<Interrupts> interrupts_;  // of its compilations
};

// Calls an object of Python's side of the package (pantala/_callbacks.py).
class PythonCallback : public MetricCallback {
 public:
  PythonCallback(nb::object called, std::shared_ptr<RunControl> control)
      : kept_(kept_object(std::move(called))), control_(std::move(control)) {}
  void on_start(Trainer& trainer) override;
  void on_gradients(Session& session) override;
  void on_step(const StepMetrics& metrics) override;
  bool looks_at(std::int64_t global_step) override;
  void on_epoch(const EpochStats& stats) override;
  void on_activity(const Activity& activity) override;

 private:
  template <class... Args>
  void call(const char* method, Args... args);

  std::shared_ptr<nb::object> kept_;
  std::shared_ptr<RunControl> control_;
};

// {"items": 10, "loss": 0.5, "values": {"accuracy": 0.9}, "confusion": [(truth, predicted, n)]}
nb::dict to_python(const Evaluation& evaluation);
nb::dict to_python(const TrainHistory& history);
// What fit() is told; the loader of the validation must outlive it.
FitOptions fit_options(const nb::dict& values, LoaderBox* validation,
                       const std::shared_ptr<RunControl>& control);

}  // namespace pantala::python
