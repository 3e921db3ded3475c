#include "tools/profile/limits.h"

#include "device/cpu/probe.h"

namespace pantala::tools {

MachineLimits probed_limits(int threads) {
  const device::cpu::Probe probe = device::cpu::probe_host({.workers = threads});
  return {.flops = probe.flops, .bytes = probe.bytes()};
}

}  // namespace pantala::tools
