# Runs all tests with the validation layers, synchronization among them, and fails if they say anything, in the tests' process or in a command that
# it starts (tests/vulkan/command_test.cpp looks at those). Two tests are run by themselves before: the first does what the layers must object to, so
# that layers that are not there are not taken for silence; the second shows whether they see what kernels do by address.
#   cmake -DTEST=test_vulkan -P validate.cmake
set(ENV{VK_INSTANCE_LAYERS} VK_LAYER_KHRONOS_validation)
set(ENV{VK_LAYER_ENABLES} VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT)
set(ENV{PANTALA_VULKAN_TESTS} all)

function(run_tests filter)
  execute_process(COMMAND ${TEST} --gtest_filter=${filter} --gtest_brief=1 RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(result ${result} PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

run_tests(ValidationControl.two_copies_to_one_place_without_a_barrier)
if(NOT text MATCHES "SYNC-HAZARD-WRITE")
  message(FATAL_ERROR "Two copies to one place without a barrier, and nobody objects: the validation layers (vulkan-validationlayers) are not there, or "
                      "do not look at synchronization:\n${text}")
endif()
run_tests(ValidationControl.kernels_without_a_barrier)
if(text MATCHES "SYNC-HAZARD")
  message(STATUS "These layers see what kernels do by address")
else()
  message(STATUS "These layers do not see what kernels do by address; barriers are compared with what plans need instead")
endif()
# What looks at a clock knows nothing of layers.
run_tests(-ValidationControl.*:ModelsOnVulkan.a_step_of_a_small_network_takes_at_most_2_ms)
if(NOT result EQUAL 0 OR text MATCHES "Validation (Error|Warning)|VUID-|SYNC-HAZARD")
  message(FATAL_ERROR "The validation layers are not silent:\n${text}")
endif()
message(STATUS "The validation layers have nothing to say")
