// Which scalars the host computes: hyper-parameters, counters and what follows from them.
#include "ops/host_scalars.h"

#include <gtest/gtest.h>

#include "pantala/ops.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"

namespace pantala::ops::host_scalars_test {
namespace {

bool is_host(const Graph& graph, const Tensor& value) {
  return host_scalars(*graph.data())[value.id().node];
}

TEST(HostScalars, leaves_are_hyper_parameters_and_counters) {
  EXPECT_TRUE(may_live_on_host(LeafKind::scalar, {f64, {}}));
  EXPECT_TRUE(may_live_on_host(LeafKind::state, {i64, {}}));
  EXPECT_TRUE(may_live_on_host(LeafKind::state, {f64, {}}));
  EXPECT_FALSE(may_live_on_host(LeafKind::state, {f32, {}}));
  EXPECT_FALSE(may_live_on_host(LeafKind::state, {boolean, {}}));
  EXPECT_FALSE(may_live_on_host(LeafKind::state, {i64, {1}}));
  EXPECT_FALSE(may_live_on_host(LeafKind::parameter, {f64, {}}));
  EXPECT_FALSE(may_live_on_host(LeafKind::input, {i64, {}}));
}

TEST(HostScalars, what_depends_on_them_and_constants_alone_is_the_hosts) {
  Graph g;
  const Tensor rate = g.scalar("rate", 0.1);
  const Tensor count = g.state("count", {}, init::zeros(), i64);
  const Tensor x = g.input("x", {}, f32);
  const Tensor decayed = rate * pow(0.9, cast(count + 1, f64));
  g.update(count, count + 1);
  EXPECT_TRUE(is_host(g, decayed));
  EXPECT_TRUE(is_host(g, stop_gradient(sigmoid(rate))));
  EXPECT_FALSE(is_host(g, cast(rate, f32) * x));
  EXPECT_FALSE(is_host(g, reshape(rate, {1})));
  EXPECT_FALSE(is_host(g, g.constant(1.0) + g.constant(2.0)));
}

TEST(HostScalars, a_counter_that_the_device_advances_is_the_devices) {
  Graph g;
  const Tensor x = g.input("x", {}, i64);
  const Tensor seen = g.state("seen", {}, init::zeros(), i64);
  const Tensor after = g.state("after", {}, init::zeros(), i64);
  const Tensor reset = g.state("reset", {}, init::zeros(), i64);
  g.update(seen, seen + x);
  g.update(after, seen + 1);  // follows from one of the device
  g.update(reset, g.constant(0, {}, i64));
  EXPECT_FALSE(is_host(g, seen));
  EXPECT_FALSE(is_host(g, after));
  EXPECT_TRUE(is_host(g, reset));
}

// The guard leaves what it calls the host's unguarded: the scheduler must agree about it.
TEST(HostScalars, lowering_changes_no_answer) {
  Graph g;
  const Tensor rate = g.scalar("rate", 0.1);
  const Tensor loss = g.input("loss", {}, f64);
  const auto counter = [&](const std::string& name, const Tensor& next) {
    g.update(g.leaf(name), next);
  };
  for (const char* name : {"composite", "sum", "mixed"}) g.state(name, {}, init::zeros(), f64);
  counter("composite", gelu(g.leaf("composite")) + softplus(rate));
  counter("sum", add_n({g.leaf("sum"), rate, stop_gradient(rate)}));
  counter("mixed", g.leaf("mixed") + silu(loss));
  const Graph lowered = schedule::lower(g, schedule::cpu::archetypes());
  for (const char* name : {"composite", "sum", "mixed", "rate"})
    EXPECT_EQ(is_host(g, g.leaf(name)), is_host(lowered, lowered.leaf(name))) << name;
  EXPECT_TRUE(is_host(lowered, lowered.leaf("composite")));
  EXPECT_FALSE(is_host(lowered, lowered.leaf("mixed")));
}

}  // namespace
}  // namespace pantala::ops::host_scalars_test
