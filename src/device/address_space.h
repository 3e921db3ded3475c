// Where slices of a device's memory lie: addresses to compare and to hand to kernels, which the
// host can follow or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/device.h"

namespace pantala::device {

class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  // The address of a slice that lies within its memory; `what` starts the message if it does not.
  virtual std::byte* at(const Slice& slice, std::string_view what) const = 0;
  // Changes with every memory that is freed: addresses that were looked up before may be stale.
  virtual std::uint64_t generation() const = 0;

 protected:
  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = default;
  AddressSpace& operator=(const AddressSpace&) = default;
};

}  // namespace pantala::device
