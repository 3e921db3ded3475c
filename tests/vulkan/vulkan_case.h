// The Vulkan device of tests: the first one of this machine, software or not, or the one that
// PANTALA_VULKAN_TEST_DEVICE names ("vulkan:1"). Where there is none the tests say that they are
// skipped.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/spirv/spirv.h"
#include "device/device.h"
#include "device/vulkan/arithmetic.h"
#include "device/vulkan/faults.h"
#include "device/vulkan/watched.h"
#include "kir/interpret.h"
#include "plan/arena.h"
#include "plan/dependencies.h"
#include "plan/plan.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::vulkan_tests {

// "" if there is none.
inline std::string test_device() {
  if (const char* named = std::getenv("PANTALA_VULKAN_TEST_DEVICE")) return named;
  const std::vector<std::string> all = device::devices_here();
  const auto found = std::ranges::find_if(
      all, [](const std::string& name) { return name.starts_with("vulkan:"); });
  return found == all.end() ? "" : *found;
}

// Whether everything is to be run (`make test-vulkan`), and not what `make test` has time for.
inline bool wants_all() {
  const char* which = std::getenv("PANTALA_VULKAN_TESTS");
  return which && std::string_view(which) == "all";
}

// `make test-vulkan` is about nothing without a device.
inline void need_device() {
  if (!test_device().empty()) return;
  if (wants_all()) FAIL() << "there is no Vulkan driver on this machine (mesa-vulkan-drivers)";
  GTEST_SKIP() << "there is no Vulkan driver on this machine";
}

class OnVulkan : public ::testing::Test {
 protected:
  void SetUp() override {
    need_device();
    if (IsSkipped() || HasFatalFailure()) return;
    device::vulkan::faults() = {};
    // Modules are validated, and barriers compared with what plans need.
    device::vulkan::faults().watches = true;
    objects_before_ = device::vulkan::watched_objects();
  }
  void TearDown() override {
    if (!keeps_devices_) {
      EXPECT_EQ(device::vulkan::watched_objects(), objects_before_)
          << "something of a device was not given back";
    }
    device::vulkan::faults() = {};
  }

  bool keeps_devices_ = false;  // for the tests behind it

 private:
  std::int64_t objects_before_ = 0;
};

// A plan of one launch of the kernel over the arrays.
inline plan::Plan plan_of(const kir::Kernel& kernel, const std::vector<codegen::Array>& buffers,
                          const std::vector<ir::Number>& params, std::int64_t items,
                          bool uniforms) {
  plan::Plan plan;
  plan.name = "one";
  plan::ArgumentSet set{.items = items, .buffers = {}, .params = {}};
  for (std::size_t k = 0; k < buffers.size(); ++k)
    set.buffers.push_back(plan::add_region_buffer(plan, plan::Storage::store,
                                                  kernel.buffers[k].name, buffers[k].dtype,
                                                  buffers[k].elements()));
  for (std::size_t k = 0; k < params.size(); ++k) {
    const DType dtype = kernel.params[k].dtype;
    if (uniforms && dtype != DType::boolean)
      set.params.push_back(
          plan::Scalar::uniform(plan::add_uniform(plan, kernel.params[k].name, dtype)));
    else
      set.params.push_back({false, codegen::param_slot(dtype, params[k])});
  }
  const std::uint32_t unit = plan::add_unit(plan, kernel);
  plan.launches.push_back({.name = kernel.name, .unit = unit, .sets = {set}});
  return plan;
}

// How far a float may be from what the interpreter says, in units of the last place; the rest must
// be equal.
struct Allowed {
  int ulps = 0;
  bool flushed = true;  // a subnormal number may be a zero
};

inline std::int64_t ordered(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? std::int64_t{INT32_MIN} - bits : bits;
}
inline bool agrees(DType dtype, const std::byte* got, const std::byte* want,
                   const Allowed& allowed) {
  if (codegen::same_element(dtype, got, want)) return true;
  if (dtype != DType::f32) return false;
  float x, y;
  std::memcpy(&x, got, 4), std::memcpy(&y, want, 4);
  if (x != x || y != y) return false;
  if (allowed.flushed && std::fabs(x) < 1.2e-38F && std::fabs(y) < 1.2e-38F) return true;
  return std::abs(ordered(x) - ordered(y)) <= allowed.ulps;
}

// Runs it on the device and by the interpreter and expects the same memory and status; its module
// must be valid.
inline void expect_same(const kir::Kernel& kernel, const std::vector<codegen::Array>& buffers,
                        const std::vector<ir::Number>& params, std::int64_t items,
                        const Allowed& allowed = {}, bool uniforms = false) {
  const std::string wrong = codegen::spirv::broken_rule(
      codegen::spirv::emit(kernel, {.float64 = true, .max_invocations = 1024}).words);
  ASSERT_EQ(wrong, "") << kernel.name;
  std::vector<codegen::Array> expected = buffers;
  kir::Arguments arguments{.buffers = {}, .params = params};
  for (codegen::Array& a : expected)
    arguments.buffers.push_back({a.dtype, a.bytes.data(), a.elements()});
  const std::int64_t expected_status = kir::interpret(kernel, arguments, 0, items);

  const std::unique_ptr<device::Device> device =
      device::make_device(test_device(), {.sentinels = true});
  std::vector<device::Slice> slices;
  for (const codegen::Array& a : buffers) {
    const auto bytes = std::ssize(a.bytes);
    slices.push_back({device->allocate(bytes), 0, bytes});
    device->write(slices.back(), a.bytes);
  }
  std::vector<std::int64_t> slots;
  for (std::size_t k = 0; uniforms && k < params.size(); ++k)
    if (kernel.params[k].dtype != DType::boolean)
      slots.push_back(codegen::param_slot(kernel.params[k].dtype, params[k]));
  const device::PlanId plan = device->load(plan_of(kernel, buffers, params, items, uniforms));
  device->run(plan, {.arena = {}, .regions = slices, .uniforms = slots});
  EXPECT_EQ(device->take_status(), expected_status) << kernel.name;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    codegen::Array got = buffers[k];
    device->read(slices[k], got.bytes);
    const std::int64_t size = dtype_bytes(got.dtype);
    int shown = 0;
    for (std::int64_t i = 0; i < got.elements() && shown < 3; ++i) {
      const std::byte *is = got.bytes.data() + i * size,
                      *should_be = expected[k].bytes.data() + i * size;
      if (agrees(got.dtype, is, should_be, allowed)) continue;
      ADD_FAILURE() << kernel.name << ": " << kernel.buffers[k].name << '[' << i << "] is "
                    << codegen::hex(is, size) << ", interpreted " << codegen::hex(should_be, size);
      ++shown;
    }
  }
}

// A kernel with one result buffer per case, named after it; item i works on lanes i * lanes ....
class Cases {
 public:
  static constexpr std::int64_t kItems = 96;
  Cases(const std::string& name, int lanes) : builder(name), lanes_(lanes) {}

  kir::Var input(const std::string& name, DType dtype) {
    const kir::BufferId b = builder.buffer(name, dtype, kir::Access::read);
    arrays_.push_back(draw.array(dtype, kItems * lanes_));
    return builder.load(b, builder.item() * lanes_, lanes_);
  }
  void result(const std::string& name, kir::Var value) { results_.emplace_back(name, value); }
  void expect(const Allowed& allowed = {}) {
    for (const auto& [name, value] : results_) {
      const kir::BufferId b = builder.buffer(name, value.dtype(), kir::Access::write);
      arrays_.push_back(codegen::zeros(value.dtype(), kItems * value.lanes()));
      builder.store(b, builder.item() * value.lanes(), value);
    }
    expect_same(builder.finish(), arrays_, {}, kItems, allowed);
  }

  kir::Builder builder;
  codegen::Draw draw{7};

 private:
  int lanes_;
  std::vector<codegen::Array> arrays_;
  std::vector<std::pair<std::string, kir::Var>> results_;
};

}  // namespace pantala::vulkan_tests
