#include <fmt/format.h>

#include "base/text.h"
#include "device/vulkan/vulkan_device.h"
#include "pantala/error.h"
#include "vulkan/instance.h"

namespace pantala::device::vulkan {

namespace vk = pantala::vulkan;

std::vector<std::string> choices() {
  std::vector<std::string> list;
  for (const vk::DeviceInfo& info : vk::devices()) list.push_back(std::to_string(info.number));
  return list;
}

Description describe_vulkan(std::string_view choice, bool) {
  vk::DeviceInfo info;
  try {
    info = vk::choose(choice);
  } catch (const DeviceError& error) { return {.text = error.what(), .brief = error.what()}; }
  return {.text = fmt::format(
              "{}{}: {}, Vulkan {}, {} of memory, {} of shared memory, {} invocations in subgroups "
              "of {}",
              info.name, info.software ? " (software)" : "", info.driver, info.version_text(),
              bytes_text(info.memory_bytes), bytes_text(info.shared_bytes), info.max_invocations,
              info.subgroup),
          .brief = info.name,
          .facts = {{"device", info.name},
                    {"driver", info.driver},
                    {"vulkan", info.version_text()},
                    {"software", info.software},
                    {"memory_bytes", info.memory_bytes},
                    {"max_allocation", info.max_allocation},
                    {"shared_bytes", info.shared_bytes},
                    {"max_invocations", info.max_invocations},
                    {"subgroup", std::int64_t{info.subgroup}},
                    {"storage8", info.storage8},
                    {"storage16", info.storage16},
                    {"keeps_subnormals", info.keeps_subnormals}}};
}

}  // namespace pantala::device::vulkan
