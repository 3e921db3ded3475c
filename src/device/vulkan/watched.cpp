#include "device/vulkan/watched.h"

#include <map>
#include <mutex>
#include <set>

#include "device/vulkan/faults.h"

namespace pantala::device::vulkan {

namespace {

using Functions = pantala::vulkan::DeviceFunctions;

struct Recorded {
  std::vector<bool> before;  // each dispatch
  bool barrier = false;      // since the last one
};
struct Watched {
  std::mutex mutex;
  Functions real;
  std::map<VkQueue, VkDevice> device_of;
  std::set<VkDevice> lost;
  std::map<VkCommandBuffer, Recorded> recorded;
  std::int64_t objects = 0;
};
// Never destroyed: devices may be, at the end of the process.
Watched& all() {
  static Watched& watched = *new Watched;
  return watched;
}

void count(int change) {
  const std::lock_guard lock(all().mutex);
  all().objects += change;
}

bool is_lost(VkDevice device) {
  const std::lock_guard lock(all().mutex);
  return all().lost.contains(device);
}
// Recording is the host's work: it goes on when the device is lost.
bool is_lost(VkCommandBuffer) { return false; }

// Something that needs memory, and leaves so many objects behind.
template <auto Member, int kMade, class Function>
struct Needs;
template <auto Member, int kMade, class Owner, class... Rest>
struct Needs<Member, kMade, VkResult(VKAPI_PTR*)(Owner, Rest...)> {
  static VkResult VKAPI_CALL call(Owner owner, Rest... rest) {
    if (is_lost(owner)) return VK_ERROR_DEVICE_LOST;
    if (faults().take(Fault::allocation)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    const VkResult result = (all().real.*Member)(owner, rest...);
    if (result == VK_SUCCESS) count(kMade);
    return result;
  }
};

template <auto Member, class Function>
struct Removes;
template <auto Member, class Object>
struct Removes<Member, void(VKAPI_PTR*)(VkDevice, Object, const VkAllocationCallbacks*)> {
  static void VKAPI_CALL call(VkDevice device, Object object, const VkAllocationCallbacks* own) {
    if (object) count(-1);
    (all().real.*Member)(device, object, own);
  }
};

// Something that a lost device can no longer do.
template <auto Member, class Function>
struct Asks;
template <auto Member, class... Rest>
struct Asks<Member, VkResult(VKAPI_PTR*)(VkDevice, Rest...)> {
  static VkResult VKAPI_CALL call(VkDevice device, Rest... rest) {
    const VkResult result = (all().real.*Member)(device, rest...);
    return is_lost(device) ? VK_ERROR_DEVICE_LOST : result;
  }
};

void VKAPI_CALL get_queue(VkDevice device, std::uint32_t family, std::uint32_t index,
                          VkQueue* queue) {
  all().real.GetDeviceQueue(device, family, index, queue);
  const std::lock_guard lock(all().mutex);
  all().device_of[*queue] = device;
}

void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* own) {
  {
    const std::lock_guard lock(all().mutex);
    all().lost.erase(device);
    --all().objects;
  }
  all().real.DestroyDevice(device, own);
}

bool lose(VkDevice device) {
  const std::lock_guard lock(all().mutex);
  all().lost.insert(device);
  return true;
}

VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t number, const VkSubmitInfo* infos,
                           VkFence fence) {
  VkDevice device = nullptr;
  {
    const std::lock_guard lock(all().mutex);
    device = all().device_of.at(queue);
  }
  if (is_lost(device) || (faults().take(Fault::submit) && lose(device)))
    return VK_ERROR_DEVICE_LOST;
  if (faults().take(Fault::allocation)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return all().real.QueueSubmit(queue, number, infos, fence);
}

// What is under way ends in truth: its memory may be given up only then.
VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                    std::uint64_t timeout) {
  const VkResult result = all().real.WaitSemaphores(device, info, timeout);
  return is_lost(device) || (faults().take(Fault::wait) && lose(device)) ? VK_ERROR_DEVICE_LOST
                                                                         : result;
}

VkResult VKAPI_CALL begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  {
    const std::lock_guard lock(all().mutex);
    all().recorded[commands] = {};
  }
  return Needs<&Functions::BeginCommandBuffer, 0, PFN_vkBeginCommandBuffer>::call(commands, info);
}

void VKAPI_CALL dispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                         std::uint32_t z) {
  {
    const std::lock_guard lock(all().mutex);
    Recorded& recorded = all().recorded[commands];
    recorded.before.push_back(recorded.barrier);
    recorded.barrier = false;
  }
  all().real.CmdDispatch(commands, x, y, z);
}

// For what kernels have written and read, to those behind.
bool is_between_kernels(VkPipelineStageFlags from, VkPipelineStageFlags to,
                        const VkMemoryBarrier& memory) {
  constexpr VkAccessFlags kBoth = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  return (from & to & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0 &&
         (memory.srcAccessMask & VK_ACCESS_SHADER_WRITE_BIT) != 0 &&
         (memory.dstAccessMask & kBoth) == kBoth;
}

// Whether it is recorded; those in front of the first dispatch always are.
bool note_barrier(VkCommandBuffer commands) {
  const std::lock_guard lock(all().mutex);
  Recorded& recorded = all().recorded[commands];
  const bool between = !recorded.before.empty();
  if (between && faults().take(Fault::barrier)) return false;
  recorded.barrier = true;
  return !between || !faults().no_barriers;
}

void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                        VkPipelineStageFlags to, VkDependencyFlags flags, std::uint32_t memories,
                        const VkMemoryBarrier* memory, std::uint32_t buffers,
                        const VkBufferMemoryBarrier* buffer, std::uint32_t images,
                        const VkImageMemoryBarrier* image) {
  if (memories == 1 && is_between_kernels(from, to, *memory) && !note_barrier(commands)) return;
  all().real.CmdPipelineBarrier(commands, from, to, flags, memories, memory, buffers, buffer,
                                images, image);
}

}  // namespace

std::int64_t watched_objects() {
  const std::lock_guard lock(all().mutex);
  return all().objects;
}

std::vector<bool> recorded_barriers(VkCommandBuffer commands) {
  const std::lock_guard lock(all().mutex);
  return all().recorded[commands].before;
}

#define PANTALA_MAKES(NAME, MADE) f.NAME = Needs<&Functions::NAME, MADE, PFN_vk##NAME>::call
#define PANTALA_REMOVES(NAME) f.NAME = Removes<&Functions::NAME, PFN_vk##NAME>::call
#define PANTALA_ASKS(NAME) f.NAME = Asks<&Functions::NAME, PFN_vk##NAME>::call

void watch(VkDevice device, Functions& f) {
  {
    const std::lock_guard lock(all().mutex);
    all().real = f;
    all().lost.erase(device);
    ++all().objects;
  }
  PANTALA_MAKES(AllocateMemory, 1);
  PANTALA_MAKES(CreateBuffer, 1);
  PANTALA_MAKES(CreateShaderModule, 1);
  PANTALA_MAKES(CreatePipelineCache, 1);
  PANTALA_MAKES(CreateComputePipelines, 1);
  PANTALA_MAKES(CreatePipelineLayout, 1);
  PANTALA_MAKES(CreateDescriptorSetLayout, 1);
  PANTALA_MAKES(CreateDescriptorPool, 1);
  PANTALA_MAKES(CreateCommandPool, 1);
  PANTALA_MAKES(CreateQueryPool, 1);
  PANTALA_MAKES(CreateSemaphore, 1);
  PANTALA_MAKES(MapMemory, 0);
  PANTALA_MAKES(BindBufferMemory, 0);
  PANTALA_MAKES(AllocateDescriptorSets, 0);
  PANTALA_MAKES(AllocateCommandBuffers, 0);
  PANTALA_MAKES(EndCommandBuffer, 0);
  PANTALA_REMOVES(FreeMemory);
  PANTALA_REMOVES(DestroyBuffer);
  PANTALA_REMOVES(DestroyShaderModule);
  PANTALA_REMOVES(DestroyPipelineCache);
  PANTALA_REMOVES(DestroyPipeline);
  PANTALA_REMOVES(DestroyPipelineLayout);
  PANTALA_REMOVES(DestroyDescriptorSetLayout);
  PANTALA_REMOVES(DestroyDescriptorPool);
  PANTALA_REMOVES(DestroyCommandPool);
  PANTALA_REMOVES(DestroyQueryPool);
  PANTALA_REMOVES(DestroySemaphore);
  PANTALA_ASKS(DeviceWaitIdle);
  PANTALA_ASKS(GetSemaphoreCounterValue);
  PANTALA_ASKS(GetQueryPoolResults);
  f.GetDeviceQueue = get_queue;
  f.DestroyDevice = destroy_device;
  f.QueueSubmit = submit;
  f.WaitSemaphores = wait_semaphores;
  f.BeginCommandBuffer = begin;
  f.CmdDispatch = dispatch;
  f.CmdPipelineBarrier = barrier;
}

#undef PANTALA_MAKES
#undef PANTALA_REMOVES
#undef PANTALA_ASKS

}  // namespace pantala::device::vulkan
