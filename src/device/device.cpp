#include "device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/describe.h"
#include "device/describe.h"
#include "device/kir/kir_device.h"
#include "device/vulkan/vulkan_device.h"
#include "pantala/error.h"
#include "vulkan/instance.h"

namespace pantala::device {

namespace {

// The choice is what stands behind a colon: which one, where there may be several.
struct Row {
  std::string_view name;
  std::unique_ptr<Device> (*make)(std::string_view choice, const DeviceOptions&);
  Description (*describe)(std::string_view choice, bool probe);
  std::vector<std::string> (*choices)() = nullptr;  // null: there is only one
  bool has_driver = false;
};
constexpr Row kDevices[] = {
    {"cpu",
     [](std::string_view, const DeviceOptions& options) { return cpu::make_cpu_device(options); },
     [](std::string_view, bool probe) { return cpu::describe_cpu(probe); }},
    {"kir",
     [](std::string_view, const DeviceOptions& options) {
       return kernel_ir::make_kir_device(options);
     },
     [](std::string_view, bool probe) { return kernel_ir::describe_kir(probe); }},
    {"vulkan", vulkan::make_vulkan_device, vulkan::describe_vulkan, vulkan::choices, true},
};

constexpr std::string_view kAutomatic = "auto";

struct Chosen {
  const Row* row;  // null: there is none
  std::string_view choice;
};
Chosen find(std::string_view name) {
  if (name == kAutomatic) return find(pantala::vulkan::resolved_device(name));
  const std::size_t colon = name.find(':');
  for (const Row& row : kDevices)
    if (row.name == name.substr(0, colon) && (row.choices || colon == name.npos))
      return {&row, colon == name.npos ? "" : name.substr(colon + 1)};
  return {nullptr, ""};
}

Chosen row_of(std::string_view name) {
  if (const Chosen found = find(name); found.row) return found;
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

bool is_device_name(std::string_view name) {
  return name == kAutomatic || find(name).row != nullptr;
}

bool has_driver(std::string_view name) {
  const Row* row = find(name).row;
  return row && row->has_driver;
}

std::vector<std::string> devices_here() {
  std::vector<std::string> names;
  for (const Row& row : kDevices) {
    const std::vector<std::string> choices =
        row.choices ? row.choices() : std::vector<std::string>{};
    for (const std::string& choice : choices)
      names.push_back(fmt::format("{}:{}", row.name, choice));
    if (choices.empty()) names.emplace_back(row.name);
  }
  return names;
}

std::unique_ptr<Device> make_device(std::string_view name, const DeviceOptions& options) {
  const Chosen chosen = row_of(name);
  return chosen.row->make(chosen.choice, options);
}

Description describe(std::string_view name, bool probe) {
  const Chosen chosen = row_of(name);
  return chosen.row->describe(chosen.choice, probe);
}

std::string bytes_text(std::int64_t bytes) {
  return bytes % (1 << 20) == 0 ? fmt::format("{} MiB", bytes >> 20)
                                : fmt::format("{} KiB", bytes >> 10);
}

int default_workers() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxWorkers);
}

}  // namespace pantala::device
