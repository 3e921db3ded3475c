#include "base/host_caches.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace pantala {

namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "48K", "2M", "12".
std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number <= 0 || number > (std::int64_t{1} << 30)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return number;
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return std::nullopt;
}

// What the C library has from the processor itself. Of the third level it may tell the sum of a
// package, of which a core sees a part.
HostCaches caches_of_processor() {
  const auto known = [](int name, std::int64_t otherwise) {
    const long value = sysconf(name);
    return value > 0 ? value : otherwise;
  };
  HostCaches caches;
  caches.l1_bytes = known(_SC_LEVEL1_DCACHE_SIZE, caches.l1_bytes);
  caches.l1_ways = static_cast<int>(known(_SC_LEVEL1_DCACHE_ASSOC, caches.l1_ways));
  caches.l2_bytes = known(_SC_LEVEL2_CACHE_SIZE, caches.l2_bytes);
  caches.l3_bytes = known(_SC_LEVEL3_CACHE_SIZE, caches.l3_bytes);
  return caches;
}

}  // namespace

void read_caches(const std::filesystem::path& folder, HostCaches& caches) {
  constexpr int kMostIndices = 16;
  constexpr std::int64_t kLeastCache = 4 << 10;
  for (int index = 0; index < kMostIndices; ++index) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    const std::string type = first_line(cache / "type"), level = first_line(cache / "level");
    const auto bytes = number_of(first_line(cache / "size"));
    if ((type != "Data" && type != "Unified") || !bytes || *bytes < kLeastCache) continue;
    if (level == "1") {
      caches.l1_bytes = *bytes;
      // 0 stands for fully associative, which no first-level cache is.
      if (const auto ways = number_of(first_line(cache / "ways_of_associativity"));
          ways && *ways <= 1024)
        caches.l1_ways = static_cast<int>(*ways);
    } else if (level == "2") {
      caches.l2_bytes = *bytes;
    } else if (level == "3") {
      caches.l3_bytes = *bytes;
    }
  }
  // A level that is missing, or hidden from a virtual machine, is no smaller than the one before.
  caches.l2_bytes = std::max(caches.l1_bytes, caches.l2_bytes);
  caches.l3_bytes = std::max(caches.l2_bytes, caches.l3_bytes);
}

HostCaches host_caches() {
  HostCaches caches = caches_of_processor();
  read_caches("/sys/devices/system/cpu/cpu0/cache", caches);
  return caches;
}

}  // namespace pantala
