// The device for tests: runs a plan with the kernel-IR interpreter, one launch after the other, and
// checks what a fast device takes on trust: bounds, races between items, and that launches that
// share memory are ordered. The arena is filled with NaNs before every run, so that reading a
// temporary that nothing has written shows; with AddressSanitizer a launch can reach no other
// temporaries than its own.
#pragma once

#include <memory>

#include "device/describe.h"
#include "device/device.h"

namespace pantala::device::kernel_ir {

std::unique_ptr<Device> make_kir_device(const DeviceOptions& options = {});
Description describe_kir(bool probe);

}  // namespace pantala::device::kernel_ir
