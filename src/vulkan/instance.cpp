#include "vulkan/instance.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "vulkan/describe.h"

namespace pantala::vulkan {

namespace {

constexpr const char* kLibrary = "libvulkan.so.1";

}  // namespace

std::string Instance::open() {
  library_ = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library_) return fmt::format("the Vulkan loader ({}) is not installed", kLibrary);
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(  //
      dlsym(library_, "vkGetInstanceProcAddr"));
  if (!get) return fmt::format("{} is no Vulkan loader", kLibrary);
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (!create) return fmt::format("{} cannot make an instance", kLibrary);
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "pantala";
  application.apiVersion = VK_API_VERSION_1_3;  // what of it a device has is used
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (const VkResult result = create(&info, nullptr, &instance_); result != VK_SUCCESS) {
    instance_ = nullptr;
    return fmt::format("Vulkan: {}", result_text(result));
  }
#define PANTALA_LOOK_UP(NAME) \
  functions_.NAME = reinterpret_cast<PFN_vk##NAME>(get(instance_, "vk" #NAME));
  PANTALA_VULKAN_INSTANCE_FUNCTIONS(PANTALA_LOOK_UP)
#undef PANTALA_LOOK_UP
  if (!functions_.GetPhysicalDeviceFeatures2 || !functions_.GetPhysicalDeviceProperties2)
    return "the Vulkan loader is older than Vulkan 1.1";
  return list();
}

std::string Instance::list() {
  std::uint32_t count = 0;
  functions_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  const VkResult result = functions_.EnumeratePhysicalDevices(instance_, &count, handles.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE)
    return fmt::format("Vulkan: {}", result_text(result));
  handles.resize(count);
  for (const VkPhysicalDevice handle : handles) {
    devices_.push_back(describe(functions_, handle));
    devices_.back().number = static_cast<int>(devices_.size()) - 1;
  }
  return devices_.empty() ? "Vulkan has no driver with a device" : "";
}

Instance::~Instance() {
  if (instance_) functions_.DestroyInstance(instance_, nullptr);
  // The library stays: drivers leave threads and handlers behind that unloading would pull away.
}

std::shared_ptr<const Instance> Instance::get(std::string* why) {
  static std::mutex mutex;
  static std::shared_ptr<const Instance> made;
  static std::string reason;
  static bool tried = false;
  const std::lock_guard lock(mutex);
  if (!tried) {
    std::shared_ptr<Instance> fresh(new Instance());
    reason = fresh->open();
    tried = true;
    if (reason.empty()) made = std::move(fresh);
  }
  if (why) *why = reason;
  return made;
}

std::vector<DeviceInfo> devices() {
  const std::shared_ptr<const Instance> instance = Instance::get();
  return instance ? instance->devices() : std::vector<DeviceInfo>{};
}

}  // namespace pantala::vulkan
