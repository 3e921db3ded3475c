// The processor that this process runs on, in plain numbers: what a schedule for it must know.
// Nothing here reads a clock or the number of threads, so that what is decided by it is the same in
// every run on a machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace pantala::device::cpu {

struct HostDescription {
  std::string processor;     // "Intel(R) Xeon(R) ...", or the code generator's name for it
  std::string architecture;  // "x86_64"
  std::string cpu;           // the code generator's name: "sapphirerapids"
  int vector_bytes = 16;     // the widest vector register
  int vector_registers = 16;
  bool fma = false;                   // in hardware
  std::int64_t l1_bytes = 32 << 10;   // data cache of a core
  std::int64_t l2_bytes = 512 << 10;  // of a core
  std::int64_t l3_bytes = 8 << 20;    // shared by the cores
  int l1_ways = 8;
  friend bool operator==(const HostDescription&, const HostDescription&) = default;
};

// The defaults stand for what the system does not tell, or tells in a way that makes no sense.
HostDescription describe_host();

// The cache part of it, from a folder like /sys/devices/system/cpu/cpu0/cache: changes what it
// finds there.
void read_caches(const std::filesystem::path& folder, HostDescription& host);

}  // namespace pantala::device::cpu
