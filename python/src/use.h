// Who uses a session (or a trainer and its session) at the moment. Python's threads may call it at
// any time, and a step lets them run; so every call takes the thing first, and two at a time are a
// ThreadError instead of a race. The thread that has it may take it again: callbacks of a trainer
// look at its session.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "errors.h"

namespace pantala::python {

// Grows in every process that is forked from one that has this module.
int forks();

class Usable {
 public:
  explicit Usable(std::string what) : what_(std::move(what)) {}
  Usable(const Usable&) = delete;
  Usable& operator=(const Usable&) = delete;

  // Whether this process is a fork of the one that made it: threads that it needs are not there.
  bool is_of_a_parent() const { return forks_ != forks(); }
  const std::string& what() const { return what_; }

  class Use {
   public:
    // ThreadError as above.
    explicit Use(Usable& used);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Usable& used_;
  };

 private:
  const std::string what_;
  const int forks_ = forks();
  std::atomic<std::thread::id> owner_ = {};
  int depth_ = 0;  // of the owner's calls
};

}  // namespace pantala::python
