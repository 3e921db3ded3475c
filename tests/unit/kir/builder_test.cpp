// The builder's and the verifier's errors: each names the kernel, the instruction and what is wrong
// with it.
#include "kir/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kir/text.h"
#include "kir/verify.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::kir::builder_test {
namespace {

using ::testing::HasSubstr;
using tests::message_of;

#define EXPECT_INTERNAL_ERROR(CODE, TEXT) \
  EXPECT_THAT(message_of<InternalError>([&] { CODE; }), HasSubstr(TEXT))

struct KirBuilder : ::testing::Test {
  Builder b{"test"};
  BufferId in = b.buffer("in", f32, Access::read);
  BufferId out = b.buffer("out", f16, Access::write);
  BufferId bytes = b.buffer("bytes", u8, Access::read_write);
  BufferId flags = b.buffer("flags", boolean, Access::read_write);
  Var n = b.param("n");
  Var x = b.load(in, b.i64(0));
  Var v = b.load(in, b.i64(0), 8);
};

TEST_F(KirBuilder, converts_memory_d_types) {
  EXPECT_EQ(b.load(bytes, n, 4).type(), (VType{i32, 4}));
  EXPECT_EQ(b.load(flags, n, 4).type(), (VType{boolean, 4}));
  EXPECT_NO_THROW(b.store(out, n, v));
  EXPECT_NO_THROW(b.store(flags, n, lt(v, 0.0)));
}

TEST_F(KirBuilder, splats_scalars_beside_vectors) {
  EXPECT_EQ((x + v).type(), (VType{f32, 8}));
  EXPECT_EQ((v * x).type(), (VType{f32, 8}));
  EXPECT_EQ(lt(x, v).type(), (VType{boolean, 8}));
  EXPECT_EQ(b.fma(x, v, x).type(), (VType{f32, 8}));
  EXPECT_EQ(b.select(lt(x, 0.0), v, x).type(), (VType{f32, 8}));
  EXPECT_EQ((2 * n + 1).type(), (VType{i64, 1}));
}

TEST_F(KirBuilder, rejects_operands_of_wrong_types) {
  EXPECT_INTERNAL_ERROR(b.binary(Op::add, x, v),
                        "kernel 'test': add: the operands have different types, f32 and f32x8");
  EXPECT_INTERNAL_ERROR(x + n, "add: the operands have different types, f32 and i64");
  EXPECT_INTERNAL_ERROR(x % x, "rem: it does not work on f32");
  EXPECT_INTERNAL_ERROR(b.unary(Op::sqrt, n), "sqrt: it does not work on i64");
  EXPECT_INTERNAL_ERROR(b.binary(Op::shl, x, x), "shl: it does not work on f32");
  EXPECT_INTERNAL_ERROR(b.select(n, x, x), "select: the condition is i64, not bool");
  EXPECT_INTERNAL_ERROR(b.bitcast(x, i64),
                        "bitcast: from f32 to i64 is no conversion of this kind");
  EXPECT_INTERNAL_ERROR(b.cast(x, f16), "cast: f16 occurs in memory only");
  EXPECT_INTERNAL_ERROR(b.extract(v, 8), "extract: f32x8 has no lane 8");
  EXPECT_INTERNAL_ERROR(b.splat(v, 8), "splat: from f32x8 to f32x8");
  EXPECT_INTERNAL_ERROR(b.splat(x, 3), "splat: 3 lanes are not 1, 2, 4, 8, 16 or 32");
  EXPECT_INTERNAL_ERROR(b.transpose({v, v}), "transpose: 2 rows of f32x8 are not square");
  EXPECT_INTERNAL_ERROR(b.constant({i32, 1}, 0.5), "constant: 0.5 is not a number of i32");
  EXPECT_INTERNAL_ERROR(b.constant({i32, 1}, std::int64_t{1} << 40), "is not a number of i32");
  EXPECT_INTERNAL_ERROR(b.report(n, 1), "report: the condition is i64, not bool");
  EXPECT_INTERNAL_ERROR(b.report(lt(n, 1), 0), "report: code 0 means that all is well");
  EXPECT_INTERNAL_ERROR(b.report(lt(n, 1), x), "report: the code is f32, not i64");
}

TEST_F(KirBuilder, rejects_wrong_access) {
  EXPECT_INTERNAL_ERROR(b.store(in, n, x), "store: buffer 'in' may only be read");
  EXPECT_INTERNAL_ERROR(b.load(out, n), "load: buffer 'out' may only be written");
  EXPECT_INTERNAL_ERROR(b.load(BufferId{9}, n), "there is no buffer 9");
  EXPECT_INTERNAL_ERROR(b.load(in, x), "load: the position is f32, not i64");
  EXPECT_INTERNAL_ERROR(b.store(out, n, n), "store: the value is i64, not f32");
  EXPECT_INTERNAL_ERROR(b.load(in, n, 8, lt(x, 0.0)), "load: the mask is bool, not boolx8");
  EXPECT_INTERNAL_ERROR(b.gather(in, v), "gather: the indices are f32x8");
}

TEST_F(KirBuilder, rejects_arguments_in_the_wrong_place) {
  b.scratch("tile", f32, 4);
  EXPECT_INTERNAL_ERROR(b.buffer("late", f32, Access::read), "buffer 'late' comes after scratch");
  EXPECT_INTERNAL_ERROR(b.scratch("none", f32, 0), "scratch 'none' has 0 elements");
}

TEST_F(KirBuilder, rejects_values_that_are_out_of_reach) {
  Var inner;
  b.loop(b.i64(0), n, b.i64(1), [&](Var i) { inner = i + 1; });
  EXPECT_INTERNAL_ERROR(inner + 1, "add: operand 0 was made in a block that is closed");
  Builder other("other");
  EXPECT_INTERNAL_ERROR(b.binary(Op::add, n, other.item()),
                        "add: operand 1 belongs to another kernel");
  EXPECT_INTERNAL_ERROR(b.unary(Op::neg, Var{}), "neg: operand 0 does not exist");
}

TEST_F(KirBuilder, rejects_loops_and_branches_that_do_not_fit) {
  EXPECT_INTERNAL_ERROR(b.loop(x, n, n, [](Var) {}), "for: begin is f32, not i64");
  EXPECT_INTERNAL_ERROR(
      b.loop(n, n, n, {x}, [&](Var, std::span<const Var>) { return std::vector<Var>{}; }),
      "for: a block yields 0 values for 1 results");
  EXPECT_INTERNAL_ERROR(
      b.loop(n, n, n, {x}, [&](Var, std::span<const Var>) { return std::vector<Var>{v}; }),
      "for: yield 0 is f32x8, the result is f32");
  EXPECT_INTERNAL_ERROR(b.branch(n, [] {}), "if: the condition is i64, not bool");
  EXPECT_INTERNAL_ERROR(
      b.branch(
          lt(n, 1), [&] { return std::vector{x}; }, [&] { return std::vector{v}; }),
      "if: yield 0 is f32x8, the result is f32");
}

TEST_F(KirBuilder, is_used_up_when_finished) {
  b.finish();
  EXPECT_INTERNAL_ERROR(b.i64(1), "the kernel is finished");
  EXPECT_INTERNAL_ERROR(n + 1, "a kernel that is finished");
  EXPECT_INTERNAL_ERROR(b.finish(), "finished twice");
}

// A kernel to break: y[item] = x[item] + n, in a loop.
Kernel sound() {
  return parse(R"(kernel "sound" {
    buffer x: f32 read
    buffer y: f32 write
    param n: i64
    item %0
    %1:i64 = param n
    %2:i64 = constant 1
    %3:f32 = constant 0.5
    %7:f32 = for %4 in %0 to %1 step %2 carry (%5 = %3) {
      %6:f32 = add %5, %3
      yield %6
    }
    store y[%0] = %7
  })");
}

TEST(KirVerify, names_the_broken_instruction) {
  Kernel k = sound();
  k.body.body[3].blocks[0].body[0].args[1] = Value{1};
  EXPECT_INTERNAL_ERROR(
      verify(k),
      "kernel 'sound': the operands have different types, f32 and i64, in: %6:f32 = add %5, %1");
}

TEST(KirVerify, checks_where_values_are_visible) {
  Kernel k = sound();
  k.body.body[4].args[1] = Value{6};
  EXPECT_INTERNAL_ERROR(verify(k), "%6 is used outside of its block, in: store y[%0] = %6");
  k = sound();
  k.body.body[3].args[3] = Value{7};
  EXPECT_INTERNAL_ERROR(verify(k), "%7 is used before it is defined");
  k = sound();
  k.body.body[3].blocks[0].body[0].results[0] = Value{3};
  EXPECT_INTERNAL_ERROR(verify(k), "%3 is defined twice");
  k = sound();
  k.body.body[4].args[1] = Value{99};
  EXPECT_INTERNAL_ERROR(verify(k), "%99 has no type");
  k = sound();
  k.types.push_back({f32, 1});
  EXPECT_INTERNAL_ERROR(verify(k), "%8 is never defined");
}

TEST(KirVerify, checks_arguments_and_types) {
  Kernel k = sound();
  k.types[3].lanes = 3;
  EXPECT_INTERNAL_ERROR(verify(k), "%3: 3 lanes are not 1, 2, 4, 8, 16 or 32");
  k = sound();
  k.types[3].dtype = bf16;
  EXPECT_INTERNAL_ERROR(verify(k), "%3: bf16 occurs in memory only");
  k = sound();
  k.buffers[1].name = "x";
  EXPECT_INTERNAL_ERROR(verify(k), "two buffers are called 'x'");
  k = sound();
  k.buffers[1].access = Access::read;
  EXPECT_INTERNAL_ERROR(verify(k), "buffer 'y' may only be read, in: store y[%0] = %7");
  k = sound();
  k.params[0].name = "a b";
  EXPECT_INTERNAL_ERROR(verify(k), "'a b' is no name for a parameter");
}

TEST(KirVerify, checks_structure) {
  Kernel k = sound();
  k.body.body[1].index = 0;
  EXPECT_INTERNAL_ERROR(verify(k),
                        "the step is 0, in: %7:f32 = for %4 in %0 to %1 step %2 carry (%5 = %3)");
  k = sound();
  k.body.body[3].blocks[0].yields.clear();
  EXPECT_INTERNAL_ERROR(verify(k), "a block yields 0 values for 1 results");
  k = sound();
  k.body.body[4].stream = true, k.body.body[3].stream = true;
  EXPECT_INTERNAL_ERROR(verify(k), "only a store can stream");
}

TEST(KirVerify, threads_are_a_power_of_two) {
  Builder three("three", 3), lonely("lonely");
  EXPECT_INTERNAL_ERROR(three.finish(), "3 threads are no power of two up to 1024");
  EXPECT_INTERNAL_ERROR(lonely.barrier(), "barrier: one thread has nobody to meet");
  EXPECT_INTERNAL_ERROR(lonely.group(Op::group_add, lonely.item()), "one thread has nobody");
}

TEST(KirVerify, threads_meet_only_where_all_of_them_come) {
  Builder loops("loops", 4);
  loops.loop(loops.i64(0), loops.thread(), loops.i64(1), [&](Var) { loops.barrier(); });
  EXPECT_INTERNAL_ERROR(loops.finish(), "threads meet where not all of them come, in: barrier");

  // What a loop carries from round to round differs from the second round on.
  Builder carries("carries", 4);
  const Var zero = carries.i64(0), four = carries.i64(4), one = carries.i64(1);
  carries.loop(zero, four, one, {zero}, [&](Var, std::span<const Var> c) {
    carries.branch(lt(c[0], 3), [&] { carries.barrier(); });
    return std::vector<Var>{c[0] + carries.thread()};
  });
  EXPECT_INTERNAL_ERROR(carries.finish(), "threads meet where not all of them come, in: barrier");
}

TEST(KirVerify, what_all_threads_share_may_lead_to_a_meeting) {
  Builder b("shared", 4);
  const BufferId x = b.buffer("x", DType::i64, Access::read);
  const Var most = b.group(Op::group_max, b.load(x, b.thread()));
  const Var end = min(most, b.load(x, b.item()));
  b.loop(b.i64(0), end, b.i64(1), [&](Var i) { b.branch(lt(i, b.item()), [&] { b.barrier(); }); });
  EXPECT_NO_THROW(b.finish());
}

TEST(KirKernel, hashes_and_compares_code_without_names) {
  const Kernel a = sound();
  Kernel b = sound();
  b.name = "other", b.buffers[0].name = "z", b.params[0].name = "size";
  EXPECT_TRUE(same_code(a, b));
  EXPECT_EQ(hash_code(a), hash_code(b));
  b.body.body[2].imm = -0.0;
  Kernel c = b;
  c.body.body[2].imm = 0.0;
  EXPECT_FALSE(same_code(b, c));
  EXPECT_NE(hash_code(b), hash_code(c));
}

TEST(KirKernel, one_with_room_for_both_serves_for_two_that_differ_in_their_scratch) {
  const auto made = [](std::int64_t first, std::int64_t second, int threads = 1) {
    Builder b("scratch", threads);
    const BufferId x = b.scratch("x", f32, first), y = b.scratch("y", f32, second);
    b.store(x, b.i64(0), b.constant({f32, 1}, 1.0));
    b.store(y, b.i64(0), b.load(x, b.i64(0)));
    return b.finish();
  };
  Kernel a = made(16, 64);
  const Kernel b = made(32, 48), alone = made(32, 48, 4), larger = made(64, 48, 4);
  EXPECT_FALSE(same_code(a, b));
  EXPECT_TRUE(same_code_but_scratch(a, b));
  EXPECT_EQ(hash_code_but_scratch(a), hash_code_but_scratch(b));
  widen_scratch(a, b);
  EXPECT_EQ(a.buffers[0].size, 32);
  EXPECT_EQ(a.buffers[1].size, 64);
  // What a workgroup shares is scarce.
  EXPECT_TRUE(same_code_but_scratch(alone, alone));
  EXPECT_FALSE(same_code_but_scratch(alone, larger));
}

TEST(KirKernel, aligns_scratch) {
  Builder b("scratch");
  b.scratch("a", u8, 3);
  b.scratch("b", f32, 17);
  EXPECT_EQ(b.finish().scratch_bytes(), 64 + 128);
}

}  // namespace
}  // namespace pantala::kir::builder_test
