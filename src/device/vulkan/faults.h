// Faults on purpose, for tests of what happens then: something that is asked for is refused, the
// device is lost, the code of a kernel computes something else, a barrier is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kir/kernel.h"

namespace pantala::device::vulkan {

enum class Fault : std::uint8_t { allocation, submit, wait, barrier };

// One for the process. In a command that is tested it comes from the variable PANTALA_VULKAN_FAULT:
// "allocation=3" (the third thing that may find no memory does), "submit=10", "wait=10" (the device
// is lost there), "kernel=NAME" (a part of its name), "barrier=2" (the second barrier of plans is
// left out), "no_barriers" (drivers get none, but nobody here knows), "watch" (nothing fails),
// "staging" (memory is never reached by the host directly), "plain" (no memory of bytes and halves
// of words, no double precision, no subgroups), "inexact" (division and square root are taken to be
// rounded wrongly), several separated by commas.
class Faults {
 public:
  Faults();
  // Whether this is the occurrence that fails. Any thread may ask.
  bool take(Fault fault);
  bool is_perturbed(std::string_view kernel) const {
    return !perturbed_kernel.empty() && kernel.find(perturbed_kernel) != kernel.npos;
  }

  // Devices that are opened from now on go through the functions of watched.h, which the next ones
  // need; modules are validated, and barriers compared with what plans need.
  bool watches = false;
  std::int64_t allocation = 0, submission = 0, waiting = 0;  // the n-th from now on; 0: none
  std::int64_t barrier = 0;
  bool no_barriers = false;
  std::string perturbed_kernel = {};
  bool staging = false, plain = false, inexact = false;
};
Faults& faults();

// The kernel with the sign of every float that it stores turned, and zeros for integers, which no
// memory ends before.
kir::Kernel perturbed(kir::Kernel kernel);

}  // namespace pantala::device::vulkan
