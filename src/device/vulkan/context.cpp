#include "device/vulkan/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/vulkan/faults.h"
#include "device/vulkan/watched.h"
#include "pantala/error.h"

namespace pantala::device::vulkan {

namespace {

// The queue that computes and does least beside it.
std::uint32_t compute_family(const vk::InstanceFunctions& functions, const vk::DeviceInfo& info) {
  std::uint32_t count = 0;
  functions.GetPhysicalDeviceQueueFamilyProperties(info.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.GetPhysicalDeviceQueueFamilyProperties(info.handle, &count, families.data());
  std::uint32_t best = count;
  for (std::uint32_t k = 0; k < count; ++k) {
    if ((families[k].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (info.timestamp_ns > 0 && families[k].timestampValidBits == 0) continue;
    const bool alone = (families[k].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0;
    if (best == count || alone) best = k;
  }
  if (best == count) throw DeviceError(fmt::format("{} does not compute", info.name));
  return best;
}

}  // namespace

Context::Context(const vk::DeviceInfo& info, Empty) : instance_(vk::Instance::get()), info_(info) {}

// What was made before something fails is given back: the destructor is that of an empty one.
Context::Context(const vk::DeviceInfo& info) : Context(info, Empty{}) {
  open_device();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  check(f_.CreateCommandPool(device_, &pool, nullptr, &pool_), "a command pool");
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  check(f_.CreateSemaphore(device_, &semaphore, nullptr, &timeline_), "a timeline");
}

void Context::open_device() {
  const vk::InstanceFunctions& functions = instance_->functions();
  family_ = compute_family(functions, info_);
  functions.GetPhysicalDeviceMemoryProperties(info_.handle, &memory_);
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features later{};
  later.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  later.bufferDeviceAddress = VK_TRUE;
  later.timelineSemaphore = VK_TRUE;
  later.storageBuffer8BitAccess = info_.storage8 ? VK_TRUE : VK_FALSE;
  VkPhysicalDevice16BitStorageFeatures half{};
  half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  half.storageBuffer16BitAccess = info_.storage16 ? VK_TRUE : VK_FALSE;
  half.pNext = &later;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{};
  subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  subgroups.subgroupSizeControl = VK_TRUE;
  subgroups.computeFullSubgroups = VK_TRUE;
  if (info_.sizes_subgroups) later.pNext = &subgroups;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.features.shaderInt64 = VK_TRUE;
  features.features.shaderFloat64 = info_.float64 ? VK_TRUE : VK_FALSE;
  features.pNext = &half;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  const VkResult result = faults().take(Fault::allocation)
                              ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                              : functions.CreateDevice(info_.handle, &create, nullptr, &device_);
  if (result != VK_SUCCESS)
    throw DeviceError(fmt::format("{} cannot be opened: {}", info_.name, vk::result_text(result)));
#define PANTALA_LOOK_UP(NAME) \
  f_.NAME = reinterpret_cast<PFN_vk##NAME>(functions.GetDeviceProcAddr(device_, "vk" #NAME));
  PANTALA_VULKAN_DEVICE_FUNCTIONS(PANTALA_LOOK_UP)
#undef PANTALA_LOOK_UP
  if (faults().watches) watch(device_, f_);
  f_.GetDeviceQueue(device_, family_, 0, &queue_);
}

Context::~Context() {
  if (!device_) return;
  come_to_rest();
  if (timeline_) f_.DestroySemaphore(device_, timeline_, nullptr);
  if (pool_) f_.DestroyCommandPool(device_, pool_, nullptr);
  f_.DestroyDevice(device_, nullptr);
}

void Context::check(VkResult result, std::string_view what) const {
  if (result == VK_SUCCESS) return;
  lost_ = lost_ || result == VK_ERROR_DEVICE_LOST;
  const std::string text =
      fmt::format("vulkan, {}: {}: {}", info_.name, what, vk::result_text(result));
  if (lost_) throw DeviceLostError(text + "; what was in its memory is gone");
  throw DeviceError(text);
}

std::optional<std::uint32_t> Context::memory_type(std::uint32_t allowed,
                                                  VkMemoryPropertyFlags flags) const {
  for (std::uint32_t k = 0; k < memory_.memoryTypeCount; ++k)
    if ((allowed >> k & 1U) != 0 && (memory_.memoryTypes[k].propertyFlags & flags) == flags)
      return k;
  return std::nullopt;
}

VkCommandBuffer Context::new_commands() {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = nullptr;
  check(f_.AllocateCommandBuffers(device_, &info, &commands), "a command buffer");
  return commands;
}

void Context::free_commands(VkCommandBuffer commands) {
  if (commands) f_.FreeCommandBuffers(device_, pool_, 1, &commands);
}

VkCommandBuffer Context::take_commands() {
  std::uint64_t reached = 0;
  check(f_.GetSemaphoreCounterValue(device_, timeline_, &reached), "commands");
  if (!in_use_.empty() && in_use_.front().first <= reached) {
    const VkCommandBuffer commands = in_use_.front().second;
    in_use_.erase(in_use_.begin());
    return commands;
  }
  return new_commands();
}

std::uint64_t Context::Lent::submit(VkCommandBuffer then) const {
  const VkCommandBuffer both[] = {commands_, then};
  const std::uint64_t ticket = context_.submit(std::span(both).first(then ? 2 : 1));
  submitted_ = true;
  context_.in_use_.emplace_back(ticket, commands_);
  return ticket;
}

void Context::begin(VkCommandBuffer commands, bool once) const {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
                    : VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  check(f_.BeginCommandBuffer(commands, &info), "recording");
  barrier(commands);
}

void Context::end(VkCommandBuffer commands) const {
  barrier_to_host(commands);
  check(f_.EndCommandBuffer(commands), "recording");
}

void Context::barrier(VkCommandBuffer commands) const {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                         VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  f_.CmdPipelineBarrier(commands, kStages, kStages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Context::barrier_to_host(VkCommandBuffer commands) const {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
  f_.CmdPipelineBarrier(commands,
                        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

std::uint64_t Context::submit(std::span<const VkCommandBuffer> commands) {
  if (lost_) check(VK_ERROR_DEVICE_LOST, "submitting");
  const std::uint64_t ticket = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &ticket;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.commandBufferCount = static_cast<std::uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  check(f_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "submitting");
  submitted_ = ticket;
  return ticket;
}

void Context::wait(std::uint64_t ticket) const {
  if (ticket == 0) return;
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &ticket;
  check(f_.WaitSemaphores(device_, &info, UINT64_MAX), "waiting");
}

// Where the device is lost that is the answer at once, and nothing runs any more.
void Context::come_to_rest() const noexcept { f_.DeviceWaitIdle(device_); }

}  // namespace pantala::device::vulkan
