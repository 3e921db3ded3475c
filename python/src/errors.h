// Errors that only Python's side of a program can make.
#pragma once

#include "pantala/error.h"

namespace pantala::python {

// Something is used by two threads at a time, or in a process that was forked from its own.
class ThreadError : public Error {
 public:
  using Error::Error;
};

// Something is used that was closed.
class ClosedError : public Error {
 public:
  using Error::Error;
};

}  // namespace pantala::python
