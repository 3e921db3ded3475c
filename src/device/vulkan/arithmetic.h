// Whether a device computes as kernels ask for: rounds correctly, and goes through long loops.
// Vulkan promises that of sums and products; division and square root may be 2.5 units off, and fma
// may be a product and a sum. It is found out by computing many of them; what is not right is
// computed in integers from then on (codegen/spirv/rounding.h). Vulkan has no limit to the rounds
// of a loop, but drivers do; kernels look out for it there.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace pantala::device::vulkan {

struct Arithmetic {
  bool divides = true, takes_roots = true, fuses = true;  // correctly rounded
  bool finishes_loops = true;
  std::vector<std::string> inexact() const;  // "division", "square root", "fma"
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

// Computes them; on a device of which nothing else is known yet.
Arithmetic test_arithmetic(Device& device);

// Of a device and driver (vulkan::DeviceInfo::identity), for all plans that this process loads;
// all is right until something else is known.
Arithmetic known_arithmetic(const std::string& identity);
void note_arithmetic(const std::string& identity, const Arithmetic& arithmetic);
// The same by the name of a device, "vulkan:0".
void note_arithmetic_of(std::string_view device, const Arithmetic& arithmetic);

}  // namespace pantala::device::vulkan
