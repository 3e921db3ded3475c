// What validation layers must and cannot see: validate.cmake runs these by themselves, and knows by
// what is said whether the layers are there and look at synchronization. Without layers the numbers
// alone are looked at.
#include <gmock/gmock.h>

#include "device/vulkan/memory.h"
#include "pantala/session.h"
#include "pantala/zoo.h"
#include "runtime/session_data.h"
#include "vulkan/instance.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

class ValidationControl : public OnVulkan {};

// The second copy does not wait for the first: a hazard.
TEST_F(ValidationControl, two_copies_to_one_place_without_a_barrier) {
  using device::vulkan::Block;
  const std::string choice = test_device().substr(test_device().find(':') + 1);
  device::vulkan::Context context(vulkan::choose(choice));
  const Block from(context, 256, Block::Kind::host), to(context, 256, Block::Kind::host);
  std::memset(from.view(), 7, 256);
  context.wait(context.once([&](VkCommandBuffer commands) {
    const VkBufferCopy region{0, 0, 256};
    for (int k = 0; k < 2; ++k)
      context.functions().CmdCopyBuffer(commands, from.buffer(), to.buffer(), 1, &region);
  }));
  EXPECT_EQ(std::memcmp(to.view(), from.view(), 256), 0);
}

// The same between kernels, which reach memory by its address.
TEST_F(ValidationControl, kernels_without_a_barrier) {
  device::vulkan::faults().no_barriers = true;
  const zoo::Model model = zoo::mlp({.batch = 4, .inputs = 6, .hidden = {5}, .classes = 3});
  Session session = build_session(model.graph, model.loss,
                                  {.device = test_device(), .optimizer = optim::sgd(0.1)});
  session.set_input("x", Literal(Type{f32, {4, 6}}));
  session.set_input("labels", Literal(Type{i64, {4}}));
  session.step();
  session.wait();
  EXPECT_EQ(session.data().ahead(), 0U);
}

}  // namespace
}  // namespace pantala::vulkan_tests
