#include "device/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/kir/kir_device.h"
#include "pantala/error.h"

namespace pantala::device {

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Device> (*make)(const DeviceOptions&);
};
constexpr Row kDevices[] = {
    {"cpu", [](const DeviceOptions& options) { return cpu::make_cpu_device(options); }},
    {"kir", [](const DeviceOptions& options) { return kernel_ir::make_kir_device(options); }},
};

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
  for (const Row& row : kDevices)
    if (row.name == name) return row.make(options);
  const std::vector<std::string> names = device_names();
  throw UnsupportedError(fmt::format("there is no device '{}'{}; there are: {}", name,
                                     did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace pantala::device
