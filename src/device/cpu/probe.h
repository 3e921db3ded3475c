// Measures what this machine can do at most: multiply-adds on registers, and bytes between memory
// and the cores, by generated code on the workers of a device. What kernels reach is compared with
// it; nothing is decided by it, so that results never depend on a clock.
#pragma once

#include <algorithm>

namespace pantala::device::cpu {

struct Probe {
  int workers = 1;
  // In a second, by all workers; of f32, a multiply-add being two.
  double flops = 0;
  double flops_of_one = 0;  // worker alone
  double read_bytes = 0;    // reading alone
  double copy_bytes = 0;    // read and written
  double bytes() const { return std::max(read_bytes, copy_bytes); }
};

struct ProbeOptions {
  int workers = 0;         // 0: one per CPU
  double seconds = 0.05;   // for each figure, the best of the turns that fit into it
  double megabytes = 128;  // that are read or copied: more than caches hold
};

// DeviceError for a number of workers that is not possible.
Probe probe_host(const ProbeOptions& options = {});

}  // namespace pantala::device::cpu
