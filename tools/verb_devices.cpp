// pantala devices: what programs can be run on here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/cpu/host.h"
#include "device/cpu/probe.h"
#include "tools/command.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(std::int64_t bytes) {
  return bytes % (1 << 20) == 0 ? fmt::format("{} MiB", bytes >> 20)
                                : fmt::format("{} KiB", bytes >> 10);
}

// With what the processor does at most, if that is to be measured.
Json cpu_row(bool probes) {
  const device::cpu::HostDescription host = device::cpu::describe_host();
  const int workers = device::cpu::default_workers();
  Json row{{"name", "cpu"},
           {"description",
            fmt::format("{}: {} {}, vectors of {} bytes, caches of {}, {} and {}, {} worker{}",
                        host.processor, host.architecture, host.cpu, host.vector_bytes,
                        bytes_text(host.caches.l1_bytes), bytes_text(host.caches.l2_bytes),
                        bytes_text(host.caches.l3_bytes), workers, workers == 1 ? "" : "s")},
           {"processor", host.processor},
           {"architecture", host.architecture},
           {"cpu", host.cpu},
           {"vector_bytes", host.vector_bytes},
           {"vector_registers", host.vector_registers},
           {"fma", host.fma},
           {"l1_bytes", host.caches.l1_bytes},
           {"l1_ways", host.caches.l1_ways},
           {"l2_bytes", host.caches.l2_bytes},
           {"l3_bytes", host.caches.l3_bytes},
           {"workers", workers}};
  if (!probes) return row;
  const device::cpu::Probe probe = device::cpu::probe_host();
  row["probe"] = {{"workers", probe.workers},
                  {"gflops_per_second", probe.flops / 1e9},
                  {"gflops_per_second_of_one", probe.flops_of_one / 1e9},
                  {"read_gb_per_second", probe.read_bytes / 1e9},
                  {"copy_gb_per_second", probe.copy_bytes / 1e9}};
  row["description"] = fmt::format(
      "{}; measured: {:.1f} GFLOP/s (one worker {:.1f}), reads {:.1f} GB/s, copies {:.1f} GB/s",
      row["description"].get<std::string>(), probe.flops / 1e9, probe.flops_of_one / 1e9,
      probe.read_bytes / 1e9, probe.copy_bytes / 1e9);
  return row;
}

std::vector<Json> rows(bool probes) {
  return {
      cpu_row(probes),
      {{"name", "kir"},
       {"description",
        "the interpreter of kernels: the bits of the CPU, with bounds and races checked; slow"}},
      {{"name", "ref"},
       {"description", "the reference interpreter: every op in double precision; slow"}}};
}

}  // namespace

Run devices_verb(CLI::App& verb) {
  const auto json = std::make_shared<bool>(false), probes = std::make_shared<bool>(false);
  verb.add_flag(
      "--probe", *probes,
      "Measure what the processor does at most: multiply-adds of f32 on all threads and on "
      "one, and bytes of memory that are read or copied");
  verb.add_flag("--json", *json, "One JSON object a line");
  return [json, probes] {
    for (const Json& row : rows(*probes)) {
      if (*json)
        fmt::print("{}\n", row.dump());
      else
        fmt::print("{:4}  {}\n", row.at("name").get<std::string>(),
                   row.at("description").get<std::string>());
    }
    return 0;
  };
}

}  // namespace pantala::tools
