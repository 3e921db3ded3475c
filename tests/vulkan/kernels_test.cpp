// Single kernels on a Vulkan device against the interpreter of kernels.
#include <gmock/gmock.h>

#include "device/vulkan/facts.h"
#include "unit/codegen/llvm_case.h"
#include "vulkan/instance.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using codegen::Array;
using codegen::array_of;
using codegen::Draw;
using codegen::title;
using codegen::zeros;
using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Op;
using kir::Var;

constexpr int kLanes[] = {1, 4};

class VulkanKernels : public OnVulkan {};

void add_comparisons(Cases& cases, Var a, Var b) {
  for (const Op op : {Op::lt, Op::le, Op::eq, Op::ne}) {
    const Var holds = cases.builder.binary(op, a, b);
    cases.result(std::string(kir::op_name(op)), holds);
    cases.result(std::string(kir::op_name(op)) + "_select", cases.builder.select(holds, a, b));
  }
}

TEST_F(VulkanKernels, float_arithmetic_that_vulkan_promises_matches) {
  for (const int lanes : kLanes) {
    Cases cases(title("floats", DType::f32, lanes), lanes);
    Builder& b = cases.builder;
    const Var x = cases.input("x", DType::f32), y = cases.input("y", DType::f32);
    for (const Op op : {Op::add, Op::sub, Op::mul})
      cases.result(std::string(kir::op_name(op)), b.binary(op, x, y));
    for (const Op op : {Op::neg, Op::abs, Op::floor, Op::ceil, Op::round})
      cases.result(std::string(kir::op_name(op)), b.unary(op, x));
    cases.result("constant", x * 0.1 + 3.0);
    cases.result("bits", b.bitcast(x, DType::i32));
    cases.result("relu", max(x, kir::like(x, 0.0)));
    cases.expect();
  }
}

TEST_F(VulkanKernels, comparisons_of_numbers_that_are_normal_match) {
  for (const int lanes : kLanes) {
    Cases cases(title("compare", DType::f32, lanes), lanes);
    Builder& b = cases.builder;
    const Var x = b.cast(cases.input("x", DType::i32), DType::f32),
              y = b.cast(cases.input("y", DType::i32), DType::f32);
    const Var nan = kir::like(x, NAN);
    const Var a = b.select(lt(x, kir::like(x, -1e9)), nan, x);
    add_comparisons(cases, a, y);
    for (const Op op : {Op::min, Op::max}) {
      cases.result(std::string(kir::op_name(op)), b.binary(op, a, y));
      cases.result(std::string(kir::op_name(op)) + "_2", b.binary(op, y, a));
    }
    cases.expect();
  }
}

TEST_F(VulkanKernels, division_square_root_and_fma_are_within_what_vulkan_allows) {
  Cases cases("inexact", 1);
  Builder& b = cases.builder;
  const auto tame = [&](const char* name) {
    return b.cast(cases.input(name, DType::i32), DType::f32) * 0.37 + 1.5;
  };
  const Var x = tame("x"), y = tame("y");
  cases.result("div", x / y);
  cases.result("sqrt", b.unary(Op::sqrt, b.unary(Op::abs, x)));
  cases.result("fma", b.fma(x, y, kir::like(x, 1e30)));
  cases.expect({.ulps = 3});
}

// All kinds of numbers, subnormal ones and those that are none among them.
TEST_F(VulkanKernels, division_square_root_and_fma_in_integers_are_correctly_rounded) {
  const device::vulkan::Arithmetic wrong{.divides = false, .takes_roots = false, .fuses = false};
  device::vulkan::note_arithmetic_of(test_device(), wrong);
  for (const bool plain : {false, true}) {
    device::vulkan::faults().plain = plain;
    EXPECT_THAT(device::vulkan::test_arithmetic(*device::make_device(test_device())).inexact(),
                testing::IsEmpty());
  }
  for (const int lanes : {1, 32}) {
    Cases cases("in_integers", lanes);
    Builder& b = cases.builder;
    const Var x = cases.input("x", DType::f32), y = cases.input("y", DType::f32),
              z = cases.input("z", DType::f32);
    cases.result("div", x / y);
    cases.result("small", b.bitcast(b.bitcast(x, DType::i32) / 256, DType::f32) / y);
    cases.result("sqrt", b.unary(Op::sqrt, x));
    cases.result("root", b.unary(Op::sqrt, b.unary(Op::abs, y)));
    cases.result("fma", b.fma(x, y, z));
    cases.result("cancels", b.fma(x, y, b.unary(Op::neg, x * y)));
    cases.result("same", b.fma(x, kir::like(x, 1.0 - 0x1p-24), b.unary(Op::neg, x)));
    cases.expect({.ulps = 0, .flushed = false});
  }
  device::vulkan::note_arithmetic_of(test_device(), {});
}

// A driver may know rules about a root beside a division that do not keep what each rounds.
// With double precision, of numbers that are normal.
TEST_F(VulkanKernels, fma_by_double_precision_is_correctly_rounded) {
  device::vulkan::note_arithmetic_of(test_device(), {.fuses = false});
  Cases cases("by_double", 1);
  Builder& b = cases.builder;
  const Var x = cases.input("x", DType::f32), y = cases.input("y", DType::f32),
            z = cases.input("z", DType::f32);
  cases.result("fma", b.fma(x, y, z));
  cases.result("cancels", b.fma(x, y, b.unary(Op::neg, x * y)));
  cases.result("same", b.fma(x, kir::like(x, 1.0 - 0x1p-24), b.unary(Op::neg, x)));
  cases.result("square", b.fma(kir::like(x, 1.0 + 0x1p-12), kir::like(x, 1.0 + 0x1p-12),
                               b.select(lt(x, y), kir::like(x, 0x1p-80), kir::like(x, -0x1p-80))));
  cases.expect({.ulps = 0});
  device::vulkan::note_arithmetic_of(test_device(), {});
}

// What a loop adds up is a chain of products and sums there.
TEST_F(VulkanKernels, sums_of_loops_are_near_without_fma) {
  device::vulkan::note_arithmetic_of(test_device(), {.fuses = false});
  Builder b("sum_of_products");
  const BufferId from = b.buffer("from", DType::f32, Access::read),
                 to = b.buffer("to", DType::f32, Access::write);
  const Var zero = b.constant({DType::f32, 1}, 0.0);
  const Var sum =
      b.loop(b.i64(0), b.i64(40), b.i64(1), {zero}, [&](Var k, std::span<const Var> before) {
        const Var x = b.load(from, b.item() * 40 + k);
        return std::vector{b.fma(x, x, before[0])};
      })[0];
  b.store(to, b.item(), sum);
  std::vector<float> numbers(40 * 96);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = 1 + static_cast<float>(k * 7919 % 10007) / 10007;
  expect_same(b.finish(), {array_of(DType::f32, numbers), zeros(DType::f32, 96)}, {}, 96,
              {.ulps = 20});
  device::vulkan::note_arithmetic_of(test_device(), {});
}

TEST_F(VulkanKernels, roots_beside_divisions_are_rounded_one_by_one) {
  for (const bool own : {true, false}) {
    const device::vulkan::Arithmetic wrong{.divides = false, .takes_roots = false};
    if (!own) device::vulkan::note_arithmetic_of(test_device(), wrong);
    Cases cases("beside", 1);
    Builder& b = cases.builder;
    const auto positive = [&](const char* name) {
      const Var bits = cases.input(name, DType::i32);
      const Var digits = b.binary(Op::bit_and, bits, kir::like(bits, 0xFFFFFF));
      return b.cast(digits, DType::f32) * 0.37 + 1.5;
    };
    const Var x = positive("x"), y = positive("y"), one = kir::like(x, 1.0);
    const auto root = [&](Var v) { return b.unary(Op::sqrt, v); };
    cases.result("over_root", x / root(y));
    cases.result("inverse_root", one / root(x));
    cases.result("root_of_quotient", root(x / y));
    cases.result("root_of_inverse", root(one / x));
    cases.result("root_over", root(x) / y);
    cases.result("adam", x / (root(y) / x + 1e-8));
    cases.result("adam_of_constant", x / (root(y) / 0.9 + 1e-8));
    cases.result("mix", x * 0.9 + y * 0.1);
    cases.result("twice", one / (one / x));
    cases.result("square", root(x) * root(x));
    cases.result("root_of_square", root(x * x));
    cases.result("product_of_inverse", x * (one / y));
    cases.result("over_both", x / y / root(y));
    cases.expect({.ulps = 0});
  }
  device::vulkan::note_arithmetic_of(test_device(), {});
}

TEST_F(VulkanKernels, integers_match) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    for (const int lanes : kLanes) {
      Cases cases(title("integers", dtype, lanes), lanes);
      Builder& b = cases.builder;
      const Var x = cases.input("x", dtype), y = cases.input("y", dtype);
      for (const Op op : {Op::add, Op::sub, Op::mul, Op::bit_and, Op::bit_or, Op::bit_xor, Op::shl,
                          Op::shr, Op::mulhi, Op::min, Op::max})
        cases.result(std::string(kir::op_name(op)), b.binary(op, x, y));
      for (const Op op : {Op::neg, Op::abs})
        cases.result(std::string(kir::op_name(op)), b.unary(op, x));
      const Var divisor =
          b.binary(Op::bit_or, b.binary(Op::bit_and, y, kir::like(y, 0xFFFF)), kir::like(y, 2));
      cases.result("div", x / divisor);
      cases.result("rem", x % divisor);
      cases.result("div_7", x / 7);
      cases.result("rem_minus_3", x % -3);
      cases.result("iota", b.iota(x.type()) + x);
      add_comparisons(cases, x, y);
      cases.expect();
    }
  }
}

// What is known to be small is computed in 32 bits: at the edges of that.
TEST_F(VulkanKernels, numbers_at_the_edge_of_32_bits_match) {
  Cases cases("edges", 1);
  Builder& b = cases.builder;
  const Var x = cases.input("x", DType::i64);
  const Var small = min(max(x, b.i64(-1000)), b.i64(INT32_MAX));
  cases.result("small", small);
  cases.result("more", small + 1);
  cases.result("product", small * small);
  cases.result("halved", (small + 1) / 2);
  cases.result("back", small * 4 - small * 3);
  cases.result("shifted", b.binary(Op::shl, small, b.i64(3)));
  cases.result("shifted_far", b.binary(Op::shr, small, b.i64(40)));
  cases.result("masked", b.binary(Op::bit_and, x, b.i64(0xFFFFFFFF)));
  cases.result("narrow", b.cast(x, DType::i32));
  cases.result("widened", b.cast(b.cast(x, DType::i32), DType::i64));
  cases.result("compared", b.select(lt(small + 1, x), x, small));
  cases.result("float", b.cast(small, DType::f32));
  cases.expect();
}

TEST_F(VulkanKernels, bools_and_casts_match) {
  constexpr DType kTypes[] = {DType::f32, DType::i32, DType::i64, DType::boolean};
  for (const int lanes : kLanes) {
    for (const DType from : kTypes) {
      Cases cases(title("casts", from, lanes), lanes);
      const Var x = cases.input("x", from);
      for (const DType to : kTypes)
        if (to != from) cases.result(std::string(dtype_name(to)), cases.builder.cast(x, to));
      if (from == DType::boolean) {
        const Var y = cases.input("y", from);
        for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq, Op::ne})
          cases.result(std::string(kir::op_name(op)), cases.builder.binary(op, x, y));
        cases.result("any", cases.builder.reduce(Op::reduce_max, x));
      }
      cases.expect({.ulps = from == DType::i64 ? 1 : 0});
    }
  }
}

TEST_F(VulkanKernels, lanes_match) {
  for (const DType dtype : {DType::f32, DType::i32, DType::i64}) {
    Cases cases(title("lanes", dtype, 8), 8);
    Builder& b = cases.builder;
    const Var small = b.binary(Op::bit_and, cases.input("i", DType::i32),
                               b.constant({DType::i32, 8}, std::int64_t{0xFFFFF}));
    const Var tame = is_float(dtype)       ? b.cast(small, dtype) * 0.001
                     : dtype == DType::i32 ? small
                                           : b.cast(small, dtype);
    for (const Op op : {Op::reduce_add, Op::reduce_max, Op::reduce_min})
      cases.result(std::string(kir::op_name(op)), b.reduce(op, tame));
    cases.result("extract", b.splat(b.extract(tame, 5), 8));
    std::vector<Var> rows;
    for (int r = 0; r < 8; ++r) rows.push_back(tame + r);
    cases.result("transposed", b.transpose(rows)[3]);
    cases.expect();
  }
}

// Loads and stores of every dtype, masked, strided and gathered, with any bits in memory.
kir::Kernel memory_kernel(DType dtype) {
  Builder b(title("memory", dtype, 4));
  const BufferId from = b.buffer("from", dtype, Access::read),
                 to = b.buffer("to", dtype, Access::write),
                 strided = b.buffer("strided", dtype, Access::read_write),
                 gathered = b.buffer("gathered", dtype, Access::write),
                 at = b.buffer("at", DType::i64, Access::read);
  const Var n = b.param("n");
  const Var first = b.item() * 4;
  const Var mask = lt(b.splat(first, 4) + b.iota({DType::i64, 4}), b.splat(n, 4));
  b.store(to, first, b.load(from, first, 4, mask), mask);
  b.store_strided(strided, b.item(), b.param("items"),
                  b.load_strided(from, b.item(), b.param("stride"), 4));
  b.store(gathered, first, b.gather(from, b.load(at, first, 4)));
  return b.finish();
}

void check_memory() {
  for (const DType dtype :
       {DType::f32, DType::i32, DType::i64, DType::f16, DType::bf16, DType::u8, DType::boolean}) {
    Draw draw(5);
    constexpr std::int64_t kItems = 40, kElements = kItems * 4;
    std::vector<std::int64_t> at(kElements);
    for (std::int64_t& index : at) index = static_cast<std::int64_t>(draw.bits() % kElements);
    expect_same(memory_kernel(dtype),
                {draw.array(dtype, kElements), draw.array(dtype, kElements),
                 zeros(dtype, kElements), zeros(dtype, kElements), array_of(DType::i64, at)},
                {ir::Number::of(kElements - 3), ir::Number::of(kItems), ir::Number::of(kItems)},
                kItems);
  }
}

TEST_F(VulkanKernels, memory_of_every_dtype_matches) { check_memory(); }

TEST_F(VulkanKernels, memory_matches_where_there_are_only_words_and_through_staging) {
  device::vulkan::faults().plain = true;
  device::vulkan::faults().staging = true;
  check_memory();
}

TEST_F(VulkanKernels, halves_are_rounded_to_nearest_even) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Builder b(title("round", dtype, 1));
    const BufferId from = b.buffer("from", DType::f32, Access::read),
                   to = b.buffer("to", dtype, Access::write);
    b.store(to, b.item(), b.load(from, b.item()));
    std::vector<float> numbers;
    for (std::uint32_t bits = 0x33000000; bits < 0x47900000; bits += 0x000FF7FF)
      for (const std::uint32_t near : {0U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U, 0x8000U, 0x18000U})
        numbers.push_back(std::bit_cast<float>(bits + near));
    for (const float x : {0.0F, -0.0F, 65519.9F, 65520.0F, -70000.0F, INFINITY, NAN, 1e-8F, 6e-8F})
      numbers.push_back(x);
    const auto count = std::ssize(numbers);
    expect_same(b.finish(), {array_of(DType::f32, numbers), zeros(dtype, count)}, {}, count);
  }
}

TEST_F(VulkanKernels, loops_and_branches_match) {
  Builder b("nested");
  const BufferId from = b.buffer("from", DType::i64, Access::read),
                 to = b.buffer("to", DType::i64, Access::write),
                 swapped = b.buffer("swapped", DType::f32, Access::write);
  const Var rows = b.param("rows"), columns = b.param("columns");
  const Var base = b.item() * rows * columns;
  const Var zero = b.constant({DType::f32, 1}, 0.0), one = b.constant({DType::f32, 1}, 1.0);
  const auto total =
      b.loop(b.i64(0), rows, b.i64(1), {b.i64(0), zero, one, b.i64(7)},
             [&](Var r, std::span<const Var> outer) {
               const auto row = b.loop(
                   b.i64(0), columns, b.i64(2), {outer[0]}, [&](Var c, std::span<const Var> inner) {
                     const Var x = b.load(from, base + r * columns + c);
                     return b.branch(
                         lt(x, b.i64(0)), [&] { return std::vector<Var>{inner[0] - x * 3}; },
                         [&] {
                           return b.branch(
                               lt(b.i64(100), x), [&] { return std::vector<Var>{inner[0]}; },
                               [&] { return std::vector<Var>{inner[0] + x}; });
                         });
                   });
               b.branch(lt(row[0], b.i64(50)), [&] { b.store(to, b.item() * 3 + 1, row[0]); });
               return std::vector<Var>{row[0], outer[2], outer[1], outer[3] + columns};
             });
  b.store(to, b.item() * 3, total[0]);
  b.store(to, b.item() * 3 + 2, total[3]);
  b.store(swapped, b.item(), total[1]);
  const kir::Kernel kernel = b.finish();
  Draw draw(22);
  std::vector<std::int64_t> numbers(3 * 4 * 5);
  for (std::int64_t& x : numbers) x = static_cast<std::int64_t>(draw.bits() % 400) - 200;
  for (const std::int64_t columns_of : {5, 0})
    for (const bool uniforms : {false, true})
      expect_same(kernel,
                  {array_of(DType::i64, numbers), zeros(DType::i64, 9), zeros(DType::f32, 3)},
                  {ir::Number::of(4), ir::Number::of(columns_of)}, 3, {}, uniforms);
}

TEST_F(VulkanKernels, parameters_of_every_type_match) {
  Builder b("params");
  const BufferId f = b.buffer("f", DType::f32, Access::write),
                 i = b.buffer("i", DType::i32, Access::write),
                 l = b.buffer("l", DType::i64, Access::write);
  b.store(f, b.item(), b.param("single", DType::f32));
  b.store(i, b.item(), b.param("int", DType::i32));
  b.store(l, b.item(), b.param("long", DType::i64) + b.item());
  const kir::Kernel kernel = b.finish();
  for (const bool uniforms : {false, true})
    for (const std::int64_t large : {INT64_MIN, std::int64_t{12}})
      expect_same(kernel, {zeros(DType::f32, 2), zeros(DType::i32, 2), zeros(DType::i64, 2)},
                  {ir::Number(-1.5), ir::Number::of(-7), ir::Number::of(large)}, 2, {}, uniforms);
}

TEST_F(VulkanKernels, reports_set_the_status_only_if_they_hold) {
  Builder b("report");
  const BufferId index = b.buffer("index", DType::i64, Access::read),
                 to = b.buffer("to", DType::i64, Access::write);
  const Var limit = b.param("limit");
  const Var x = b.load(index, b.item());
  b.report(le(limit, x), 17);
  b.store(to, b.item(), min(x, limit - 1));
  const kir::Kernel kernel = b.finish();
  for (const int limit_of : {5, 6})
    expect_same(kernel, {array_of<std::int64_t>(DType::i64, {1, 5, 2}), zeros(DType::i64, 3)},
                {ir::Number::of(limit_of)}, 3);
}

TEST_F(VulkanKernels, scratch_of_items_is_their_own) {
  Builder b("scratch");
  const BufferId from = b.buffer("from", DType::f32, Access::read),
                 to = b.buffer("to", DType::f32, Access::write);
  const BufferId tile = b.scratch("tile", DType::f32, 32), flags = b.scratch("flags", DType::u8, 5);
  const Var begin = b.item() * 32;
  b.loop(b.i64(0), b.i64(32), b.i64(1), [&](Var i) { b.store(tile, i, b.load(from, begin + i)); });
  b.store(flags, b.i64(3), b.cast(b.item(), DType::i32));
  const Var flag = b.cast(b.load(flags, b.i64(3)), DType::f32);
  b.loop(b.i64(0), b.i64(32), b.i64(1),
         [&](Var i) { b.store(to, begin + i, b.load(tile, 31 - i) + flag); });
  const kir::Kernel kernel = b.finish();
  constexpr std::int64_t kItems = 5000;
  std::vector<float> numbers(kItems * 32);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k % 1001);
  expect_same(kernel, {array_of(DType::f32, numbers), zeros(DType::f32, kItems * 32)}, {}, kItems);
}

TEST_F(VulkanKernels, more_items_than_groups_in_one_direction) {
  Builder b("many", 2);
  const BufferId to = b.buffer("to", DType::i32, Access::write);
  b.store(to, b.item() * 2 + b.thread(), b.cast(b.item() - b.thread(), DType::i32));
  constexpr std::int64_t kItems = 70001;
  expect_same(b.finish(), {zeros(DType::i32, kItems * 2)}, {}, kItems);
}

// Threads of an item exchange numbers through scratch and combine them.
kir::Kernel group_kernel(int threads) {
  Builder b("group" + std::to_string(threads), threads);
  const BufferId from = b.buffer("from", DType::f32, Access::read),
                 to = b.buffer("to", DType::f32, Access::write),
                 counts = b.buffer("counts", DType::i64, Access::write),
                 flags = b.buffer("flags", DType::boolean, Access::write);
  const BufferId shared = b.scratch("shared", DType::f32, threads),
                 bytes = b.scratch("bytes", DType::u8, threads);
  const Var at = b.item() * threads + b.thread();
  const Var x = b.load(from, at);
  b.store(shared, b.thread(), x);
  b.store(bytes, b.thread(), b.cast(b.thread(), DType::i32));
  b.barrier();
  const Var mirrored = b.load(shared, threads - 1 - b.thread());
  const Var byte = b.cast(b.load(bytes, threads - 1 - b.thread()), DType::f32);
  const Var sum = b.group(Op::group_add, mirrored);
  const Var most = b.group(Op::group_max, x), least = b.group(Op::group_min, x);
  b.store(to, at, mirrored * 2.0 + byte + sum + most * 3.0 - least);
  b.store(counts, at,
          b.group(Op::group_add, b.thread() * b.i64(std::int64_t{1} << 33)) +
              b.group(Op::group_max, b.thread()));
  const Var large = lt(kir::like(x, 990.0), x);
  b.store(flags, at,
          b.binary(Op::bit_xor, b.group(Op::group_max, large), b.group(Op::group_min, large)));
  return b.finish();
}

void check_groups() {
  for (const int threads : {2, 8, 32, 256}) {
    constexpr std::int64_t kItems = 7;
    Draw draw(3);
    std::vector<float> numbers(static_cast<std::size_t>(kItems * threads));
    for (float& x : numbers) x = static_cast<float>(draw.bits() % 1000);
    const std::int64_t count = kItems * threads;
    expect_same(group_kernel(threads),
                {array_of(DType::f32, numbers), zeros(DType::f32, count), zeros(DType::i64, count),
                 zeros(DType::boolean, count)},
                {}, kItems);
  }
}

TEST_F(VulkanKernels, groups_match) { check_groups(); }

// What groups_match has run on this device.
TEST_F(VulkanKernels, groups_exchange_between_subgroups_where_there_are_any) {
  const vulkan::DeviceInfo info = vulkan::choose(test_device().substr(test_device().find(':') + 1));
  codegen::spirv::Target target = device::vulkan::code_target(info);
  EXPECT_EQ(target.subgroup, info.shuffles ? info.subgroup : 0);
  const auto exchanges = [&] {
    const codegen::spirv::Code code = codegen::spirv::emit(group_kernel(32), target);
    const std::string text = codegen::spirv::disassembly(code.words);
    EXPECT_EQ(text.find("OpGroupNonUniformShuffleXor") != text.npos, code.exchanges);
    return code.exchanges;
  };
  EXPECT_EQ(exchanges(), target.subgroup > 1);
  // A device has room for so many subgroups of a size that is asked for.
  target.subgroup = 8, target.max_subgroups = 4;
  EXPECT_TRUE(exchanges());
  target.max_subgroups = 3;
  EXPECT_FALSE(exchanges());
}

TEST_F(VulkanKernels, groups_match_without_subgroups) {
  device::vulkan::faults().plain = true;
  check_groups();
}

}  // namespace
}  // namespace pantala::vulkan_tests
