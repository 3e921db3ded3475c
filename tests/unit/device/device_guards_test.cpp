// Sentinels around memory, the gaps of the arena, and poison in builds with AddressSanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "device/guards.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "unit/plan/plan_case.h"
#if defined(PANTALA_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace pantala::device::device_guards_test {
namespace {

using plan::Plan;
using plan::Scalar;
using plan::slot_of;
using plan::Storage;
using tests::message_of;

const std::vector<std::int64_t> kUniforms{slot_of(0.125F), slot_of(1e9)};

bool poisoned([[maybe_unused]] const std::byte* at) {
#if defined(PANTALA_ADDRESS_SANITIZER)
  return __asan_address_is_poisoned(at) != 0;
#else
  return false;
#endif
}

// y[first item .. first item + items) = 1, wherever that is.
kir::Kernel ones() {
  kir::Builder b("ones");
  const kir::BufferId y = b.buffer("y", DType::f32, kir::Access::write);
  const kir::Var first = b.param("first");
  b.store(y, first + b.item(), b.constant({DType::f32, 1}, 1.0));
  return b.finish();
}

// Ten ones from element `first` on: to a temporary of ten elements or to a region of ten.
Plan ten_ones(std::int64_t first, Storage storage) {
  Plan p;
  p.name = "ten_ones";
  const std::uint32_t unit = add_unit(p, ones());
  const std::uint32_t y = storage == Storage::arena
                              ? add_arena_buffer(p, "y", DType::f32, 10)
                              : add_region_buffer(p, storage, "y", DType::f32, 10);
  add_arena_buffer(p, "after", DType::f32, 10);
  p.launches.push_back(plan::launch("ones", unit, {{10, {y}, {Scalar::immediate(first)}}}));
  p.buffers.back().offset = 64;
  p.arena_bytes = 64 + 40;
  return p;
}

std::string message_of_run(const Plan& plan, bool sentinels = true) {
  const auto device = make_device("cpu", {.workers = 2, .sentinels = sentinels});
  OnDevice on(*device, plan);
  return message_of<InternalError>([&] {
    on.run({});
    device->check_sentinels();
  });
}

TEST(Sentinels, a_kernel_that_writes_beside_its_region_is_found) {
  EXPECT_EQ(message_of_run(ten_ones(0, Storage::output)), "no error");
  EXPECT_EQ(message_of_run(ten_ones(1, Storage::output)),
            "memory 2: something wrote to byte 40 of its 40 bytes");
  EXPECT_EQ(message_of_run(ten_ones(-3, Storage::output)),
            "memory 2: something wrote 12 bytes before its 40 bytes");
}

TEST(Sentinels, a_kernel_that_writes_into_a_gap_of_the_arena_is_found) {
  EXPECT_EQ(message_of_run(ten_ones(0, Storage::arena)), "no error");
  EXPECT_EQ(
      message_of_run(ten_ones(2, Storage::arena)),
      "plan 'ten_ones': a kernel wrote to byte 40 of the arena, a gap, 0 past the end of 'y'");
  EXPECT_EQ(message_of_run(ten_ones(2, Storage::arena), false), "no error");
}

TEST(Sentinels, the_hosts_own_writes_are_seen_too) {
  for (const char* name : {"cpu", "kir"}) {
    const auto device = make_device(name, {.workers = 1, .sentinels = true});
    const MemoryId small = device->allocate(100), large = device->allocate(3 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device->host_view(small)) % plan::kAlignment, 0U);
    EXPECT_EQ(device->host_view(large)[(3 << 20) - 1], std::byte{0});
    EXPECT_EQ(device->memory().allocated, 100 + (3 << 20));
    device->check_sentinels();
    device->host_view(large)[3 << 20] = std::byte{1};
    EXPECT_THROW(device->check_sentinels(), InternalError);
    device->free(large);
    device->check_sentinels();
  }
}

TEST(Sentinels, a_plan_that_keeps_to_its_memory_runs_as_before) {
  std::map<std::string, std::vector<std::byte>> expected;
  for (const char* name : {"kir", "cpu"})
    for (const bool sentinels : {false, true}) {
      const auto device = make_device(name, {.workers = 3, .sentinels = sentinels});
      OnDevice on(*device, plan::small_step(127));
      on.fill(3);
      for (int k = 0; k < 3; ++k) on.run(kUniforms);
      if (expected.empty()) expected = on.contents();
      EXPECT_EQ(on.contents(), expected);
      device->check_sentinels();
    }
}

TEST(Sentinels, read_as_na_n_in_every_float) {
  std::vector<std::byte> bytes(64);
  write_sentinels(bytes);
  EXPECT_EQ(damaged_sentinel(bytes), std::nullopt);
  float f = 0;
  double d = 0;
  std::uint16_t half = 0;
  std::memcpy(&f, bytes.data(), 4);
  std::memcpy(&d, bytes.data(), 8);
  std::memcpy(&half, bytes.data(), 2);
  EXPECT_TRUE(std::isnan(f));
  EXPECT_TRUE(std::isnan(d));
  EXPECT_GT(half & 0x7FFF, 0x7C00);                                          // f16
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(std::uint32_t{half} << 16)));  // bf16
  bytes[7] = std::byte{0};
  EXPECT_EQ(damaged_sentinel(bytes), 7);
}

TEST(ArenaGaps, are_what_no_buffer_covers) {
  Plan p = ten_ones(0, Storage::arena);
  p.arena_bytes = 200;
  const ArenaGaps gaps(p);
  EXPECT_THAT(gaps.gaps(), testing::ElementsAre(ArenaGaps::Gap{40, 24}, ArenaGaps::Gap{104, 96}));
  EXPECT_THAT(ArenaGaps(Plan{}).gaps(), testing::IsEmpty());
}

TEST(ArenaPoison, covers_gaps_and_other_temporaries_while_it_stands) {
  const Plan p = ten_ones(0, Storage::arena);
  alignas(64) std::byte arena[104] = {};
  {
    ArenaPoison poison(ArenaGaps(p), arena, p);
    EXPECT_FALSE(poisoned(arena));
    EXPECT_FALSE(poisoned(arena + 39));
    EXPECT_EQ(poisoned(arena + 40), kPoisons);
    EXPECT_EQ(poisoned(arena + 63), kPoisons);
    EXPECT_FALSE(poisoned(arena + 64));
    poison.only(p.launches[0]);
    EXPECT_FALSE(poisoned(arena + 39));
    EXPECT_EQ(poisoned(arena + 40), kPoisons);
    EXPECT_EQ(poisoned(arena + 64), kPoisons);
  }
  for (const std::byte& byte : arena) EXPECT_FALSE(poisoned(&byte));
}

}  // namespace
}  // namespace pantala::device::device_guards_test
