#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/host_caches.h"
#include "pantala/error.h"
#include "schedule/cpu/archetypes.h"

namespace pantala::compiler {

namespace {

constexpr Backend kBackends[] = {
    {"cpu", schedule::cpu::archetypes, true},
    {"kir", schedule::cpu::archetypes, false},
};

}  // namespace

const Backend& backend_of(std::string_view device) {
  std::vector<std::string_view> names;
  for (const Backend& backend : kBackends) {
    if (backend.device == device) return backend;
    names.push_back(backend.device);
  }
  throw UnsupportedError(fmt::format("there is no code for the device '{}'; there are {}", device,
                                     fmt::join(names, ", ")));
}

schedule::Target schedule_target(const codegen::HostTarget& host) {
  const HostCaches caches = host_caches();
  return {.vector_bytes = host.vector_bytes,
          .vector_registers = host.vector_registers,
          .l1_bytes = caches.l1_bytes,
          .l2_bytes = caches.l2_bytes,
          .l3_bytes = caches.l3_bytes,
          .l1_ways = caches.l1_ways};
}

Options host_options(const std::string& device, int threads, bool fuse) {
  backend_of(device);  // refuses what is none
  if (threads < 0) throw TypeError(fmt::format("threads must not be negative, got {}", threads));
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const codegen::HostTarget host = codegen::detect_host();
  return {.device = device,
          .target = schedule_target(host),
          .code = host,
          .fuse = fuse,
          .threads = threads == 0 ? available : threads};
}

}  // namespace pantala::compiler
