#include "compiler/options.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

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
  schedule::Target target{.vector_bytes = host.vector_bytes,
                          .vector_registers = host.vector_registers};
  const auto known = [](int name, std::int64_t otherwise) {
    const long value = sysconf(name);
    return value > 0 ? value : otherwise;
  };
  target.l1_bytes = known(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l1_ways = static_cast<int>(known(_SC_LEVEL1_DCACHE_ASSOC, target.l1_ways));
  target.l2_bytes = known(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = known(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
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
