// The data caches of the processor that this process runs on: what a schedule reckons with, and
// what a description of the machine says.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pantala {

// The defaults stand for what the system does not tell, or tells in a way that makes no sense.
struct HostCaches {
  std::int64_t l1_bytes = 32 << 10;   // of a core
  std::int64_t l2_bytes = 512 << 10;  // of a core
  std::int64_t l3_bytes = 8 << 20;    // shared by the cores
  int l1_ways = 8;
  friend bool operator==(const HostCaches&, const HostCaches&) = default;
};

HostCaches host_caches();

// Changes what a folder like /sys/devices/system/cpu/cpu0/cache tells.
void read_caches(const std::filesystem::path& folder, HostCaches& caches);

}  // namespace pantala
