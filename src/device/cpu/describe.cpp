#include "device/cpu/describe.h"

#include <fmt/format.h>

#include "device/cpu/host.h"
#include "device/cpu/probe.h"
#include "device/device.h"

namespace pantala::device::cpu {

namespace {

std::vector<Fact> facts_of(const HostDescription& host, int workers) {
  return {{"processor", host.processor},
          {"architecture", host.architecture},
          {"cpu", host.cpu},
          {"vector_bytes", std::int64_t{host.vector_bytes}},
          {"vector_registers", std::int64_t{host.vector_registers}},
          {"fma", host.fma},
          {"l1_bytes", host.caches.l1_bytes},
          {"l1_ways", std::int64_t{host.caches.l1_ways}},
          {"l2_bytes", host.caches.l2_bytes},
          {"l3_bytes", host.caches.l3_bytes},
          {"workers", std::int64_t{workers}}};
}

void add_probe(Description& description) {
  const Probe probe = probe_host();
  description.probed = {{"workers", std::int64_t{probe.workers}},
                        {"gflops_per_second", probe.flops / 1e9},
                        {"gflops_per_second_of_one", probe.flops_of_one / 1e9},
                        {"read_gb_per_second", probe.read_bytes / 1e9},
                        {"copy_gb_per_second", probe.copy_bytes / 1e9}};
  description.text += fmt::format(
      "; measured: {:.1f} GFLOP/s (one worker {:.1f}), reads {:.1f} GB/s, copies {:.1f} GB/s",
      probe.flops / 1e9, probe.flops_of_one / 1e9, probe.read_bytes / 1e9, probe.copy_bytes / 1e9);
}

}  // namespace

Description describe_cpu(bool probe) {
  const HostDescription host = describe_host();
  const HostCaches& caches = host.caches;
  const int workers = default_workers();
  Description description{
      .text = fmt::format("{}: {} {}, vectors of {} bytes, caches of {}, {} and {}, {} worker{}",
                          host.processor, host.architecture, host.cpu, host.vector_bytes,
                          bytes_text(caches.l1_bytes), bytes_text(caches.l2_bytes),
                          bytes_text(caches.l3_bytes), workers, workers == 1 ? "" : "s"),
      .brief = host.processor,
      .facts = facts_of(host, workers)};
  if (probe) add_probe(description);
  return description;
}

}  // namespace pantala::device::cpu
