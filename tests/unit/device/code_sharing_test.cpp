// The code that libraries, plans and devices of one process share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "device/cpu/host.h"
#include "pantala/error.h"
#include "support/plan_code.h"
#include "unit/plan/plan_case.h"

namespace pantala::device::code_sharing_test {
namespace {

using codegen::code_summary;
using plan::Plan;

TEST(CodeSharing, the_same_plan_twice_is_compiled_once) {
  const std::size_t before = code_summary().compiled, shared = code_summary().shared;
  {
    const auto one = make_device("cpu", {.workers = 2}), other = make_device("cpu", {.workers = 1});
    const PlanId first = one->load(plan::small_step());
    EXPECT_EQ(code_summary().compiled - before, 5U);
    EXPECT_EQ(code_summary().shared - shared, 5U);
    one->load(plan::small_step(127));
    other->load(plan::small_step());
    EXPECT_EQ(code_summary().compiled - before, 5U);
    one->unload(first);
    EXPECT_EQ(code_summary().shared - shared, 5U) << "others still use it";
  }
  EXPECT_EQ(code_summary().shared, shared) << "nobody uses it";
  make_device("cpu", {.workers = 1})->load(plan::small_step());
  EXPECT_EQ(code_summary().compiled - before, 10U) << "it was gone";
}

TEST(CodeSharing, code_that_others_let_go_of_still_runs) {
  const auto device = make_device("cpu", {.workers = 2});
  OnDevice kept(*device, plan::small_step());
  { OnDevice gone(*device, plan::small_step()); }
  kept.fill(5);
  kept.run({plan::slot_of(0.5F), plan::slot_of(1e9)});
  const auto reference = make_device("kir");
  OnDevice expected(*reference, plan::small_step());
  expected.fill(5);
  expected.run({plan::slot_of(0.5F), plan::slot_of(1e9)});
  EXPECT_EQ(kept.contents(), expected.contents());
}

TEST(CodeSharing, threads_that_want_the_same_code_compile_it_once) {
  const std::size_t before = code_summary().compiled;
  const auto device = make_device("cpu", {.workers = 1});
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { device->load(plan::small_step()); });
  }
  EXPECT_EQ(code_summary().compiled - before, 5U);
}

TEST(CodeSharing, one_name_may_be_another_code_in_another_plan) {
  const auto load = [](Device& device, double c) {
    Plan p;
    p.name = "one";
    const std::uint32_t unit = add_unit(p, plan::square("kernel", c));
    const std::uint32_t x = add_region_buffer(p, plan::Storage::input, "x", DType::f32, 8),
                        y = add_region_buffer(p, plan::Storage::output, "y", DType::f32, 8);
    p.launches.push_back(plan::launch("l", unit, {{1, {x, y}, {plan::Scalar::immediate(8)}}}));
    return std::make_unique<OnDevice>(device, p);
  };
  const auto device = make_device("cpu", {.workers = 1});
  const auto one = load(*device, 1.0), two = load(*device, 2.0);
  for (const auto& [on, expected] : {std::pair{one.get(), 1.0F}, std::pair{two.get(), 2.0F}}) {
    on->run({});
    std::vector<float> y(8);
    device->read(on->regions[1], std::as_writable_bytes(std::span(y)));
    EXPECT_THAT(y, testing::Each(expected));
  }
}

TEST(CodeSharing, plans_with_objects_use_and_share_them) {
  Plan compiled = plan::small_step();
  const auto times = plan::compile_units(compiled, codegen::detect_host(), 2);
  ASSERT_EQ(times.size(), compiled.units.size());
  for (std::size_t k = 0; k < times.size(); ++k) {
    EXPECT_EQ(times[k].entry, compiled.units[k].entry);
    EXPECT_GT(times[k].milliseconds, 0);
  }
  const std::size_t before = code_summary().compiled;
  const auto device = make_device("cpu", {.workers = 1});
  device->load(compiled);
  EXPECT_EQ(code_summary().compiled, before) << "the objects are used";
  device->load(plan::small_step());
  Plan again = plan::small_step();
  for (const plan::UnitTime& unit : plan::compile_units(again, codegen::detect_host(), 2))
    EXPECT_EQ(unit.milliseconds, 0);
  EXPECT_EQ(code_summary().compiled, before) << "and serve those that come without";
  for (std::size_t k = 0; k < again.units.size(); ++k)
    EXPECT_EQ(again.units[k].object, compiled.units[k].object);
}

TEST(CodeSharing, targets_do_not_share) {
  const std::size_t before = code_summary().compiled;
  const kir::Kernel kernel = plan::square();
  codegen::CodeLibrary host;
  host.add({&kernel, 1});
  const auto other = codegen::compile_all({&kernel, 1}, codegen::known_target("aarch64"), 1);
  EXPECT_EQ(code_summary().compiled - before, 2U);
  EXPECT_GT(other.units[0].milliseconds, 0);
}

TEST(CodeSharing, objects_do_not_depend_on_names) {
  EXPECT_EQ(codegen::compile(plan::square("a"), codegen::detect_host()).object,
            codegen::compile(plan::square("another"), codegen::detect_host()).object);
}

// A kernel that cannot be compiled fails for everybody who wants it, and stops nobody else.
TEST(CodeSharing, a_failure_is_not_kept) {
  const std::size_t shared = code_summary().shared;
  codegen::HostTarget nowhere = codegen::detect_host();
  nowhere.triple = "pdp11-unknown-unknown";
  const kir::Kernel kernel = plan::square();
  for (int k = 0; k < 2; ++k)
    EXPECT_THROW(codegen::compile_all({&kernel, 1}, nowhere, 2), UnsupportedError);
  EXPECT_EQ(code_summary().shared, shared);
}

TEST(DescribeHost, gives_sensible_numbers) {
  const cpu::HostDescription host = cpu::describe_host();
  const codegen::HostTarget target = codegen::detect_host();
  EXPECT_EQ(host.vector_bytes, target.vector_bytes);
  EXPECT_EQ(host.vector_registers, target.vector_registers);
  EXPECT_FALSE(host.processor.empty());
  EXPECT_GE(host.caches.l1_bytes, 4 << 10);
  EXPECT_GE(host.caches.l2_bytes, host.caches.l1_bytes);
  EXPECT_GE(host.caches.l3_bytes, host.caches.l2_bytes);
  EXPECT_GT(host.caches.l1_ways, 0);
  EXPECT_EQ(host, cpu::describe_host());
}

}  // namespace
}  // namespace pantala::device::code_sharing_test
