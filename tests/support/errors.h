// What a call throws, as text that a test can compare.
#pragma once

#include <string>

namespace pantala::tests {

// The message of the error of type E that the call throws, or "no error". An error of another type
// fails the test.
template <class E, class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const E& error) { return error.what(); }
  return "no error";
}

}  // namespace pantala::tests
