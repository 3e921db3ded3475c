// The errors of Pantala. Bad input always ends in one of these, with a message that says what was
// wrong, where, and what would be right; only our own bugs are InternalError. Nothing aborts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pantala {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Shapes, dtypes, attributes, names: the program asks for something that has no meaning.
class TypeError : public Error {
 public:
  using Error::Error;
};

// A text or a file that is not what it claims to be. The message starts with file and position.
class ParseError : public Error {
 public:
  using Error::Error;
};

// Valid, but not done here. Lists all that is missing at once.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

class DeviceError : public Error {
 public:
  using Error::Error;
};

// A GPU that has hung, was reset or was taken out; what was in its memory is gone with it.
class DeviceLostError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// A file that cannot be opened, read or written.
class IoError : public Error {
 public:
  using Error::Error;
};

// A value met at run time that the program must not see: an index or a class out of range.
class ValueError : public Error {
 public:
  using Error::Error;
};

// A bug of Pantala.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace pantala
