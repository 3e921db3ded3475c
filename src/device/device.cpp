#include "device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/describe.h"
#include "device/describe.h"
#include "device/kir/kir_device.h"
#include "pantala/error.h"

namespace pantala::device {

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Device> (*make)(const DeviceOptions&);
  Description (*describe)(bool probe);
};
constexpr Row kDevices[] = {
    {"cpu", cpu::make_cpu_device, cpu::describe_cpu},
    {"kir", kernel_ir::make_kir_device, kernel_ir::describe_kir},
};

const Row& row_of(std::string_view name) {
  for (const Row& row : kDevices)
    if (row.name == name) return row;
  const std::vector<std::string> names = device_names();
  throw UnsupportedError(fmt::format("there is no device '{}'{}; there are: {}", name,
                                     did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace

void RunTimes::sum_up() {
  for (std::size_t k = 0; k < launches.size(); ++k) {
    LaunchTime& time = launches[k];
    time.begin = shares[k].begin;
    time.duration = time.longest = shares[k].end - shares[k].begin;
    for (std::size_t worker = 1; worker < workers(); ++worker)
      time.longest = std::max(time.longest, shares_of(worker)[k].end - shares_of(worker)[k].begin);
  }
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Row& row : kDevices) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<Device> make_device(std::string_view name, const DeviceOptions& options) {
  return row_of(name).make(options);
}

Description describe(std::string_view name, bool probe) { return row_of(name).describe(probe); }

int default_workers() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxWorkers);
}

}  // namespace pantala::device
