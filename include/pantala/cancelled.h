// What was asked for was called off in the middle, by whoever asked for it.
#pragma once

#include "pantala/error.h"

namespace pantala {

class CancelledError : public Error {
 public:
  using Error::Error;
};

}  // namespace pantala
