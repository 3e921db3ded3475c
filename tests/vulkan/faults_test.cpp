// What happens when a device fails: typed errors, and nothing that was there before is lost.
#include <gmock/gmock.h>

#include "device/vulkan/pipelines.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "unit/plan/plan_case.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using device::vulkan::Faults;
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
  std::vector<std::byte> back(4096);
  device->read({kept, 0, 4096}, back);
  EXPECT_EQ(back, content);
  EXPECT_EQ(device->memory().allocated, 4096);
  device->allocate(1 << 20);
}

// More than there is at once: the message says how much that is.
TEST_F(VulkanFaults, memory_beyond_the_limit_of_the_device_names_the_limit) {
  const auto device = device::make_device(test_device());
  EXPECT_THAT(
      tests::message_of<DeviceError>([&] { device->allocate((std::int64_t{1} << 46) + 1); }),
      testing::ContainsRegex("memory of 70368744177728 bytes.* are more than the device gives at "
                             "once: at most [0-9]+ bytes .maxMemoryAllocationSize."));
  EXPECT_EQ(device->memory().allocated, 0);
}

// A small model with one input of each kind, and what it needs for a step.
Session small_session() {
  const zoo::Model model = zoo::mlp({.batch = 4, .inputs = 6, .hidden = {5}, .classes = 3});
  return build_session(model.graph, model.loss,
                       {.device = test_device(), .threads = 1, .optimizer = optim::adam(0.1)});
}
void set_inputs(Session& session) {
  std::vector<double> x(24);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<double>(k * 7 % 11) - 5;
  session.set_input("x", Literal::floats({4, 6}, x));
  session.set_input("labels", Literal::ints({4}, {0, 1, 2, 1}));
}
std::vector<double> train_a_little() {
  Session session = small_session();
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    set_inputs(session);
    session.step();
    if (step % 2 == 0) losses.push_back(session.loss());
  }
  return losses;
}

constexpr const char* kLost = "the device is lost; what was in its memory is gone";

// Whatever is asked of it, and taking it apart is no reason to end the process.
void expect_lost(Session& session) {
  EXPECT_THAT(tests::message_of<DeviceLostError>([&] { session.step(); }), HasSubstr(kLost));
  EXPECT_THAT(tests::message_of<DeviceLostError>([&] { session.wait(); }), HasSubstr(kLost));
  EXPECT_THAT(tests::message_of<DeviceLostError>([&] { session.parameter("fc1.weight"); }),
              HasSubstr(kLost));
}

TEST_F(VulkanFaults, a_device_that_is_lost_when_work_is_submitted_says_so_from_then_on) {
  for (const bool staging : {false, true}) {
    faults().staging = staging;
    Session session = small_session();
    set_inputs(session);
    session.step();
    session.wait();
    faults().submission = 1;
    EXPECT_THAT(tests::message_of<DeviceLostError>([&] { session.step(); }), HasSubstr(kLost));
    expect_lost(session);
  }
}

// As a GPU does that hangs: what was submitted never ends.
TEST_F(VulkanFaults, a_device_that_is_lost_during_its_work_says_so_from_then_on) {
  for (const bool staging : {false, true}) {
    faults().staging = staging;
    Session session = small_session();
    for (int step = 0; step < 2; ++step) {
      set_inputs(session);
      session.step();
    }
    faults().waiting = 1;
    EXPECT_THAT(tests::message_of<DeviceLostError>([&] { session.loss(); }), HasSubstr(kLost));
    expect_lost(session);
  }
}

// At whatever point: there is always the error, and nothing is left behind. The last time nothing
// is lost any more.
TEST_F(VulkanFaults, a_device_may_be_lost_at_any_point_of_a_training) {
  const std::vector<double> expected = train_a_little();
  const std::int64_t objects = device::vulkan::watched_objects();
  for (std::int64_t Faults::* point : {&Faults::submission, &Faults::waiting}) {
    int losses = 0;
    for (std::int64_t n = 1;; ++n) {
      SCOPED_TRACE(n);
      faults().*point = n;
      try {
        EXPECT_EQ(train_a_little(), expected);
        EXPECT_GT(faults().*point, 0);
        break;
      } catch (const DeviceLostError&) { ++losses; }
      ASSERT_EQ(device::vulkan::watched_objects(), objects);
    }
    faults().*point = 0;
    EXPECT_GE(losses, 5);
  }
}

// Everything that a driver makes, and everything that is recorded and submitted, finds no memory
// once.
TEST_F(VulkanFaults, no_memory_at_any_point_of_a_training_is_an_error) {
  const std::vector<double> expected = train_a_little();
  const std::int64_t objects = device::vulkan::watched_objects();
  for (const bool staging : {false, true}) {
    faults().staging = staging;
    int errors = 0;
    for (std::int64_t n = 1;; ++n) {
      SCOPED_TRACE(n);
      faults().allocation = n;
      bool ends_well = false;
      EXPECT_THAT(tests::message_of<DeviceError>([&] {
                    EXPECT_EQ(train_a_little(), expected);
                    ends_well = true;
                  }),
                  testing::AnyOf(HasSubstr("the device has no memory left"), "no error"));
      ASSERT_EQ(device::vulkan::watched_objects(), objects);
      if (faults().allocation > 0) break;
      errors += ends_well ? 0 : 1;
    }
    faults().allocation = 0;
    EXPECT_GE(errors, 50);
  }
}

// Beyond what drivers bind to a descriptor: addresses reach all of it.
TEST_F(VulkanFaults, buffers_may_be_larger_than_a_binding) {
  constexpr std::int64_t kRows = 513, kColumns = 1 << 16;  // 128.25 MiB
  Graph g;
  const Tensor x = g.input("x", {kRows, kColumns});
  g.output("y", x * 2.0 + 1.0);
  g.output("last", sum(slice(x, {kRows - 1, 0}, {kRows, kColumns})));
  Session session = build_inference_session(g, {.device = test_device()});
  std::vector<float> values(static_cast<std::size_t>(kRows * kColumns));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 1021);
  session.set_input("x", values);
  session.step();
  std::vector<float> y(values.size());
  session.output("y", std::span(y));
  std::size_t wrong = 0;
  double last = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    wrong += y[k] != values[k] * 2 + 1 ? 1 : 0;
    if (k >= values.size() - kColumns) last += values[k];
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_NEAR(session.output("last").at(0), last, 1e-5 * last);
}

// Validation layers do not see what kernels reach by address (validation_test.cpp). What is
// recorded is compared with what the plan needs: with any barrier less some launch does not wait.
TEST_F(VulkanFaults, a_barrier_that_is_left_out_is_noticed) {
  const zoo::Model model = zoo::lenet({.batch = 2});
  const auto compiled = compile_training_graph(
      model.graph, model.loss, {.device = test_device(), .optimizer = optim::adam(0.1)});
  const auto load = [&] { Session session(compiled); };
  load();
  int missing = 0;
  for (std::int64_t n = 1;; ++n) {
    faults().barrier = n;
    const std::string message = tests::message_of<InternalError>(load);
    if (faults().barrier > 0) break;
    EXPECT_THAT(message, HasSubstr("touch the same memory without a barrier"));
    ++missing;
  }
  faults().barrier = 0;
  EXPECT_GE(missing, 5);
}

// Two GPUs of a machine, or one whose driver was replaced.
TEST_F(VulkanFaults, work_of_drivers_is_kept_for_each_device_and_driver) {
  const tests::TemporaryFolder folder;
  const std::string choice = test_device().substr(test_device().find(':') + 1);
  vulkan::DeviceInfo info = vulkan::choose(choice);
  const auto own = device::vulkan::pipeline_file(folder.file("kept"), info);
  EXPECT_EQ(own, device::vulkan::pipeline_file(folder.file("kept"), info));
  info.identity += " of another version";
  EXPECT_NE(own, device::vulkan::pipeline_file(folder.file("kept"), info));
  EXPECT_EQ(device::vulkan::pipeline_file("", info), "");
  {
    const auto device = device::make_device(test_device(), {.cache_file = folder.file("kept")});
    kir::Builder b("one");
    const kir::BufferId to = b.buffer("to", DType::f32, kir::Access::write);
    b.store(to, b.item(), b.cast(b.item(), DType::f32));
    device->load(plan_of(b.finish(), {codegen::zeros(DType::f32, 8)}, {}, 8, false));
  }
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own.parent_path()), {}), 1);
}

TEST_F(VulkanFaults, a_graph_of_f64_is_refused_by_name) {
  Graph g;
  g.output("y", exp(g.input("x", {5}, f64)));
  EXPECT_THAT(tests::message_of<UnsupportedError>(
                  [&] { build_inference_session(g, {.device = test_device()}); }),
              HasSubstr("is f64; the device vulkan computes in f32"));
}

// The states of a step lie in shared memory. Nothing is computed here.
TEST_F(VulkanFaults, recurrent_layers_that_shared_memory_has_no_room_for_are_refused) {
  const auto compiles = [](std::int64_t hidden) {
    Graph g;
    const Tensor x = g.input("x", {2, 1, 4 * hidden}), w = g.input("w", {hidden, 4 * hidden}),
                 h = g.input("h", {1, hidden}), c = g.input("c", {1, hidden});
    g.output("y", lstm(x, w, h, c).h);
    compile(g, {.device = test_device()});
  };
  compiles(1536);
  const std::int64_t too_many =
      vulkan::choose(test_device().substr(test_device().find(':') + 1)).shared_bytes / 16 + 1;
  EXPECT_THAT(tests::message_of<UnsupportedError>([&] { compiles(too_many); }),
              HasSubstr("hidden units do not fit into"));
}

TEST_F(VulkanFaults, plans_with_double_precision_on_the_way_are_refused_where_there_is_none) {
  Graph g;
  g.output("y", rope(g.input("x", {1, 1, 5, 8})));
  faults().plain = true;
  EXPECT_THAT(tests::message_of<UnsupportedError>(
                  [&] { build_inference_session(g, {.device = test_device()}); }),
              HasSubstr("needs numbers of f64 on the way, which this device does not have"));
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
  const std::vector<double> direct = train_a_little();
  faults().staging = true;
  EXPECT_EQ(train_a_little(), direct);
  EXPECT_LT(direct.back(), direct.front());
}

}  // namespace
}  // namespace pantala::vulkan_tests
