// The functions of Vulkan that we call, looked up at run time: nothing links against a driver or
// the loader, so that the program also starts where there is neither.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace pantala::vulkan {

#define PANTALA_VULKAN_INSTANCE_FUNCTIONS(ROW) \
  ROW(DestroyInstance)                         \
  ROW(EnumeratePhysicalDevices)                \
  ROW(GetPhysicalDeviceProperties)             \
  ROW(GetPhysicalDeviceProperties2)            \
  ROW(GetPhysicalDeviceFeatures2)              \
  ROW(GetPhysicalDeviceMemoryProperties)       \
  ROW(GetPhysicalDeviceQueueFamilyProperties)  \
  ROW(CreateDevice)                            \
  ROW(GetDeviceProcAddr)

#define PANTALA_VULKAN_DEVICE_FUNCTIONS(ROW) \
  ROW(DestroyDevice)                         \
  ROW(GetDeviceQueue)                        \
  ROW(QueueSubmit)                           \
  ROW(DeviceWaitIdle)                        \
  ROW(AllocateMemory)                        \
  ROW(FreeMemory)                            \
  ROW(MapMemory)                             \
  ROW(CreateBuffer)                          \
  ROW(DestroyBuffer)                         \
  ROW(GetBufferMemoryRequirements)           \
  ROW(BindBufferMemory)                      \
  ROW(GetBufferDeviceAddress)                \
  ROW(CreateShaderModule)                    \
  ROW(DestroyShaderModule)                   \
  ROW(CreatePipelineCache)                   \
  ROW(DestroyPipelineCache)                  \
  ROW(GetPipelineCacheData)                  \
  ROW(CreateComputePipelines)                \
  ROW(DestroyPipeline)                       \
  ROW(CreatePipelineLayout)                  \
  ROW(DestroyPipelineLayout)                 \
  ROW(CreateDescriptorSetLayout)             \
  ROW(DestroyDescriptorSetLayout)            \
  ROW(CreateDescriptorPool)                  \
  ROW(DestroyDescriptorPool)                 \
  ROW(AllocateDescriptorSets)                \
  ROW(UpdateDescriptorSets)                  \
  ROW(CreateCommandPool)                     \
  ROW(DestroyCommandPool)                    \
  ROW(AllocateCommandBuffers)                \
  ROW(FreeCommandBuffers)                    \
  ROW(BeginCommandBuffer)                    \
  ROW(EndCommandBuffer)                      \
  ROW(CmdBindPipeline)                       \
  ROW(CmdBindDescriptorSets)                 \
  ROW(CmdDispatch)                           \
  ROW(CmdPipelineBarrier)                    \
  ROW(CmdCopyBuffer)                         \
  ROW(CmdFillBuffer)                         \
  ROW(CmdUpdateBuffer)                       \
  ROW(CmdResetQueryPool)                     \
  ROW(CmdWriteTimestamp)                     \
  ROW(CreateQueryPool)                       \
  ROW(DestroyQueryPool)                      \
  ROW(GetQueryPoolResults)                   \
  ROW(CreateSemaphore)                       \
  ROW(DestroySemaphore)                      \
  ROW(WaitSemaphores)                        \
  ROW(GetSemaphoreCounterValue)

#define PANTALA_VULKAN_MEMBER(NAME) PFN_vk##NAME NAME = nullptr;
struct InstanceFunctions {
  PANTALA_VULKAN_INSTANCE_FUNCTIONS(PANTALA_VULKAN_MEMBER)
};
struct DeviceFunctions {
  PANTALA_VULKAN_DEVICE_FUNCTIONS(PANTALA_VULKAN_MEMBER)
};
#undef PANTALA_VULKAN_MEMBER

// "VK_ERROR_DEVICE_LOST" for people.
const char* result_text(VkResult result);

}  // namespace pantala::vulkan
