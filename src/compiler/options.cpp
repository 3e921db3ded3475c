#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "base/host_caches.h"
#include "codegen/llvm/llvm.h"
#include "pantala/error.h"
#include "schedule/cpu/archetypes.h"

namespace pantala::compiler {

namespace {

schedule::Target host_target() { return schedule_target(codegen::detect_host()); }
std::string host_code() { return codegen::target_name(codegen::detect_host()); }
codegen::CompiledKernels compile_for_host(std::span<const kir::Kernel> kernels, int threads,
                                          const codegen::BeforeEach& before_each) {
  return codegen::compile_all(kernels, codegen::detect_host(), threads, before_each);
}

// The interpreter runs the kernels of the CPU.
constexpr Backend kBackends[] = {
    {"cpu", schedule::cpu::archetypes, host_target, host_code, compile_for_host},
    {"kir", schedule::cpu::archetypes, host_target, host_code, nullptr},
};

}  // namespace

const Backend& backend_of(std::string_view device) {
  for (const Backend& backend : kBackends)
    if (backend.device == device) return backend;
  throw UnsupportedError(fmt::format("there is no code for the device '{}'; there are {}", device,
                                     fmt::join(backend_names(), ", ")));
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.emplace_back(backend.device);
  return names;
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
  const Backend& backend = backend_of(device);
  if (threads < 0) throw TypeError(fmt::format("threads must not be negative, got {}", threads));
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {.device = device,
          .target = backend.target(),
          .fuse = fuse,
          .threads = threads == 0 ? available : threads};
}

}  // namespace pantala::compiler
