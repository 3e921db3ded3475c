#include "vulkan/functions.h"

namespace pantala::vulkan {

const char* result_text(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "no error";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "the host has no memory left";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "the device has no memory left";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "it cannot be initialised";
    case VK_ERROR_DEVICE_LOST:
      return "the device is lost";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "a layer is missing";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "an extension is missing";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "a feature is missing";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "there is no driver for this version of Vulkan";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "too many objects";
    case VK_TIMEOUT:
      return "it takes too long";
    default:
      return "an error without a name";
  }
}

}  // namespace pantala::vulkan
