#include "device/cpu/host.h"

#include <fstream>

#include "codegen/llvm/llvm.h"

namespace pantala::device::cpu {

namespace {

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
  host.caches = host_caches();
  return host;
}

}  // namespace pantala::device::cpu
