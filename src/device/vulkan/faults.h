// Faults on purpose, for tests of what happens then: the n-th memory that is asked for is refused,
// the device is lost at the n-th submission, the code of a kernel computes something else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kir/kernel.h"

namespace pantala::device::vulkan {

enum class Fault : std::uint8_t { allocation, submit };

// One for the process; not for several threads. In a command that is tested it comes from the
// variable PANTALA_VULKAN_FAULT: "allocation=3", "submit=10", "kernel=NAME" (a part of its name),
// "staging" (memory is never reached by the host directly), "plain" (no memory of bytes and halves
// of words, no double precision, no subgroups), "inexact" (division and square root are taken to be
// rounded wrongly), several separated by commas.
class Faults {
 public:
  Faults();
  // Whether this is the occurrence that fails.
  bool take(Fault fault);
  bool is_perturbed(std::string_view kernel) const {
    return !perturbed_kernel.empty() && kernel.find(perturbed_kernel) != kernel.npos;
  }

  std::int64_t allocation = 0, submission = 0;  // the n-th from now on; 0: none
  std::string perturbed_kernel = {};
  bool staging = false, plain = false, inexact = false;
};
Faults& faults();

// The kernel with the sign of every float that it stores turned.
kir::Kernel perturbed(kir::Kernel kernel);

}  // namespace pantala::device::vulkan
