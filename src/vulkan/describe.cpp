#include "vulkan/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pantala::vulkan {

namespace {

struct Properties {
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes{};
  VkPhysicalDeviceMaintenance3Properties allocations{};
  VkPhysicalDeviceSubgroupProperties subgroups{};
  VkPhysicalDeviceFloatControlsProperties floats{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceProperties2 all{};

  Properties(const InstanceFunctions& functions, VkPhysicalDevice handle, bool has_sizes) {
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
    allocations.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    allocations.pNext = has_sizes ? &sizes : nullptr;
    subgroups.pNext = &allocations;
    floats.pNext = &subgroups;
    driver.pNext = &floats;
    all.pNext = &driver;
    functions.GetPhysicalDeviceProperties2(handle, &all);
  }
};

// A kernel must know how many invocations share a subgroup.
void add_subgroups(const InstanceFunctions& functions, const Properties& properties,
                   DeviceInfo& info) {
  const VkPhysicalDeviceSubgroupSizeControlPropertiesEXT& sizes = properties.sizes;
  const VkPhysicalDeviceSubgroupProperties& s = properties.subgroups;
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  info.subgroup = static_cast<int>(s.subgroupSize);
  if ((s.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0 ||
      (s.supportedOperations & kNeeded) != kNeeded || s.subgroupSize < 2 ||
      info.version < VK_API_VERSION_1_3)
    return;
  VkPhysicalDeviceSubgroupSizeControlFeatures control{};
  control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &control;
  functions.GetPhysicalDeviceFeatures2(info.handle, &features);
  info.sizes_subgroups =
      control.subgroupSizeControl == VK_TRUE && control.computeFullSubgroups == VK_TRUE &&
      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      sizes.minSubgroupSize <= s.subgroupSize && s.subgroupSize <= sizes.maxSubgroupSize;
  info.max_subgroups = sizes.maxComputeWorkgroupSubgroups;
  info.shuffles = info.sizes_subgroups || sizes.minSubgroupSize == sizes.maxSubgroupSize;
}

void add_features(const InstanceFunctions& functions, VkPhysicalDevice handle, DeviceInfo& info) {
  VkPhysicalDeviceVulkan12Features later{};
  later.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDevice16BitStorageFeatures half{};
  half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  half.pNext = &later;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &half;
  functions.GetPhysicalDeviceFeatures2(handle, &features);
  info.int64 = features.features.shaderInt64 == VK_TRUE;
  info.float64 = features.features.shaderFloat64 == VK_TRUE;
  info.addresses = later.bufferDeviceAddress == VK_TRUE;
  info.timeline = later.timelineSemaphore == VK_TRUE;
  info.storage8 = later.storageBuffer8BitAccess == VK_TRUE;
  info.storage16 = half.storageBuffer16BitAccess == VK_TRUE;
}

void add_memory(const InstanceFunctions& functions, VkPhysicalDevice handle, DeviceInfo& info) {
  VkPhysicalDeviceMemoryProperties memory{};
  functions.GetPhysicalDeviceMemoryProperties(handle, &memory);
  for (std::uint32_t k = 0; k < memory.memoryHeapCount; ++k)
    if (memory.memoryHeaps[k].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.memory_bytes =
          std::max(info.memory_bytes, static_cast<std::int64_t>(memory.memoryHeaps[k].size));
}

bool computes_with_timestamps(const InstanceFunctions& functions, VkPhysicalDevice handle) {
  std::uint32_t count = 0;
  functions.GetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.GetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  return std::ranges::any_of(families, [](const VkQueueFamilyProperties& family) {
    return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && family.timestampValidBits > 0;
  });
}

void add_limits(const Properties& properties, DeviceInfo& info) {
  const VkPhysicalDeviceLimits& limits = properties.all.properties.limits;
  info.shared_bytes = limits.maxComputeSharedMemorySize;
  info.max_invocations =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  info.max_groups = *std::ranges::min_element(limits.maxComputeWorkGroupCount);
  info.uniform_alignment = static_cast<std::int64_t>(limits.minUniformBufferOffsetAlignment);
  info.max_allocation = static_cast<std::int64_t>(std::min<VkDeviceSize>(
      properties.allocations.maxMemoryAllocationSize, VkDeviceSize{1} << 46));
}

}  // namespace

DeviceInfo describe(const InstanceFunctions& functions, VkPhysicalDevice handle) {
  VkPhysicalDeviceProperties basic{};
  functions.GetPhysicalDeviceProperties(handle, &basic);
  DeviceInfo info;
  info.handle = handle;
  info.name = basic.deviceName;
  info.version = basic.apiVersion;
  info.software = basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  info.integrated = info.software || basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  info.identity =
      fmt::format("{:x}:{:x} {:x}", basic.vendorID, basic.deviceID, basic.driverVersion);
  if (info.version < VK_API_VERSION_1_2) return info;
  const bool has_sizes = info.version >= VK_API_VERSION_1_3;
  const Properties properties(functions, handle, has_sizes);
  info.driver = fmt::format("{}, {}", properties.driver.driverName, properties.driver.driverInfo);
  info.identity += ' ' + info.name + ' ' + info.driver;
  add_limits(properties, info);
  add_memory(functions, handle, info);
  add_features(functions, handle, info);
  if (computes_with_timestamps(functions, handle)) info.timestamp_ns = basic.limits.timestampPeriod;
  info.keeps_subnormals = properties.floats.shaderDenormPreserveFloat32 == VK_TRUE;
  info.keeps_special = properties.floats.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  info.rounds_to_even = properties.floats.shaderRoundingModeRTEFloat32 == VK_TRUE;
  add_subgroups(functions, properties, info);
  return info;
}

std::string DeviceInfo::missing() const {
  if (version < VK_API_VERSION_1_2) return fmt::format("Vulkan 1.2 (it has {})", version_text());
  std::vector<std::string_view> list;
  if (!int64) list.emplace_back("64-bit integers (shaderInt64)");
  if (!addresses) list.emplace_back("addresses of buffers (bufferDeviceAddress)");
  if (!timeline) list.emplace_back("timeline semaphores");
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string DeviceInfo::version_text() const {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                     VK_API_VERSION_PATCH(version));
}

}  // namespace pantala::vulkan
