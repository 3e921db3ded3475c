// A plan bound to a store, on hand-built kernels: w -= lr / t * g, guarded, with a counter t.
#include "runtime/bound_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kir/builder.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/allocations.h"
#include "support/errors.h"

namespace pantala::runtime::bound_plan_test {
namespace {

using testing::ElementsAre;
using tests::message_of;

constexpr std::int32_t kTooLarge = 7;

// One item: loss = w g; finite; w = finite ? w - rate g : w; reports gradients above 100.
kir::Kernel update_kernel() {
  kir::Builder b("update");
  const kir::BufferId g = b.buffer("g", f32, kir::Access::read),
                      w = b.buffer("w", f32, kir::Access::read_write),
                      loss = b.buffer("loss", f32, kir::Access::write),
                      finite = b.buffer("finite", boolean, kir::Access::write);
  const kir::Var rate = b.param("rate", f32);
  const kir::Var zero = b.i64(0), gradient = b.load(g, zero), weight = b.load(w, zero);
  b.report(lt(100.0, gradient), kTooLarge);
  const kir::Var value = weight * gradient;
  const kir::Var holds = eq(value - value, 0.0);
  b.store(loss, zero, value);
  b.store(finite, zero, holds);
  b.store(w, zero, b.select(holds, weight - rate * gradient, weight));
  return b.finish();
}

std::shared_ptr<const plan::CompiledStep> guarded_update() {
  auto compiled = std::make_shared<plan::CompiledStep>();
  plan::Plan& plan = compiled->plan;
  plan.name = "step";
  const auto g = plan::add_region_buffer(plan, plan::Storage::input, "g", f32, 1);
  const auto w = plan::add_region_buffer(plan, plan::Storage::store, "w", f32, 1);
  const auto loss = plan::add_region_buffer(plan, plan::Storage::output, "loss", f32, 1);
  const auto finite = plan::add_region_buffer(plan, plan::Storage::output, "finite", boolean, 1);
  plan.inputs = {{"g", g, {1}}};
  plan.parameters = {{"w", w, {1}}};
  plan.outputs = {{"loss", loss, {}}, {"finite", finite, {}}};
  const auto rate = plan::add_uniform(plan, "rate", f32);
  const auto unit = plan::add_unit(plan, update_kernel());
  plan.launches.push_back({.name = "update",
                           .unit = unit,
                           .sets = {{1, {g, w, loss, finite}, {plan::Scalar::uniform(rate)}}}});
  Graph graph;
  const Tensor t = graph.state("t", {}, init::zeros(), i64);
  const Tensor next = t + 1, scaled = graph.scalar("lr", 0.5) / cast(next, f64);
  graph.update(t, next);
  compiled->host = plan::HostPart(graph, {.uniforms = {{scaled.id(), f32}},
                                          .outputs = {{"rate", scaled.id()}},
                                          .updates = {{"t", next.id()}}});
  compiled->messages = {{kTooLarge, "the gradient is too large"}};
  return compiled;
}

class BoundPlans : public testing::TestWithParam<const char*> {
 protected:
  BoundPlans() {
    store_.extend(
        std::vector{StoreLeaf{LeafKind::parameter, "w", {f32, {1}}, false, init::ones()},
                    StoreLeaf{LeafKind::state, "t", {i64, {}}, true, init::zeros()},
                    StoreLeaf{LeafKind::scalar, "lr", {f64, {}}, true, init::constant(0.5)}},
        {});
  }
  double value(const char* name) const { return store_.read(*store_.find(name)).at(0); }

  std::unique_ptr<device::Device> device_ = device::make_device(GetParam(), {.workers = 2});
  Store store_{*device_, 0};
};

TEST_P(BoundPlans, a_run_moves_parameters_and_counters_on) {
  BoundPlan plan("step", guarded_update(), *device_, store_);
  plan.set_input("g", std::vector{1.0F});
  EXPECT_EQ(plan.run({}), BoundPlan::Outcome::done);
  EXPECT_EQ(plan.loss(), 1.0);
  EXPECT_EQ(value("w"), 0.5);
  EXPECT_EQ(value("t"), 1);
  EXPECT_EQ(plan.run({}), BoundPlan::Outcome::done);
  EXPECT_EQ(plan.loss(), 0.5);
  EXPECT_EQ(value("w"), 0.25);  // the rate is halved by the counter
  EXPECT_EQ(value("t"), 2);
  EXPECT_THAT(plan.output_names(), ElementsAre("loss", "finite", "rate"));
  EXPECT_EQ(plan.output_scalar("rate"), 0.25);
  double rate = 0;
  plan.output("rate", std::span(&rate, 1));
  EXPECT_EQ(rate, 0.25);
}

TEST_P(BoundPlans, a_run_that_is_not_finite_advances_nothing) {
  BoundPlan plan("step", guarded_update(), *device_, store_);
  plan.set_input("g", std::vector{std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(plan.run({}), BoundPlan::Outcome::refused);
  EXPECT_TRUE(std::isnan(plan.loss()));
  EXPECT_EQ(value("w"), 1);
  EXPECT_EQ(value("t"), 0);
}

TEST_P(BoundPlans, a_kernels_report_is_a_value_error_once) {
  BoundPlan plan("step", guarded_update(), *device_, store_);
  plan.set_input("g", std::vector{101.0F});
  EXPECT_EQ(message_of<ValueError>([&] { plan.run({}); }), "the gradient is too large");
  EXPECT_EQ(value("t"), 0);
  plan.set_input("g", std::vector{1.0F});
  EXPECT_EQ(plan.run({}), BoundPlan::Outcome::done);
}

TEST_P(BoundPlans, two_plans_over_one_store_see_each_others_updates) {
  BoundPlan first("first", guarded_update(), *device_, store_);
  BoundPlan second("second", guarded_update(), *device_, store_);
  first.set_input("g", std::vector{1.0F});
  EXPECT_EQ(message_of<TypeError>([&] { second.run({}); }),
            "plan 'second' cannot run: 1 input without a value: 'g' f32[1]");
  second.set_input("g", std::vector{1.0F});
  first.run({});
  second.run({});
  EXPECT_EQ(value("w"), 0.25);
  EXPECT_EQ(value("t"), 2);
  EXPECT_EQ(second.loss(), 0.5);
  EXPECT_EQ(first.loss(), 1.0);
}

TEST(BoundPlan, runs_after_the_first_allocate_nothing) {
  const auto device = device::make_device("cpu", {.workers = 2});
  Store store(*device, 0);
  store.extend(std::vector{StoreLeaf{LeafKind::parameter, "w", {f32, {1}}, false, init::ones()},
                           StoreLeaf{LeafKind::state, "t", {i64, {}}, true, init::zeros()},
                           StoreLeaf{LeafKind::scalar, "lr", {f64, {}}, true, init::constant(0.5)}},
               {});
  BoundPlan plan("step", guarded_update(), *device, store);
  const std::vector<float> gradient = {0.25F};
  double sum = 0;
  const auto step = [&] {
    plan.set_input("g", gradient);
    plan.run({});
    sum += plan.loss();
  };
  step();
  const std::int64_t before = tests::allocations().count;
  for (int k = 2; k <= 100; ++k) step();
  EXPECT_EQ(tests::allocations().count, before);
  EXPECT_TRUE(std::isfinite(sum));
}

INSTANTIATE_TEST_SUITE_P(Devices, BoundPlans, testing::Values("cpu", "kir"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace pantala::runtime::bound_plan_test
