// Loads and stores as machine code: conversions, masks that must not touch what they switch off,
// strides, gathers, streaming, scratch. Every buffer ends at an inaccessible page (llvm_case.h), so
// an access past it ends the test.
#include "unit/codegen/llvm_case.h"

namespace pantala::codegen::llvm_memory_test {
namespace {

using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Op;
using kir::Var;

constexpr DType kMemoryTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                  DType::i32, DType::i64, DType::u8,  DType::boolean};
constexpr int kLanes[] = {1, 4, 8, 16, 32};

// Lanes first + 0, first + 1, ... that are below n.
Var below(Builder& b, Var first, Var n, int lanes) {
  const Var numbers = lanes == 1 ? first : b.splat(first, lanes) + b.iota({DType::i64, lanes});
  return lt(numbers, kir::splat_like(numbers, n));
}

TEST(LlvmMemory, masked_tails_touch_nothing_behind_the_end) {
  for (const DType dtype : kMemoryTypes) {
    for (const int lanes : kLanes) {
      Builder b(title("tail", dtype, lanes));
      const BufferId from = b.buffer("from", dtype, Access::read),
                     to = b.buffer("to", dtype, Access::write);
      const Var n = b.param("n");
      b.loop(b.i64(0), n, b.i64(lanes), [&](Var i) {
        const Var mask = below(b, i, n, lanes);
        b.store(to, i, b.load(from, i, lanes, mask), mask);
      });
      const kir::Kernel kernel = b.finish();
      for (const std::int64_t n_elements : {1, 5, 37}) {
        Draw draw(11);
        expect_same_on_all_targets(kernel,
                                   {draw.array(dtype, n_elements), zeros(dtype, n_elements)},
                                   {ir::Number::of(n_elements)}, 1);
      }
    }
  }
}

TEST(LlvmMemory, any_mask_reads_zero_and_writes_nothing_where_it_is_off) {
  for (const DType dtype : kMemoryTypes) {
    for (const int lanes : kLanes) {
      Builder b(title("mask", dtype, lanes));
      const BufferId mask = b.buffer("mask", DType::boolean, Access::read),
                     from = b.buffer("from", dtype, Access::read);
      const BufferId all = b.buffer("all", dtype, Access::write),
                     some = b.buffer("some", dtype, Access::write);
      const Var at = b.item() * lanes;
      const Var on = b.load(mask, at, lanes);
      const Var value = b.load(from, at, lanes, on);
      b.store(all, at, value);
      b.store(some, at, value, on);
      constexpr std::int64_t kItems = 20;
      Draw draw(12);
      const std::int64_t n = kItems * lanes;
      expect_same_on_all_targets(b.finish(),
                                 {draw.array(DType::boolean, n), draw.array(dtype, n),
                                  zeros(dtype, n), draw.array(dtype, n)},
                                 {}, kItems);
    }
  }
}

TEST(LlvmMemory, strides_and_gathers) {
  for (const DType dtype : kMemoryTypes) {
    for (const int lanes : kLanes) {
      Builder b(title("stride", dtype, lanes));
      const BufferId from = b.buffer("from", dtype, Access::read),
                     index = b.buffer("index", DType::i64, Access::read);
      const BufferId index32 = b.buffer("index32", DType::i32, Access::read),
                     mask = b.buffer("mask", DType::boolean, Access::read);
      const BufferId rows = b.buffer("rows", dtype, Access::write),
                     columns = b.buffer("columns", dtype, Access::write);
      const BufferId gathered = b.buffer("gathered", dtype, Access::write),
                     gathered32 = b.buffer("gathered32", dtype, Access::write);
      const BufferId masked = b.buffer("masked", dtype, Access::write),
                     scattered = b.buffer("scattered", dtype, Access::write);
      const BufferId next = b.buffer("next", dtype, Access::write);
      const Var stride = b.param("stride"), back = b.param("back");
      const Var at = b.item() * lanes;
      const Var on = b.load(mask, at, lanes);
      const Var value = b.load_strided(from, b.item(), stride, lanes);
      b.store(rows, at, value);
      b.store_strided(columns, b.item(), stride, value);
      b.store(next, at, b.load_strided(from, at, b.i64(1), lanes));
      b.store(gathered, at, b.gather(from, b.load(index, at, lanes)));
      b.store(gathered32, at, b.gather(from, b.load(index32, at, lanes), on));
      // Backwards, with a mask.
      const Var last = b.item() + stride * (lanes - 1);
      b.store(masked, at, b.load_strided(from, last, back, lanes, on));
      b.store_strided(scattered, last, back, value, on);
      const kir::Kernel kernel = b.finish();

      constexpr std::int64_t kItems = 9;
      const std::int64_t n = kItems * lanes;
      Draw draw(13);
      std::vector<std::int64_t> wide;
      std::vector<std::int32_t> narrow;
      for (std::int64_t k = 0; k < n; ++k) {
        wide.push_back(static_cast<std::int64_t>(draw.bits() % static_cast<std::uint64_t>(n)));
        narrow.push_back(static_cast<std::int32_t>(draw.bits() % static_cast<std::uint64_t>(n)));
      }
      std::vector<Array> buffers{draw.array(dtype, n), array_of(DType::i64, wide),
                                 array_of(DType::i32, narrow), draw.array(DType::boolean, n)};
      for (int k = 0; k < 7; ++k) buffers.push_back(draw.array(dtype, n));
      expect_same_on_all_targets(kernel, buffers, {ir::Number::of(kItems), ir::Number::of(-kItems)},
                                 kItems);
    }
  }
}

// All 65536 half-width numbers, and the f32 numbers around each of them.
TEST(LlvmMemory, half_width_floats_convert_exactly) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Builder b(title("half", dtype, 16));
    const BufferId halves = b.buffer("halves", dtype, Access::read),
                   singles = b.buffer("singles", DType::f32, Access::read);
    const BufferId widened = b.buffer("widened", DType::f32, Access::write),
                   narrowed = b.buffer("narrowed", dtype, Access::write);
    const Var at = b.item() * 16;
    b.store(widened, at, b.load(halves, at, 16));
    for (const int part : {0, 1, 2})
      b.store(narrowed, at + part * 65536, b.load(singles, at + part * 65536, 16));
    const kir::Kernel kernel = b.finish();
    std::vector<std::uint16_t> all(65536);
    std::vector<std::uint32_t> around(3 * 65536);
    for (std::uint32_t k = 0; k < 65536; ++k) {
      all[k] = static_cast<std::uint16_t>(k);
      std::uint32_t wide = 0;
      kir::load_element(dtype, reinterpret_cast<const std::byte*>(&all[k]),
                        reinterpret_cast<std::byte*>(&wide));
      const std::uint32_t half_a_place = dtype == DType::f16 ? 1U << 12 : 1U << 15;
      for (const std::uint32_t part : {0U, 1U, 2U})
        around[part * 65536 + k] = wide + half_a_place + part - 1;
    }
    expect_same_on_all_targets(kernel,
                               {array_of(dtype, all), array_of(DType::f32, around),
                                zeros(DType::f32, 65536), zeros(dtype, 3 * 65536)},
                               {}, 4096);
  }
}

TEST(LlvmMemory, streaming_stores_of_any_alignment) {
  for (const DType dtype : kMemoryTypes) {
    for (const int lanes : kLanes) {
      Builder b(title("stream", dtype, lanes));
      const BufferId from = b.buffer("from", dtype, Access::read),
                     to = b.buffer("to", dtype, Access::write);
      const Var shift = b.param("shift");
      const Var at = b.item() * lanes + shift;
      b.prefetch(from, at + 100000);
      b.prefetch(to, at - 100000);
      b.store(to, at, b.load(from, at, lanes), {}, true);
      const kir::Kernel kernel = b.finish();
      constexpr std::int64_t kItems = 5;
      for (const std::int64_t first : {0, 3}) {
        Draw draw(14);
        expect_same_on_all_targets(
            kernel,
            {draw.array(dtype, 64 + kItems * lanes), draw.array(dtype, 64 + kItems * lanes)},
            {ir::Number::of(first)}, kItems);
      }
    }
  }
}

// Two scratch buffers of odd sizes: their places must not overlap, and what is written must be what
// is read.
TEST(LlvmMemory, scratch_keeps_what_an_item_writes) {
  Builder b("scratch");
  const BufferId from = b.buffer("from", DType::f32, Access::read),
                 to = b.buffer("to", DType::f32, Access::write);
  const BufferId first = b.scratch("first", DType::f32, 13),
                 second = b.scratch("second", DType::f64, 13);
  const Var at = b.item() * 13;
  b.loop(b.i64(0), b.i64(13), b.i64(1), [&](Var i) {
    const Var x = b.load(from, at + i);
    b.store(first, i, x);
    b.store(second, i, b.cast(x, DType::f64) * 3.0);
  });
  b.loop(b.i64(0), b.i64(13), b.i64(1), [&](Var i) {
    b.store(to, at + i, b.load(first, 12 - i) + b.cast(b.load(second, i), DType::f32));
  });
  Draw draw(15);
  expect_same_on_all_targets(b.finish(), {draw.array(DType::f32, 52), zeros(DType::f32, 52)}, {},
                             4);
}

}  // namespace
}  // namespace pantala::codegen::llvm_memory_test
