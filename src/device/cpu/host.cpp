#include "device/cpu/host.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "codegen/llvm/llvm.h"

namespace pantala::device::cpu {

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

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

void read_caches(const std::filesystem::path& folder, HostDescription& host) {
  constexpr int kMostIndices = 16;
  constexpr std::int64_t kLeastCache = 4 << 10;
  for (int index = 0; index < kMostIndices; ++index) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    const std::string type = first_line(cache / "type"), level = first_line(cache / "level");
    const auto bytes = number_of(first_line(cache / "size"));
    if ((type != "Data" && type != "Unified") || !bytes || *bytes < kLeastCache) continue;
    if (level == "1") {
      host.l1_bytes = *bytes;
      // 0 stands for fully associative, which no first-level cache is.
      if (const auto ways = number_of(first_line(cache / "ways_of_associativity"));
          ways && *ways <= 1024)
        host.l1_ways = static_cast<int>(*ways);
    } else if (level == "2") {
      host.l2_bytes = *bytes;
    } else if (level == "3") {
      host.l3_bytes = *bytes;
    }
  }
  // A level that is missing, or hidden from a virtual machine, is no smaller than the one before.
  host.l2_bytes = std::max(host.l1_bytes, host.l2_bytes);
  host.l3_bytes = std::max(host.l2_bytes, host.l3_bytes);
}

HostDescription describe_host() {
  const codegen::HostTarget target = codegen::detect_host();
  HostDescription host;
  host.processor = processor_name();
  if (host.processor.empty()) host.processor = target.cpu;
  host.architecture = target.triple.substr(0, target.triple.find('-'));
  host.cpu = target.cpu;
  host.vector_bytes = target.vector_bytes;
  host.vector_registers = target.vector_registers;
  host.fma = target.fma;
  read_caches("/sys/devices/system/cpu/cpu0/cache", host);
  return host;
}

}  // namespace pantala::device::cpu
