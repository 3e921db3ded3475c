#include "tools/signals.h"

#include <unistd.h>

namespace pantala::tools {

namespace {

volatile std::sig_atomic_t stop_requested = 0;  // the signal
volatile std::sig_atomic_t save_requested = 0;

extern "C" void on_stop(int signal) {
  if (stop_requested != 0) _exit(128 + signal);
  stop_requested = signal;
}
extern "C" void on_save(int) { save_requested = 1; }

void install(int signal, void (*handler)(int), struct sigaction* before) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, before);
}

}  // namespace

SignalWatch::SignalWatch() {
  stop_requested = 0;
  save_requested = 0;
  install(SIGINT, on_stop, &interrupt_);
  install(SIGTERM, on_stop, &terminate_);
  install(SIGUSR1, on_save, &user_);
  install(SIGXFSZ, SIG_IGN, &file_size_);
}

SignalWatch::~SignalWatch() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGUSR1, &user_, nullptr);
  sigaction(SIGXFSZ, &file_size_, nullptr);
}

Request SignalWatch::poll() const {
  if (stop_requested != 0) return Request::save_and_stop;
  if (save_requested == 0) return Request::none;
  save_requested = 0;
  return Request::save;
}

const char* SignalWatch::stop_signal() const {
  if (stop_requested == 0) return nullptr;
  return stop_requested == SIGINT ? "SIGINT" : "SIGTERM";
}

}  // namespace pantala::tools
