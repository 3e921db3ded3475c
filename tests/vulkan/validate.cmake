# Runs tests with the validation layers, synchronization among them, and fails if they say anything.
#   cmake -DTEST=test_vulkan -P validate.cmake
set(ENV{VK_INSTANCE_LAYERS} VK_LAYER_KHRONOS_validation)
set(ENV{VK_LAYER_ENABLES} VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT)
execute_process(COMMAND ${TEST} --gtest_filter=VulkanKernels.*:StepsAhead.*:VulkanFaults.memory*:*RecordedOnVulkan* --gtest_brief=1
                RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result EQUAL 0 OR text MATCHES "Validation (Error|Warning)|VUID-|SYNC-HAZARD")
  message(FATAL_ERROR "The validation layers are not silent:\n${text}")
endif()
message(STATUS "The validation layers have nothing to say")
