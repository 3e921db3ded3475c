// The interpreter: what instructions compute at their edges, and what it refuses: accesses out of
// bounds, unwritten scratch, races.
#include "kir/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "kir/builder.h"
#include "kir/text.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::kir::interpret_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::message_of;

template <class T>
BoundBuffer bind(std::vector<T>& v, DType dtype) {
  return {dtype, reinterpret_cast<std::byte*>(v.data()), std::ssize(v)};
}
BoundBuffer bind(std::vector<float>& v) { return bind(v, f32); }

// Computes one scalar of a dtype.
template <class T>
T value_of(DType dtype, const std::function<Var(Builder&)>& code) {
  Builder b("value");
  const BufferId out = b.buffer("out", dtype, Access::write);
  b.store(out, b.i64(0), code(b));
  std::vector<T> memory(1);
  interpret(b.finish(), {{bind(memory, dtype)}, {}}, 0, 1);
  return memory[0];
}
float real(const std::function<Var(Builder&)>& code) { return value_of<float>(f32, code); }
std::int32_t narrow(const std::function<Var(Builder&)>& code) {
  return value_of<std::int32_t>(i32, code);
}
std::int64_t wide(const std::function<Var(Builder&)>& code) {
  return value_of<std::int64_t>(i64, code);
}

Var c32(Builder& b, std::int64_t v) { return b.constant({i32, 1}, v); }
Var cf(Builder& b, double v) { return b.constant({f32, 1}, v); }

TEST(KirArithmetic, integers_wrap) {
  constexpr std::int64_t greatest = std::numeric_limits<std::int32_t>::max(),
                         least = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(narrow([](Builder& b) { return c32(b, greatest) + 1; }), least);
  EXPECT_EQ(narrow([](Builder& b) { return c32(b, 1 << 20) * (1 << 12); }), 0);
  EXPECT_EQ(narrow([](Builder& b) { return -c32(b, least); }), least);
  EXPECT_EQ(narrow([](Builder& b) { return b.unary(Op::abs, c32(b, least)); }), least);
  EXPECT_EQ(narrow([](Builder& b) { return c32(b, -7) / 2; }), -3);
  EXPECT_EQ(narrow([](Builder& b) { return c32(b, -7) % 2; }), -1);
  EXPECT_EQ(narrow([](Builder& b) { return b.binary(Op::shl, c32(b, 1), c32(b, 33)); }), 2);
  EXPECT_EQ(narrow([](Builder& b) { return b.binary(Op::shr, c32(b, -8), c32(b, 33)); }), -4);
  EXPECT_EQ(narrow([](Builder& b) { return b.binary(Op::mulhi, c32(b, -1), c32(b, -1)); }), -2);
  EXPECT_EQ(wide([](Builder& b) { return b.binary(Op::mulhi, b.i64(-1), b.i64(2)); }), 1);
  EXPECT_EQ(wide([](Builder& b) { return b.cast(c32(b, -1), i64); }), -1);
  EXPECT_EQ(narrow([](Builder& b) { return b.cast(b.i64((std::int64_t{5} << 32) + 7), i32); }), 7);
}

TEST(KirArithmetic, divisions_without_result_are_errors) {
  EXPECT_THAT(message_of<InternalError>([] { narrow([](Builder& b) { return c32(b, 1) / 0; }); }),
              AllOf(HasSubstr("kernel 'value', item 0: a division by zero"), HasSubstr("div")));
  EXPECT_THAT(message_of<InternalError>([] { narrow([](Builder& b) { return c32(b, 1) % 0; }); }),
              HasSubstr("a division by zero"));
  EXPECT_THAT(
      message_of<InternalError>([] { wide([](Builder& b) { return b.i64(INT64_MIN) / -1; }); }),
      HasSubstr("a division of the least number by -1"));
}

TEST(KirArithmetic, floats_keep_their_special_values) {
  const float nan = NAN;
  EXPECT_TRUE(std::isnan(real([&](Builder& b) { return max(cf(b, nan), cf(b, 1)); })));
  EXPECT_TRUE(std::isnan(real([&](Builder& b) { return max(cf(b, 1), cf(b, nan)); })));
  EXPECT_TRUE(std::isnan(real([&](Builder& b) { return min(cf(b, nan), cf(b, 1)); })));
  EXPECT_TRUE(std::signbit(real([](Builder& b) { return max(cf(b, 0.0), cf(b, -0.0)); })));
  EXPECT_FALSE(std::signbit(real([](Builder& b) { return min(cf(b, -0.0), cf(b, 0.0)); })));
  EXPECT_TRUE(std::signbit(real([](Builder& b) { return -cf(b, 0.0); })));
  EXPECT_EQ(real([](Builder& b) { return b.unary(Op::round, cf(b, 2.5)); }), 2.0F);
  EXPECT_EQ(real([](Builder& b) { return b.unary(Op::round, cf(b, -3.5)); }), -4.0F);
  EXPECT_EQ(
      real([](Builder& b) { return b.fma(cf(b, 1 + 0x1p-23), cf(b, 1 - 0x1p-23), cf(b, -1)); }),
      -0x1p-46F);
}

TEST(KirArithmetic, casts_saturate) {
  const auto cast = [](double v, DType from) {
    return narrow([=](Builder& b) { return b.cast(b.constant({from, 1}, v), i32); });
  };
  for (const DType t : {f32, f64}) {
    EXPECT_EQ(cast(-1.9, t), -1);
    EXPECT_EQ(cast(NAN, t), 0);
    EXPECT_EQ(cast(1e20, t), std::numeric_limits<std::int32_t>::max());
    EXPECT_EQ(cast(-INFINITY, t), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(wide([=](Builder& b) { return b.cast(b.constant({t, 1}, 0x1p63), i64); }), INT64_MAX);
  }
  EXPECT_EQ(real([](Builder& b) { return b.cast(b.i64(16777217), f32); }), 16777216.0F);
  EXPECT_EQ(narrow([](Builder& b) { return b.cast(b.cast(cf(b, NAN), boolean), i32); }), 1);
}

TEST(KirMemory, half_precision_rounds_to_nearest_even) {
  for (const DType t : {f16, bf16}) {
    Builder b("half");
    const BufferId in = b.buffer("in", f32, Access::read),
                   half = b.buffer("half", t, Access::read_write),
                   out = b.buffer("out", f32, Access::write);
    b.store(half, b.item(), b.load(in, b.item()));
    b.store(out, b.item(), b.load(half, b.item()));
    std::vector<float> x, y;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 999'983)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    for (const float v : {0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1.ffep-15F, 0x1.fffp-15F, 65504.0F,
                          65519.0F, 65520.0F, -0.0F, 1.0009765F, 0x1.008p0F, 0x1.018p0F})
      x.push_back(v), x.push_back(-v);
    std::vector<std::uint16_t> h(x.size());
    y.resize(x.size());
    interpret(b.finish(), {{bind(x), bind(h, t), bind(y)}, {}}, 0, std::ssize(x));
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (x[k] != x[k]) {
        EXPECT_TRUE(std::isnan(y[k]));
      } else {
        EXPECT_EQ(y[k], static_cast<float>(round_to(t, static_cast<double>(x[k]))))
            << dtype_name(t) << " of " << x[k];
        EXPECT_EQ(std::signbit(y[k]), std::signbit(x[k]));
      }
    }
  }
}

TEST(KirMemory, bytes_and_bools) {
  Builder b("bytes");
  const BufferId bytes = b.buffer("bytes", u8, Access::read_write),
                 flags = b.buffer("flags", boolean, Access::read_write);
  b.store(bytes, b.i64(0), b.load(bytes, b.i64(0), 4) * 3);
  const Var set = b.load(flags, b.i64(0), 4);
  b.store(flags, b.i64(0), b.binary(Op::bit_xor, set, like(set, 1)));
  std::vector<std::uint8_t> memory = {1, 100, 255, 0}, set_memory = {0, 1, 2, 255};
  interpret(b.finish(), {{bind(memory, u8), bind(set_memory, boolean)}, {}}, 0, 1);
  EXPECT_THAT(memory, ElementsAre(3, 44, 253, 0));
  EXPECT_THAT(set_memory, ElementsAre(1, 0, 0, 0));
}

TEST(KirMemory, masks_strides_gathers_and_transposes) {
  Builder b("lanes");
  const BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  const Var lane = b.iota({i32, 4});
  // 14 15, the rest is out of bounds and off.
  b.store(y, b.i64(0), b.load(x, b.i64(14), 4, lt(lane, 2)));
  b.store_strided(y, b.i64(4), b.i64(2), b.load_strided(x, b.i64(12), b.i64(-4), 4));  // 12 8 4 0
  b.store(y, b.i64(5), b.extract(b.gather(x, 3 - lane), 1));                           // 2
  // 0 2 | 1 3
  const std::vector<Var> t = b.transpose({b.load(x, b.i64(0), 2), b.load(x, b.i64(2), 2)});
  b.store(y, b.i64(11), t[0]);
  b.store(y, b.i64(13), b.reduce(Op::reduce_add, b.load(x, b.i64(0), 8)), lt(b.i64(0), 1));
  std::vector<float> in(16), out(16, -1.0F);
  for (std::size_t k = 0; k < 16; ++k) in[k] = static_cast<float>(k);
  interpret(b.finish(), {{bind(in), bind(out)}, {}}, 0, 1);
  EXPECT_THAT(out, ElementsAre(14, 15, 0, 0, 12, 2, 8, -1, 4, -1, 0, 0, 2, 28, -1, -1));
}

TEST(KirMemory, reductions_halve) {
  const float big = 0x1p24F;
  // (big + -big) + (1 + 1), where a running sum would lose a one.
  Builder b("halves");
  const BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.store(y, b.i64(0), b.reduce(Op::reduce_add, b.load(x, b.i64(0), 4)));
  std::vector<float> in = {big, 1, -big, 1}, out(1);
  interpret(b.finish(), {{bind(in), bind(out)}, {}}, 0, 1);
  EXPECT_EQ(out[0], 2.0F);
}

TEST(KirControl, loops_exchange_carried_values_and_reports_set_the_status) {
  Builder b("control");
  const BufferId y = b.buffer("y", i64, Access::write);
  const Var n = b.param("n");
  const std::vector<Var> fib =
      b.loop(b.i64(0), n, b.i64(1), {b.i64(0), b.i64(1)},
             [&](Var, std::span<const Var> c) { return std::vector<Var>{c[1], c[0] + c[1]}; });
  const Var kind = b.branch(
      lt(n, 5), [&] { return std::vector{b.i64(-1)}; }, [&] { return std::vector{fib[1]}; })[0];
  b.store(y, b.i64(0), fib[0]);
  b.store(y, b.i64(1), kind);
  b.report(lt(fib[0], 3), 42);
  const Kernel k = b.finish();
  std::vector<std::int64_t> out(2);
  EXPECT_EQ(interpret(k, {{bind(out, i64)}, {ir::Number::of(10)}}, 0, 1), 0);
  EXPECT_THAT(out, ElementsAre(55, 89));
  EXPECT_EQ(interpret(k, {{bind(out, i64)}, {ir::Number::of(0)}}, 0, 1), 42);
  EXPECT_THAT(out, ElementsAre(0, -1));
}

TEST(KirControl, a_report_may_have_a_code_that_is_computed) {
  Builder b("report");
  const Var n = b.param("n");
  b.report(lt(n, 5), n + 40);
  const Kernel k = parse(print(b.finish()));
  EXPECT_EQ(interpret(k, {{}, {ir::Number::of(2)}}, 0, 1), 42);
  EXPECT_EQ(interpret(k, {{}, {ir::Number::of(5)}}, 0, 1), 0);
}

TEST(KirChecks, arguments) {
  Builder b("arguments");
  b.buffer("x", f32, Access::read);
  b.param("n");
  const Kernel k = b.finish();
  std::vector<float> x(4);
  std::vector<double> wrong(4);
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{}, {ir::Number::of(1)}}, 0, 1); }),
              HasSubstr("0 buffers are bound, it has 1"));
  EXPECT_THAT(message_of<InternalError>(
                  [&] { interpret(k, {{bind(wrong, f64)}, {ir::Number::of(1)}}, 0, 1); }),
              HasSubstr("buffer 'x' is f32, bound as f64"));
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bind(x)}, {}}, 0, 1); }),
              HasSubstr("0 parameters are given, it has 1"));
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bind(x)}, {1.5}}, 0, 1); }),
              HasSubstr("parameter 'n' is i64, not a float"));
}

TEST(KirChecks, bounds) {
  Builder b("bounds");
  const BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.store(y, b.item() * 4, b.load(x, b.item() * 4, 4));
  const Kernel k = b.finish();
  std::vector<float> in(10), out(12), small(4);
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bind(in), bind(out)}, {}}, 0, 3); }),
              AllOf(HasSubstr("kernel 'bounds', item 2: reads x[10] of 10 elements: out of bounds"),
                    HasSubstr("= load x[")));
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bind(in), bind(small)}, {}}, 0, 2); }),
              HasSubstr("item 1: writes y[4] of 4 elements: out of bounds"));
  EXPECT_EQ(message_of<InternalError>([&] { interpret(k, {{bind(in), bind(out)}, {}}, 0, 2); }),
            "no error");
}

TEST(KirChecks, scratch_that_was_not_written) {
  Builder b("scratch");
  const BufferId y = b.buffer("y", f32, Access::write), tile = b.scratch("tile", f32, 8);
  // Only item 0 writes: that an earlier item did is no excuse.
  b.branch(lt(b.item(), 1), [&] { b.store(tile, b.i64(3), b.constant({f32, 1}, 1.0)); });
  b.store(y, b.item(), b.load(tile, b.i64(3)));
  const Kernel k = b.finish();
  std::vector<float> out(2);
  EXPECT_EQ(message_of<InternalError>([&] { interpret(k, {{bind(out)}, {}}, 0, 1); }), "no error");
  EXPECT_THAT(
      message_of<InternalError>([&] { interpret(k, {{bind(out)}, {}}, 0, 2); }),
      HasSubstr("item 1: reads tile[3] of 8 elements: it has not been written by this item"));
}

// Item i writes y[i + write] after reading y[i + read] of the same or another buffer.
struct Race {
  std::int64_t write, read;
  bool same_memory;
};
std::string race(const Race& r) {
  Builder b("race");
  const BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.store(y, b.item() * r.write + 4, b.load(x, b.item() * r.read + 4));
  std::vector<float> first(16), second(16);
  const Kernel k = b.finish();
  return message_of<InternalError>(
      [&] { interpret(k, {{bind(first), r.same_memory ? bind(first) : bind(second)}, {}}, 0, 3); });
}

TEST(KirChecks, races_between_items) {
  EXPECT_EQ(race({1, 1, true}), "no error");
  EXPECT_EQ(race({1, 0, false}), "no error");
  EXPECT_THAT(race({0, 1, false}),
              HasSubstr("item 1: writes y[4] of 16 elements: a race: item 0 has written it"));
  EXPECT_THAT(race({1, 0, true}),
              HasSubstr("item 1: reads x[4] of 16 elements: a race: item 0 has written it"));
  EXPECT_THAT(race({2, 1, true}),
              HasSubstr("item 2: reads x[6] of 16 elements: a race: item 1 has written it"));
  EXPECT_THAT(race({1, 2, true}),
              HasSubstr("item 2: writes y[6] of 16 elements: a race: item 1 has read it"));
}

TEST(KirChecks, races_through_views_of_other_element_sizes) {
  Builder b("views");
  const BufferId x = b.buffer("x", u8, Access::read), y = b.buffer("y", f32, Access::write);
  b.store(y, b.item(), b.cast(b.load(x, 5 - b.item()), f32));
  const Kernel k = b.finish();
  std::vector<float> memory(4);
  const BoundBuffer bytes{u8, reinterpret_cast<std::byte*>(memory.data()), 16};
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bytes, bind(memory)}, {}}, 0, 2); }),
              HasSubstr("item 1: writes y[1] of 4 elements: a race: item 0 has read it"));
}

TEST(KirChecks, races_between_threads_of_a_workgroup) {
  const auto run = [](bool with_barrier) {
    Builder b("threads", 8);
    const BufferId y = b.buffer("y", i64, Access::write), tile = b.scratch("tile", i64, 8);
    const Var thread = b.thread();
    b.store(tile, thread, thread);
    if (with_barrier) b.barrier();
    b.store(y, thread, b.load(tile, b.i64(0)));
    const Kernel k = b.finish();
    std::vector<std::int64_t> out(8);
    return message_of<InternalError>([&] { interpret(k, {{bind(out, i64)}, {}}, 0, 1); });
  };
  EXPECT_EQ(run(true), "no error");
  EXPECT_THAT(run(false),
              HasSubstr("reads tile[0] of 8 elements: a race: thread 0 of item 0 has written it"));
}

TEST(KirChecks, threads_that_exchange_elements) {
  Builder b("threads", 4);
  const BufferId x = b.buffer("x", i64, Access::read_write);
  b.store(x, b.thread(), b.load(x, b.i64(3) - b.thread()));
  const Kernel k = b.finish();
  std::vector<std::int64_t> memory(4);
  EXPECT_THAT(message_of<InternalError>([&] { interpret(k, {{bind(memory, i64)}, {}}, 0, 1); }),
              HasSubstr("reads x[1] of 4 elements: a race: thread 1 of item 0 has written it"));
}

TEST(KirInterpret, threads_meet_in_loops_and_branches_that_they_share) {
  // Every round turns the tile by one element; the number of rounds is the item's.
  Builder b("turn", 4);
  const BufferId y = b.buffer("y", i64, Access::write), tile = b.scratch("tile", i64, 4);
  const Var thread = b.thread(), next = (thread + 1) % 4;
  b.store(tile, thread, thread);
  const Var one = b.i64(1);
  const Var sum = b.loop(b.i64(0), b.item(), one, {b.i64(0)}, [&](Var, std::span<const Var> c) {
    b.barrier();
    const Var mine = b.load(tile, next);
    b.barrier();
    b.store(tile, thread, mine);
    return std::vector<Var>{c[0] + mine};
  })[0];
  const Var total = b.branch(
      lt(b.item(), 2), [&] { return std::vector{b.group(Op::group_max, sum)}; },
      [&] { return std::vector{b.group(Op::group_add, sum)}; })[0];
  b.store(y, b.item() * 4 + thread, total * 10 + b.load(tile, thread));
  const Kernel k = b.finish();
  std::vector<std::int64_t> out(12);
  interpret(k, {{bind(out, i64)}, {}}, 0, 3);
  EXPECT_THAT(out, ElementsAre(0, 1, 2, 3, 31, 32, 33, 30, 122, 123, 120, 121));
}

TEST(KirInterpret, groups_halve_over_their_threads) {
  Builder b("groups", 4);
  const BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  const Var mine = b.load(x, b.thread());
  const Var big = b.cast(b.group(Op::group_max, lt(2.0, mine)), DType::i32);
  b.store(y, b.thread(),
          b.group(Op::group_add, mine) + b.group(Op::group_min, mine) + b.cast(big, f32));
  const Kernel k = b.finish();
  // (1e8 - 1e8) + (1 + 3), whereas a sum in order loses the 1.
  std::vector<float> in{1e8f, 1, -1e8f, 3}, out(4);
  interpret(k, {{bind(in), bind(out)}, {}}, 0, 1);
  EXPECT_THAT(out, testing::Each(4 - 1e8f + 1));
}

TEST(KirChecks, steps) {
  Builder b("steps");
  const Var n = b.param("n");
  const BufferId y = b.buffer("y", i64, Access::write);
  b.loop(b.i64(0), b.i64(4), n, [&](Var i) { b.store(y, i, i); });
  const Kernel k = b.finish();
  std::vector<std::int64_t> out(4);
  EXPECT_THAT(message_of<InternalError>(
                  [&] { interpret(k, {{bind(out, i64)}, {ir::Number::of(0)}}, 0, 1); }),
              HasSubstr("the step is 0"));
}

}  // namespace
}  // namespace pantala::kir::interpret_test
