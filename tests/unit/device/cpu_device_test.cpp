// The CPU device: the same bits for any number of workers and as the kernel-IR interpreter has
// them; barriers; no allocation once it runs; errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "device/cpu/pool.h"
#include "pantala/error.h"
#include "plan/serialize.h"
#include "support/allocations.h"
#include "support/errors.h"
#include "support/plan_code.h"
#include "unit/plan/plan_case.h"

namespace pantala::device::cpu_device_test {
namespace {

using plan::Plan;
using plan::Scalar;
using plan::slot_of;
using plan::Storage;
using tests::message_of;

const std::vector<std::int64_t> kUniforms{slot_of(0.125F), slot_of(1e9)};

std::map<std::string, std::vector<std::byte>> three_steps(Device& device, const Plan& plan) {
  OnDevice on(device, plan);
  on.fill(5);
  for (const float rate : {0.5F, -0.25F, 0.0625F}) on.run({slot_of(rate), slot_of(1e9)});
  return on.contents();
}

// dst[item] = src[last item - item] + 1: every item needs the work of another worker.
kir::Kernel swap_and_count() {
  kir::Builder b("swap_and_count");
  const kir::BufferId src = b.buffer("src", DType::i64, kir::Access::read),
                      dst = b.buffer("dst", DType::i64, kir::Access::write);
  const kir::Var last = b.param("last");
  b.store(dst, b.item(), b.load(src, last - b.item()) + 1);
  return b.finish();
}

Plan ping_pong(int launches, std::int64_t items) {
  Plan p;
  p.name = "ping_pong";
  const std::uint32_t unit = add_unit(p, swap_and_count());
  const std::uint32_t a = add_region_buffer(p, Storage::store, "a", DType::i64, items),
                      b = add_region_buffer(p, Storage::store, "b", DType::i64, items);
  for (int k = 0; k < launches; ++k)
    p.launches.push_back(plan::launch("swap", unit,
                                      {{items,
                                        k % 2 == 0 ? std::vector{a, b} : std::vector{b, a},
                                        {Scalar::immediate(items - 1)}}}));
  add_dependencies(p);
  return p;
}

// Returns the seconds that the runs took.
double play(Device& device, const Plan& plan, std::int64_t items, int runs) {
  OnDevice on(device, plan);
  on.run({});
  const auto begin = std::chrono::steady_clock::now();
  for (int r = 1; r < runs; ++r) on.run({});
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::vector<std::int64_t> a(static_cast<std::size_t>(items));
  device.read(on.regions[0], std::as_writable_bytes(std::span(a)));
  EXPECT_THAT(a, testing::Each(std::ssize(plan.launches) * runs));
  return time.count();
}

TEST(CpuDevice, gives_the_bits_of_the_interpreter_for_any_number_of_workers) {
  for (const std::int64_t n : {100, 101, 127, 1000, 4096}) {
    SCOPED_TRACE(n);
    const Plan plan = plan::small_step(n);
    const auto expected = three_steps(*make_device("kir"), plan);
    for (const int workers : {1, 2, 3, 7}) {
      SCOPED_TRACE(workers);
      EXPECT_EQ(three_steps(*make_device("cpu", {.workers = workers}), plan), expected);
    }
  }
}

TEST(CpuDevice, computes_what_the_plan_says) {
  const auto device = make_device("cpu", {.workers = 2});
  const std::int64_t n = 200;
  OnDevice on(*device, plan::small_step(n));
  std::vector<float> x(static_cast<std::size_t>(n)), w(static_cast<std::size_t>(n), 1.0F);
  std::iota(x.begin(), x.end(), 0.0F);
  device->write(on.regions[0], std::as_bytes(std::span(x)));
  device->write(on.regions[1], std::as_bytes(std::span(w)));
  on.run({slot_of(0.0078125F), slot_of(1e9)});
  double expected = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double moved = 1.0 + 0.0078125 * x[k];
    const double a = moved * moved + 0.25 + (k < 100 ? 2.0 * static_cast<double>(k) * 0.125 : 0.0);
    expected += a / 2 * (a / 2) + 0.25;
  }
  float loss = 0;
  device->read(on.regions.back(), std::as_writable_bytes(std::span(&loss, 1)));
  EXPECT_NEAR(loss, expected, expected * 1e-5);
}

TEST(CpuDevice, runs_compiled_plans_from_bytes) {
  Plan plan = plan::small_step();
  plan.units.push_back(plan::unit_of(plan::square("twin")));  // the same code as "square"
  plan.launches[4].unit = static_cast<std::uint32_t>(plan.units.size() - 1);
  const auto expected = three_steps(*make_device("cpu", {.workers = 2}), plan);
  Plan compiled = plan;
  plan::compile_units(compiled, codegen::detect_host(), 2);
  EXPECT_EQ(compiled.units.size(), plan.units.size() - 1);
  for (plan::Unit& unit : compiled.units) unit.kernel.reset();
  const Plan loaded = plan::deserialize(plan::serialize(compiled));
  EXPECT_EQ(three_steps(*make_device("cpu", {.workers = 2}), loaded), expected);
  EXPECT_THROW(make_device("kir")->load(loaded), DeviceError);

  Plan foreign = loaded;
  foreign.target = "another machine";
  EXPECT_THROW(make_device("cpu")->load(foreign), DeviceError);
  Plan recompiled = compiled;
  recompiled.target = "another machine";
  for (std::size_t k = 0; k < recompiled.units.size(); ++k)
    recompiled.units[k].kernel = plan.units[k].kernel;
  EXPECT_EQ(three_steps(*make_device("cpu", {.workers = 2}), recompiled), expected);
  Plan damaged = loaded;
  damaged.units[0].object.resize(50);
  EXPECT_THROW(make_device("cpu")->load(damaged), DeviceError);
}

TEST(CpuDevice, many_tiny_launches_meet_at_their_barriers) {
  constexpr int kLaunches = 1000, kRuns = 100;
  const auto device = make_device("cpu", {.workers = 2});
  const double barriers = kLaunches * (kRuns - 1);
  const double two = play(*device, ping_pong(kLaunches, 2), 2, kRuns) / barriers * 1e6;
  const double one =
      play(*make_device("cpu", {.workers = 1}), ping_pong(kLaunches, 2), 2, kRuns) / barriers * 1e6;
  RecordProperty("us_per_launch_and_barrier_2_workers", fmt::format("{:.3f}", two));
  fmt::print(
      "tiny launches: {:.3f} us each with 2 workers and a barrier, {:.3f} us with 1 worker\n", two,
      one);
}

TEST(CpuDevice, more_workers_than_cpus_sleep_and_still_meet) {
  for (const int workers : {3, 7})
    play(*make_device("cpu", {.workers = workers}), ping_pong(200, 14), 14, 5);
  play(*make_device("cpu", {.workers = 2, .spin_microseconds = 0}), ping_pong(200, 2), 2, 10);
}

TEST(CpuDevice, workers_wake_up_after_a_long_pause) {
  const auto device = make_device("cpu", {.workers = 2, .spin_microseconds = 50});
  OnDevice on(*device, ping_pong(10, 2));
  for (int k = 0; k < 5; ++k) {
    on.run({});
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  std::int64_t a[2] = {};
  device->read(on.regions[0], std::as_writable_bytes(std::span(a)));
  EXPECT_THAT(a, testing::ElementsAre(50, 50));
}

TEST(CpuDevice, allocates_nothing_after_the_first_run) {
  for (const int workers : {1, 3}) {
    const auto device = make_device("cpu", {.workers = workers});
    OnDevice on(*device, plan::small_step());
    on.run(kUniforms);
    const auto before = tests::allocations().count;
    std::int32_t status = 0;
    for (int k = 2; k <= 100; ++k) {
      on.run(kUniforms);
      status += device->take_status();
    }
    EXPECT_EQ(tests::allocations().count, before);
    EXPECT_EQ(status, 0);
  }
}

TEST(CpuDevice, the_status_word_is_read_once) {
  for (const char* name : {"cpu", "kir"}) {
    const auto device = make_device(name, {.workers = 2});
    OnDevice on(*device, plan::small_step());
    on.run(kUniforms);
    EXPECT_EQ(device->take_status(), 0);
    on.run({slot_of(0.5F), slot_of(-1.0)});
    EXPECT_EQ(device->take_status(), 7);
    EXPECT_EQ(device->take_status(), 0);
  }
}

TEST(CpuDevice, bindings_must_fit) {
  for (const char* name : {"cpu", "kir"}) {
    SCOPED_TRACE(name);
    const auto device = make_device(name, {.workers = 2});
    OnDevice on(*device, plan::small_step(1000));
    const auto message = [&]() -> std::string {
      return message_of<TypeError>([&] { on.run(kUniforms); });
    };
    const auto regions = on.regions;
    const Slice arena = on.arena;
    EXPECT_EQ(message(), "no error");
    on.regions[0].bytes -= 4;
    EXPECT_EQ(message(), "plan 'small_step': input 'x' has 4000 bytes, 3996 are bound");
    on.regions = regions;
    on.regions[1] = regions[0];
    EXPECT_THAT(message(), testing::HasSubstr("are bound to memory that overlaps"));
    on.regions = regions;
    on.regions[1].offset = 8;
    EXPECT_THAT(message(),
                testing::HasSubstr("w0: 4000 bytes from byte 8 of a memory of 4000 bytes"));
    on.regions = regions;
    on.regions[0].memory = {12345};
    EXPECT_THAT(message(), testing::HasSubstr("x: there is no memory 12345"));
    on.regions = regions;
    on.regions.pop_back();
    EXPECT_THAT(message(), testing::HasSubstr("5 regions are bound, it has 6"));
    on.regions = regions;
    on.arena.bytes -= 1;
    EXPECT_THAT(message(), testing::HasSubstr("it needs 8032"));
    on.arena = arena;
    EXPECT_EQ(message(), "no error");
    EXPECT_THROW(on.run({}), TypeError);
    EXPECT_THROW(device->run({99}, {}), TypeError);
    EXPECT_THROW(device->unload({99}), TypeError);
    // Memory that is freed is no longer bound.
    const MemoryId other = device->allocate(4000);
    on.regions[0].memory = other;
    EXPECT_EQ(message(), "no error");
    device->free(other);
    EXPECT_THAT(message(), testing::HasSubstr("there is no memory"));
    on.regions = regions;
  }
}

TEST(CpuDevice, bound_memory_must_suit_the_elements) {
  const auto device = make_device("cpu", {.workers = 1});
  OnDevice on(*device, ping_pong(1, 2));
  const MemoryId memory = device->allocate(64);
  const Slice whole = on.regions[0];
  on.regions[0] = {memory, 4, 16};
  EXPECT_THROW(on.run({}), TypeError);
  on.regions[0] = {memory, 8, 16};
  on.run({});
  on.regions[0] = whole;
}

TEST(CpuDevice, copies_are_checked) {
  const auto device = make_device("cpu", {.workers = 1});
  const MemoryId a = device->allocate(100), b = device->allocate(5 << 20);
  std::vector<std::byte> bytes(100, std::byte{3}), back(100);
  device->write({a, 0, 100}, bytes);
  device->copy({a, 0, 100}, {b, 7, 100});
  device->read({b, 7, 100}, back);
  EXPECT_EQ(bytes, back);
  EXPECT_EQ(device->host_view(b)[6], std::byte{0});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device->host_view(b)) % (2 << 20), 0U)
      << "large memory starts at a huge page";
  EXPECT_THROW(device->write({a, 1, 100}, bytes), TypeError);
  EXPECT_THROW(device->write({a, 0, 99}, bytes), TypeError);
  EXPECT_THROW(device->read({a, -1, 100}, back), TypeError);
  EXPECT_THROW(device->copy({a, 0, 100}, {b, 0, 99}), TypeError);
  EXPECT_THROW(device->copy({a, INT64_MAX, 100}, {b, 0, 100}), TypeError);
  EXPECT_THROW(device->allocate(-1), DeviceError);
  EXPECT_THROW(device->allocate(INT64_MAX), DeviceError);
  EXPECT_EQ(device->memory().allocated, 100 + (5 << 20));
  device->free(b);
  EXPECT_THROW(device->free(b), TypeError);
  EXPECT_EQ(device->memory().allocated, 100);
  EXPECT_EQ(device->memory().peak_allocated, 100 + (5 << 20));
}

TEST(CpuDevice, memory_is_summarised) {
  const auto device = make_device("cpu", {.workers = 3});
  const Plan plan = plan::small_step();
  OnDevice on(*device, plan);
  EXPECT_EQ(device->memory().scratch, 3 * plan.scratch_bytes);
  EXPECT_EQ(device->memory().constants, 400);
  EXPECT_GE(device->memory().allocated, plan.arena_bytes);
}

#if defined(__x86_64__)
// A caller that flushes subnormals to zero gets the same bits, and keeps its setting.
TEST(CpuDevice, the_callers_float_environment_does_not_matter) {
  constexpr unsigned kFlush = 0x8040;
  const unsigned saved = _mm_getcsr();
  for (const char* name : {"cpu", "kir"}) {
    const auto device = make_device(name, {.workers = 1});
    OnDevice on(*device, plan::small_step());
    const float tiny = 1e-40F;
    device->write({on.regions[0].memory, 0, 4}, std::as_bytes(std::span(&tiny, 1)));
    _mm_setcsr(saved | kFlush);
    on.run({slot_of(1.0F), slot_of(1e9)});
    EXPECT_EQ(_mm_getcsr() & kFlush, kFlush);
    _mm_setcsr(saved);
    float moved = 0;
    device->read({on.regions[1].memory, 0, 4}, std::as_writable_bytes(std::span(&moved, 1)));
    EXPECT_EQ(moved, tiny);
  }
}
#endif

TEST(CpuDevice, many_threads_may_use_one_device) {
  const auto device = make_device("cpu", {.workers = 2});
  const auto expected = three_steps(*make_device("kir"), plan::small_step());
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int k = 0; k < 3; ++k)
          if (three_steps(*device, plan::small_step()) != expected) ++wrong;
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device->memory().allocated, 0);
}

TEST(CpuDevice, plans_that_break_a_rule_are_refused) {
  const auto device = make_device("cpu", {.workers = 1});
  const auto refused = [&](const std::function<void(Plan&)>& change) {
    Plan p = plan::small_step();
    change(p);
    EXPECT_THROW(device->load(p), InternalError);
  };
  // Writes an input.
  refused([](Plan& p) { p.launches[0].sets[0].buffers[1] = p.launches[0].sets[0].buffers[0]; });
  refused([](Plan& p) { p.launches[1].sets[0].buffers.pop_back(); });
  refused([](Plan& p) { p.launches[1].sets[0].params.clear(); });
  refused([](Plan& p) { p.launches[1].sets[0].items = -1; });
  refused([](Plan& p) { p.launches[1].after = {1}; });
  refused([](Plan& p) { p.launches[0].sets[0].params[1] = Scalar::uniform(1); });  // f64 for f32
  refused([](Plan& p) { p.arena_bytes -= 1; });
  refused([](Plan& p) { p.scratch_bytes = 0; });
  refused([](Plan& p) { p.buffers[0].elements = INT64_MAX; });
  refused([](Plan& p) { p.units[1].kernel.reset(); });
  refused([](Plan& p) { p.units[1].entry = "axpy"; });
  refused([](Plan& p) { p.regions[1].name = "x"; });
}

TEST(KirDevice, finds_what_a_fast_device_takes_on_trust) {
  const auto device = make_device("kir");
  Plan unordered = plan::small_step();
  unordered.launches[3].after.clear();
  EXPECT_THROW(device->load(unordered), InternalError);
  Plan beyond = plan::small_step();
  beyond.launches[0].sets[1].params[0] = Scalar::immediate(2);  // w1 has one element
  OnDevice on(*device, beyond);
  EXPECT_THROW(on.run(kUniforms), InternalError);
}

TEST(MakeDevice, names_what_there_is) {
  EXPECT_THAT(device_names(), testing::ElementsAre("cpu", "kir", "vulkan"));
  EXPECT_EQ(make_device("kir")->name(), "kir");
  EXPECT_THAT(make_device("cpu", {.workers = 3})->description(),
              testing::StartsWith("cpu, 3 workers"));
  EXPECT_THROW(make_device("gpu"), UnsupportedError);
  EXPECT_THROW(make_device("cpu", {.workers = -1}), DeviceError);
  EXPECT_THROW(make_device("cpu", {.workers = 1 << 20}), DeviceError);
}

TEST(WorkerPool, every_worker_runs_every_job_once) {
  for (const int workers : {1, 2, 5}) {
    cpu::WorkerPool pool(workers, std::chrono::microseconds(20));
    std::vector<int> counts(static_cast<std::size_t>(workers));
    for (int k = 0; k < 200; ++k)
      pool.run(
          [](void* c, int worker) {
            ++(*static_cast<std::vector<int>*>(c))[static_cast<std::size_t>(worker)];
          },
          &counts);
    EXPECT_THAT(counts, testing::Each(200));
  }
  EXPECT_THROW(cpu::WorkerPool(0, {}), DeviceError);
}

TEST(WorkerPool, throws_in_the_caller_what_a_worker_threw) {
  cpu::WorkerPool pool(3, std::chrono::microseconds(20));
  const auto run = [&](int thrower) {
    pool.run(
        [](void* c, int worker) {
          if (worker >= *static_cast<int*>(c)) throw std::out_of_range(std::to_string(worker));
        },
        &thrower);
  };
  for (const int thrower : {0, 1, 2}) {
    try {
      run(thrower);
      FAIL();
    } catch (const std::out_of_range& e) { EXPECT_EQ(e.what(), std::to_string(thrower)); }
  }
  run(3);  // and goes on
}

// The best of many short batches: what a barrier costs while both workers have a CPU.
TEST(WorkerPool, the_cost_of_a_barrier) {
  constexpr int kBatches = 200, kRounds = 1000;
  struct Context {
    cpu::WorkerPool pool{2, std::chrono::microseconds(200)};
    std::vector<double> microseconds;
  } context;
  context.pool.run(
      [](void* opaque, int worker) {
        auto& c = *static_cast<Context*>(opaque);
        for (int batch = 0; batch < kBatches; ++batch) {
          const auto begin = std::chrono::steady_clock::now();
          for (int k = 0; k < kRounds; ++k) c.pool.barrier();
          const std::chrono::duration<double, std::micro> time =
              std::chrono::steady_clock::now() - begin;
          if (worker == 0) c.microseconds.push_back(time.count() / kRounds);
        }
      },
      &context);
  std::ranges::sort(context.microseconds);
  const double best = context.microseconds.front(), median = context.microseconds[kBatches / 2];
  RecordProperty("us_per_barrier_2_workers", fmt::format("{:.3f}", best));
  fmt::print("a barrier of 2 workers: {:.3f} us at best, {:.3f} us in the median of {} batches\n",
             best, median, kBatches);
}

}  // namespace
}  // namespace pantala::device::cpu_device_test
