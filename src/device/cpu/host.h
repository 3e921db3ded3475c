// The processor that this process runs on, in plain numbers: what a schedule for it must know.
// Nothing here reads a clock or the number of threads, so that what is decided by it is the same in
// every run on a machine.
#pragma once

#include <string>

#include "base/host_caches.h"

namespace pantala::device::cpu {

struct HostDescription {
  std::string processor;     // "Intel(R) Xeon(R) ...", or the code generator's name for it
  std::string architecture;  // "x86_64"
  std::string cpu;           // the code generator's name: "sapphirerapids"
  int vector_bytes = 16;     // the widest vector register
  int vector_registers = 16;
  bool fma = false;  // in hardware
  HostCaches caches;
  friend bool operator==(const HostDescription&, const HostDescription&) = default;
};

HostDescription describe_host();

}  // namespace pantala::device::cpu
