// What bounds products on a Vulkan device? Workgroups of 64 threads, each with 16 sums as a block
// of a product has them: fmas alone, shared memory alone (two loads of four floats a round), and
// both, which is the inner loop of a tile. One line each: rounds of 16 fmas or 8 floats a second.
//   bench_shared_memory [vulkan:0]
#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kir/builder.h"
#include "plan/arena.h"

namespace {

using namespace pantala;
using kir::Builder;
using kir::Var;

constexpr int kThreads = 64, kSums = 16, kRounds = 2048;
constexpr std::int64_t kGroups = 64, kShared = 1024;

kir::Kernel kernel(bool multiplies, bool loads) {
  Builder b("inner", kThreads);
  const auto out = b.buffer("out", DType::f32, kir::Access::write);
  const auto shared = b.scratch("shared", DType::f32, kShared);
  b.loop(b.thread(), b.i64(kShared), b.i64(kThreads),
         [&](Var at) { b.store(shared, at, b.cast(at, DType::f32) * 1e-6); });
  b.barrier();
  const Var own = b.cast(b.thread(), DType::f32) * 1e-3;
  const std::vector<Var> start(kSums, own);
  const std::vector<Var> sums =
      b.loop(b.i64(0), b.i64(kRounds), b.i64(1), start, [&](Var k, std::span<const Var> before) {
        std::vector<Var> after(before.begin(), before.end());
        // Another place every round, as lines of a slice are.
        const Var line = b.binary(kir::Op::bit_and, k * 64, b.i64(kShared / 2 - 1));
        const auto operand = [&](Var lane) {
          if (!loads) return std::vector<Var>(4, own);
          const Var four = b.load(shared, line + b.binary(kir::Op::bit_and, lane, b.i64(7)) * 4, 4);
          std::vector<Var> values;
          for (int e = 0; e < 4; ++e) values.push_back(b.extract(four, e));
          return values;
        };
        const std::vector<Var> x = operand(b.thread()),
                               y = operand(b.binary(kir::Op::shr, b.thread(), b.i64(3)) + 1);
        for (std::size_t i = 0; i < kSums; ++i) {
          if (multiplies)
            after[i] = b.fma(x[i / 4], y[i % 4], after[i]);
          else if (i < 4)
            after[i] = after[i] + (x[i] + y[i]);
        }
        return after;
      });
  Var all = sums[0];
  for (std::size_t i = 1; i < kSums; ++i) all = all + sums[i];
  b.store(out, b.item() * kThreads + b.thread(), all);
  return b.finish();
}

double seconds_of(device::Device& device, const kir::Kernel& kernel) {
  plan::Plan plan;
  plan.name = "inner";
  const std::int64_t elements = kGroups * kThreads;
  plan::ArgumentSet set{.items = kGroups, .buffers = {}, .params = {}};
  set.buffers.push_back(
      plan::add_region_buffer(plan, plan::Storage::store, "out", DType::f32, elements));
  const std::uint32_t unit = plan::add_unit(plan, kernel);
  plan.launches.push_back({.name = "inner", .unit = unit, .sets = {set}});
  const std::vector<device::Slice> regions{{device.allocate(elements * 4), 0, elements * 4}};
  const device::PlanId id = device.load(plan);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 8; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    device.run(id, {.arena = {}, .regions = regions, .uniforms = {}});
    device.wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const auto device = device::make_device(argc > 1 ? argv[1] : "vulkan:0");
  constexpr double kAll = static_cast<double>(kGroups) * kThreads * kRounds;
  const double fmas = seconds_of(*device, kernel(true, false)),
               loads = seconds_of(*device, kernel(false, true)),
               both = seconds_of(*device, kernel(true, true));
  fmt::print("fmas alone            {:8.2f} GFLOP/s\n", kAll * kSums * 2 / fmas / 1e9);
  fmt::print("shared memory alone   {:8.2f} G floats/s\n", kAll * 8 / loads / 1e9);
  fmt::print("both                  {:8.2f} GFLOP/s\n", kAll * kSums * 2 / both / 1e9);
}
