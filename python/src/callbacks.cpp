#include "trainer_box.h"

namespace pantala::python {

Request RunControl::poll() {
  look_for_signals();
  if (stopped_ || error_) return Request::save_and_stop;
  return saves_.exchange(false) ? Request::save : Request::none;
}

void RunControl::reset() {
  stopped_ = saves_ = interrupted_ = false;
  error_ = nullptr;
  looked_ = Clock::now();
}

// Often enough for somebody who waits, rarely enough to cost nothing.
void RunControl::look_for_signals() {
  constexpr std::chrono::milliseconds kInterval{20};
  const Clock::time_point now = Clock::now();
  if (now - looked_ < kInterval) return;
  looked_ = now;
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() == 0) return;
  nb::python_error raised;
  if (raised.matches(PyExc_KeyboardInterrupt))
    interrupt();
  else
    fail(std::make_exception_ptr(std::move(raised)));
}

void RunControl::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
}

void RunControl::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

template <class... Args>
void PythonCallback::call(const char* method, Args... args) {
  if (control_->has_failed()) return;
  const nb::gil_scoped_acquire lock;
  try {
    kept_->attr(method)(args...);
  } catch (const nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt))
      control_->interrupt();
    else
      control_->fail(std::current_exception());
  }
}

void PythonCallback::on_start(Trainer&) { call("on_start"); }
void PythonCallback::on_gradients(Session&) { call("on_gradients"); }
void PythonCallback::on_step(const StepMetrics& m) { call("on_step", m.epoch, m.step, m.loss); }
bool PythonCallback::looks_at(std::int64_t) { return true; }
void PythonCallback::on_epoch(const EpochStats& s) {
  call("on_epoch", s.epoch, s.avg_loss, s.steps);
}
void PythonCallback::on_activity(const Activity& activity) {
  constexpr const char* kNames[] = {"training", "compiling", "validating"};
  call("on_activity", kNames[static_cast<std::size_t>(activity.kind)], activity.batch,
       activity.batches);
}

}  // namespace pantala::python
