// The simplifier: what it removes, what it must leave alone, and that random kernels give the same
// bits before and after.
#include "kir/simplify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kir/builder.h"
#include "kir/interpret.h"
#include "kir/text.h"
#include "support/random_kernel.h"

namespace pantala::kir::simplify_test {
namespace {

using ::testing::HasSubstr;

std::size_t count(const Block& block, Op op) {
  std::size_t total = 0;
  for (const Inst& inst : block.body) {
    total += inst.op == op;
    for (const Block& b : inst.blocks) total += count(b, op);
  }
  return total;
}
std::size_t count(const Kernel& kernel, Op op) { return count(kernel.body, op); }
// How many values the kernel's only loop carries.
std::size_t carried(const Kernel& kernel) {
  for (const Inst& inst : kernel.body.body)
    if (inst.op == Op::loop) return inst.results.size();
  return 0;
}

struct KirSimplify : ::testing::Test {
  Builder b{"test"};
  BufferId x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::read_write),
           z = b.buffer("z", i64, Access::write);
  Var n = b.param("n");
  Kernel simplified() { return simplify(b.finish()); }
};

TEST_F(KirSimplify, simplifies_integers) {
  const Var m = (n + 0) * 1 + n * 0 + n / 1 + n % 1 - (n - n);
  b.store(z, b.i64(0), (m + 3) + 4);
  const Kernel k = simplified();
  EXPECT_EQ(count(k, Op::mul) + count(k, Op::div) + count(k, Op::rem) + count(k, Op::sub), 0u)
      << print(k);
  EXPECT_EQ(count(k, Op::add), 2u) << print(k);  // n + n and + 7
  EXPECT_THAT(print(k), HasSubstr("constant 7"));
}

TEST_F(KirSimplify, leaves_floats_alone) {
  const Var v = b.load(x, n, 8);
  b.store(y, n, (v + 0.0) * 1.0 + v * 0.0 - (v - v) + v / 1.0);
  const Kernel before = b.finish(), after = simplify(before);
  for (const Op op : {Op::add, Op::mul, Op::sub, Op::div})
    EXPECT_EQ(count(before, op), count(after, op)) << op_name(op);
}

TEST_F(KirSimplify, makes_one_of_the_reports_of_a_block) {
  const auto bad = [&](std::int64_t at) {
    const Var v = b.load(x, b.i64(at), 8);
    return b.reduce(Op::reduce_max, ne(v, v));
  };
  for (const std::int64_t at : {0, 8, 16}) b.report(bad(at), 7);
  b.report(bad(24), 5);  // of another code
  b.report(lt(n, 3), 7);
  b.report(lt(n, 4), 7);
  b.store(z, b.i64(0), n);
  const Kernel before = b.finish(), after = simplify(before);
  EXPECT_EQ(count(before, Op::report), 6u);
  EXPECT_EQ(count(after, Op::report), 3u) << print(after);
  EXPECT_EQ(count(after, Op::reduce_max), 2u) << print(after);
}

TEST_F(KirSimplify, merged_reports_say_what_each_would_have_said) {
  for (const std::int64_t at : {0, 8}) {
    const Var v = b.load(x, b.i64(at), 8);
    b.report(b.reduce(Op::reduce_max, ne(v, v)), 7);
  }
  const Kernel kernel = simplified();
  const auto status = [&](std::size_t place, float number) {
    std::vector<float> numbers(16, 1.0F);
    numbers[place] = number;
    const BoundBuffer in{f32, reinterpret_cast<std::byte*>(numbers.data()), 16};
    return interpret(kernel, {{in, {f32}, {i64}}, {ir::Number::of(0)}}, 0, 1);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(status(3, 2.0F), 0);
  EXPECT_EQ(status(3, nan), 7);
  EXPECT_EQ(status(12, nan), 7);
}

TEST_F(KirSimplify, folds_floats_exactly) {
  const Var c = b.constant({f32, 4}, 0.1) * 3.0 + 1e-9;
  b.store(y, n, c);
  const Kernel k = simplified();
  EXPECT_EQ(count(k, Op::mul) + count(k, Op::add), 0u);
  EXPECT_THAT(print(k),
              HasSubstr(fmt::format("constant {}", static_cast<double>(0.1F * 3.0F + 1e-9F))));
}

TEST_F(KirSimplify, never_folds_to_na_n) {
  b.store(y, n, b.constant({f32, 1}, 0.0) / 0.0);
  EXPECT_EQ(count(simplified(), Op::div), 1u);
}

TEST_F(KirSimplify, keeps_a_division_by_zero) {
  b.store(z, n, b.i64(1) / b.i64(0));
  EXPECT_EQ(count(simplified(), Op::div), 1u);
}

TEST_F(KirSimplify, shares_equal_expressions_of_enclosing_blocks) {
  const Var a = n * 5;
  b.loop(b.i64(0), n, b.i64(1), [&](Var i) { b.store(z, i, 5 * n); });
  b.branch(lt(n, 3), [&] { b.store(z, a, n * 7); });
  b.store(z, n, n * 7);
  const Kernel k = simplified();
  // n * 5, and n * 7 in two blocks of which neither encloses the other.
  EXPECT_EQ(count(k, Op::mul), 3u) << print(k);
}

TEST_F(KirSimplify, does_not_share_loads) {
  b.store(y, n, b.load(y, n + 1));
  b.store(y, n + 2, b.load(y, n + 1));
  EXPECT_EQ(count(simplified(), Op::load), 2u);
}

TEST_F(KirSimplify, removes_what_nothing_reads) {
  const Var unused = b.load(x, n);
  const std::vector<Var> sums =
      b.loop(b.i64(0), n, b.i64(1), {unused, unused + 1.0}, [&](Var i, std::span<const Var> c) {
        const Var next = c[1] + b.load(x, i);
        return std::vector<Var>{c[0] + next, next};
      });
  b.loop(b.i64(0), n, b.i64(1), {unused},
         [&](Var, std::span<const Var> c) { return std::vector<Var>{c[0] * 2.0}; });
  b.store(y, n, sums[1]);
  const Kernel k = simplified();
  EXPECT_EQ(count(k, Op::loop), 1u) << print(k);
  EXPECT_EQ(count(k, Op::mul), 0u) << print(k);
  EXPECT_EQ(carried(k), 1u) << print(k);
}

TEST_F(KirSimplify, inlines_short_loops_and_known_branches) {
  const Var one = b.constant({f32, 1}, 1.0);
  const auto add_one = [&](Var i, std::span<const Var> c) {
    return std::vector<Var>{c[0] + b.load(x, i)};
  };
  const Var none = b.loop(b.i64(5), b.i64(5), b.i64(1), {one}, add_one)[0];
  const Var once = b.loop(b.i64(5), b.i64(9), b.i64(4), {none}, add_one)[0];
  const Var chosen = b.branch(
      b.constant({boolean, 1}, std::int64_t{1}), [&] { return std::vector{once}; },
      [&] { return std::vector{none}; })[0];
  b.store(y, n, chosen);
  const Kernel k = simplified();
  EXPECT_EQ(count(k, Op::loop) + count(k, Op::if_), 0u) << print(k);
  EXPECT_EQ(count(k, Op::load), 1u) << print(k);
}

TEST(KirSimplifyThreads, keeps_threads_and_their_meetings) {
  Builder b("threads", 16);
  const BufferId y = b.buffer("y", DType::i64, Access::write);
  b.group(Op::group_add, b.thread());
  b.barrier();
  b.store(y, b.thread() + 0, b.group(Op::group_max, b.thread() * 1));
  const Kernel k = simplify(b.finish());
  EXPECT_EQ(k.threads, 16);
  EXPECT_EQ(print(k),
            "kernel \"threads\" {\n  buffer y: i64 write\n  threads 16\n  item %0, %1\n"
            "  %2:i64 = group_add %1\n  barrier\n  %3:i64 = group_max %1\n"
            "  store y[%1] = %3\n}\n");
}

TEST_F(KirSimplify, drops_carried_values_that_never_change) {
  const Var first = b.load(x, n);
  const std::vector<Var> r =
      b.loop(b.i64(0), n, b.i64(1), {first, first},
             [&](Var, std::span<const Var> c) { return std::vector<Var>{c[0], c[1] + c[0]}; });
  b.store(y, n, r[0] * r[1]);
  EXPECT_EQ(carried(simplified()), 1u);
}

TEST(KirSimplifyRandom, keeps_every_bit) {
  std::size_t before = 0, after = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Kernel kernel = tests::random_kernel(seed);
    const Kernel simple = simplify(kernel);
    ASSERT_TRUE(same_code(simple, simplify(simple)))
        << "a second run changes kernel " << seed << "\n"
        << print(simple);
    before += kernel.types.size(), after += simple.types.size();
    tests::RandomArguments first(kernel, seed), second(kernel, seed);
    interpret(kernel, first.bind(), 0, tests::kRandomKernelItems);
    interpret(simple, second.bind(), 0, tests::kRandomKernelItems);
    ASSERT_EQ(first.contents(), second.contents()) << "seed " << seed << "\n"
                                                   << print(kernel) << print(simple);
  }
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace pantala::kir::simplify_test
