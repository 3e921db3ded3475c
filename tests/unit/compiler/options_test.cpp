// What the compiler knows of the devices.
#include "compiler/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "device/describe.h"
#include "device/device.h"
#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala::compiler {
namespace {

TEST(Backends, are_those_of_the_devices) { EXPECT_EQ(backend_names(), device::device_names()); }

TEST(Backends, an_unknown_device_is_refused_with_the_list) {
  try {
    backend_of("gpu");
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(), "there is no code for the device 'gpu'; there are cpu, kir");
  }
  EXPECT_THROW(device::describe("gpu"), UnsupportedError);
}

TEST(Backends, every_device_is_described) {
  for (const std::string& name : device::device_names()) {
    const device::Description device = device::describe(name);
    EXPECT_FALSE(device.text.empty()) << name;
    EXPECT_FALSE(device.brief.empty()) << name;
    EXPECT_TRUE(device.probed.empty()) << name;
  }
}

TEST(Options, without_code_a_plan_has_kernels_alone) {
  Graph graph;
  graph.output("y", relu(graph.input("x", {8})));
  Options options = host_options("cpu", 1, true);
  const plan::CompiledStep whole = compile_step({.graph = graph}, options);
  options.code = false;
  const plan::CompiledStep bare = compile_step({.graph = graph}, options);
  ASSERT_EQ(bare.plan.units.size(), 1u);
  EXPECT_FALSE(whole.plan.units.at(0).object.empty());
  EXPECT_TRUE(bare.plan.units.at(0).object.empty());
  EXPECT_TRUE(bare.plan.units.at(0).kernel);
}

}  // namespace
}  // namespace pantala::compiler
