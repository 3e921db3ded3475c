// What happens when a device fails: typed errors, and nothing that was there before is lost.
#include <gmock/gmock.h>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo.h"
#include "support/errors.h"
#include "unit/plan/plan_case.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using device::vulkan::faults;
using testing::HasSubstr;

class VulkanFaults : public OnVulkan {};

TEST_F(VulkanFaults, memory_that_is_not_there_is_an_error_and_the_rest_stays) {
  const auto device = device::make_device(test_device());
  const device::MemoryId kept = device->allocate(4096);
  const std::vector<std::byte> content(4096, std::byte{7});
  device->write({kept, 0, 4096}, content);
  faults().allocation = 1;
  EXPECT_THAT(tests::message_of<DeviceError>([&] { device->allocate(1 << 20); }),
              HasSubstr("the device has no memory left"));
  EXPECT_THAT(tests::message_of<DeviceError>([&] { device->allocate(std::int64_t{1} << 45); }),
              HasSubstr("the device has no memory left"));
  std::vector<std::byte> back(4096);
  device->read({kept, 0, 4096}, back);
  EXPECT_EQ(back, content);
  EXPECT_EQ(device->memory().allocated, 4096);
  device->allocate(1 << 20);
}

TEST_F(VulkanFaults, a_lost_device_says_so_from_then_on) {
  const zoo::Model model = zoo::mlp({.batch = 4, .inputs = 6, .hidden = {5}, .classes = 3});
  Session session = build_session(model.graph, model.loss,
                                  {.device = test_device(), .optimizer = optim::sgd(0.1)});
  session.set_input("x", Literal(Type{f32, {4, 6}}));
  session.set_input("labels", Literal(Type{i64, {4}}));
  session.step();
  faults().submission = 1;
  for (int k = 0; k < 2; ++k)
    EXPECT_THAT(tests::message_of<DeviceError>([&] { session.step(); }),
                HasSubstr("the device is lost; what was in its memory is gone"));
}

TEST_F(VulkanFaults, a_graph_of_f64_is_refused_by_name) {
  Graph g;
  g.output("y", exp(g.input("x", {5}, f64)));
  EXPECT_THAT(tests::message_of<UnsupportedError>(
                  [&] { build_inference_session(g, {.device = test_device()}); }),
              HasSubstr("is f64; the device vulkan computes in f32"));
}

TEST_F(VulkanFaults, a_device_that_is_not_there_is_an_error_with_the_list) {
  EXPECT_THAT(tests::message_of<DeviceError>([] { device::make_device("vulkan:no-such-gpu"); }),
              HasSubstr("no Vulkan device is 'no-such-gpu': vulkan:0 is "));
  EXPECT_THAT(tests::message_of<DeviceError>([] { device::make_device("vulkan:77"); }),
              HasSubstr("no Vulkan device is '77'"));
  EXPECT_THAT(tests::message_of<UnsupportedError>([] { device::make_device("vulcan"); }),
              HasSubstr("did you mean 'vulkan'?"));
}

TEST_F(VulkanFaults, memory_through_staging_gives_the_same_training) {
  const zoo::Model model = zoo::mlp({.batch = 4, .inputs = 6, .hidden = {5}, .classes = 3});
  std::vector<double> losses[2];
  for (const bool staging : {false, true}) {
    faults().staging = staging;
    Session session = build_session(model.graph, model.loss,
                                    {.device = test_device(), .optimizer = optim::adam(0.1)});
    std::vector<double> x(24);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<double>(k * 7 % 11) - 5;
    session.set_input("x", Literal::floats({4, 6}, x));
    session.set_input("labels", Literal::ints({4}, {0, 1, 2, 1}));
    for (int step = 0; step < 5; ++step) {
      session.step();
      losses[staging].push_back(session.loss());
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_LT(losses[0].back(), losses[0].front());
}

}  // namespace
}  // namespace pantala::vulkan_tests
