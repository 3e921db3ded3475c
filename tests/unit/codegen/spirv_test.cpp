// SPIR-V of kernels without a device: which integers are known to be small, that modules are valid,
// and what is refused. What kernels compute is tested on a device (tests/vulkan).
#include "codegen/spirv/spirv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/spirv/ranges.h"
#include "kir/builder.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::codegen::spirv {
namespace {

using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Op;
using kir::Var;
using testing::HasSubstr;
using testing::Not;

constexpr Target kAll{.storage8 = true,
                      .storage16 = true,
                      .float64 = true,
                      .keeps_subnormals = true,
                      .keeps_special = true,
                      .rounds_to_even = true,
                      .subgroup = 32,
                      .shared_bytes = 32 << 10,
                      .max_invocations = 1024};

// The range of the last integer of a kernel with the parameters n and m.
Range range_of(const std::function<Var(Builder&, Var, Var)>& made, ParamFacts n,
               ParamFacts m = {}) {
  Builder b("ranges");
  const BufferId to = b.buffer("to", DType::i64, Access::write);
  const Var first = b.param("n"), second = b.param("m");
  const Var value = made(b, first, second);
  b.store(to, b.item(), value);
  const kir::Kernel kernel = b.finish();
  return find_ranges(kernel, {.params = {n, m}, .elements = {100}, .items = 10})[value.value().id];
}
ParamFacts between(std::int64_t low, std::int64_t high) { return {false, low, high}; }

TEST(SpirvRanges, follow_arithmetic) {
  const ParamFacts n = between(3, 10), m = between(-2, 5);
  EXPECT_EQ(range_of([](Builder&, Var a, Var b) { return a + b; }, n, m), (Range{1, 15}));
  EXPECT_EQ(range_of([](Builder&, Var a, Var b) { return a - b; }, n, m), (Range{-2, 12}));
  EXPECT_EQ(range_of([](Builder&, Var a, Var b) { return a * b; }, n, m), (Range{-20, 50}));
  EXPECT_EQ(range_of([](Builder&, Var a, Var b) { return b / a; }, n, m), (Range{0, 1}));
  EXPECT_EQ(range_of([](Builder&, Var a, Var b) { return b % a; }, n, m), (Range{-2, 5}));
  EXPECT_EQ(range_of([](Builder& b, Var a, Var) { return b.item() * a; }, n), (Range{0, 90}));
  EXPECT_EQ(range_of([](Builder& b, Var a, Var c) { return b.select(lt(a, c), a, c); }, n, m),
            (Range{-2, 10}));
}

TEST(SpirvRanges, what_wraps_can_be_anything) {
  const ParamFacts n = between(0, INT64_MAX / 2);
  EXPECT_EQ(range_of([](Builder&, Var a, Var) { return a * 3; }, n), Range{});
  EXPECT_EQ(range_of([](Builder&, Var a, Var) { return a / 4096; }, n),
            (Range{0, INT64_MAX / 8192}));
  EXPECT_EQ(range_of([](Builder&, Var a, Var) { return a; }, {.uniform = true}), Range{});
}

TEST(SpirvRanges, follow_loops) {
  // An offset that a loop carries, and one that it does not bound.
  const auto stepped = [](Builder& b, Var n, Var m) {
    return b.loop(b.i64(0), n, b.i64(2), {b.i64(5)},
                  [&](Var, std::span<const Var> c) { return std::vector<Var>{c[0] + m}; })[0];
  };
  EXPECT_EQ(range_of(stepped, between(3, 10), between(0, 7)), (Range{5, 40}));
  const auto doubled = [](Builder& b, Var n, Var) {
    return b.loop(b.i64(0), n, b.i64(1), {b.i64(1)},
                  [&](Var, std::span<const Var> c) { return std::vector<Var>{c[0] + c[0]}; })[0];
  };
  EXPECT_EQ(range_of(doubled, between(3, 10)), Range{});
  const auto best = [](Builder& b, Var n, Var m) {
    return b.loop(b.i64(0), n, b.i64(1), {b.i64(-1)}, [&](Var i, std::span<const Var> c) {
      return std::vector<Var>{b.select(lt(i, m), i, c[0])};
    })[0];
  };
  EXPECT_EQ(range_of(best, between(3, 10), between(0, 7)), (Range{-1, 9}));
}

// Every buffer is touched; masks, loops, branches, reports, groups.
kir::Kernel many_things(int threads) {
  Builder b("many", threads);
  const BufferId from = b.buffer("from", DType::f16, Access::read),
                 to = b.buffer("to", DType::u8, Access::write);
  const Var n = b.param("n"), rate = b.param("rate", DType::f32);
  const Var sum = b.loop(b.i64(0), n, b.i64(4), {b.constant({DType::f32, 4}, 0.0)},
                         [&](Var i, std::span<const Var> c) {
                           const Var mask =
                               lt(b.splat(i, 4) + b.iota({DType::i64, 4}), b.splat(n, 4));
                           return std::vector<Var>{c[0] + b.load(from, i, 4, mask) * rate};
                         })[0];
  Var all = b.reduce(Op::reduce_add, sum);
  if (threads > 1) all = b.group(Op::group_add, all);
  b.report(lt(n, b.item()), 3);
  b.branch(lt(all, kir::like(all, 1.0)), [&] { b.store(to, b.item(), b.cast(all, DType::i32)); });
  return b.finish();
}

TEST(Spirv, modules_are_valid_for_any_device) {
  Target plain = kAll;
  plain.storage8 = plain.storage16 = plain.float64 = plain.keeps_subnormals = false;
  plain.subgroup = 0;
  for (const Target& target : {kAll, plain})
    for (const int threads : {1, 64}) {
      EXPECT_EQ(broken_rule(emit(many_things(threads), target).words), "");
      const Facts facts{
          .params = {between(8, 8), {.uniform = true}}, .elements = {8, 9}, .items = 9};
      EXPECT_EQ(broken_rule(emit(many_things(threads), target, facts).words), "");
    }
}

TEST(Spirv, sums_of_a_workgroup_are_exchanged_between_the_invocations_of_subgroups) {
  Target none = kAll;
  none.subgroup = 0;
  EXPECT_THAT(disassembly(emit(many_things(64), kAll).words),
              HasSubstr("OpGroupNonUniformShuffleXor"));
  EXPECT_THAT(disassembly(emit(many_things(64), none).words), Not(HasSubstr("OpGroupNonUniform")));
  EXPECT_THAT(disassembly(emit(many_things(1), kAll).words), Not(HasSubstr("OpGroupNonUniform")));
}

TEST(Spirv, what_is_known_needs_no_64_bits) {
  const Facts facts{.params = {between(8, 8), between(0, 0)}, .elements = {8, 9}, .items = 9};
  const std::string known = disassembly(emit(many_things(1), kAll, facts).words),
                    unknown = disassembly(emit(many_things(1), kAll).words);
  EXPECT_THAT(known, Not(HasSubstr("OpSLessThan %bool %ulong")));
  EXPECT_THAT(known, HasSubstr("OpDecorate"));
  EXPECT_GT(unknown.size(), known.size());
}

TEST(Spirv, what_a_device_lacks_is_refused_by_name) {
  Target small = kAll;
  small.max_invocations = 32;
  EXPECT_THAT(tests::message_of<UnsupportedError>([&] { emit(many_things(64), small); }),
              HasSubstr("kernel 'many' has 64 threads, the device runs 32 together"));
  small = kAll;
  small.shared_bytes = 16;
  EXPECT_THAT(tests::message_of<UnsupportedError>([&] { emit(many_things(64), small); }),
              HasSubstr("bytes of shared memory, the device has 16"));
  Builder b("doubles");
  const BufferId to = b.buffer("to", DType::f64, Access::write);
  b.store(to, b.item(), b.constant({DType::f64, 1}, 1.0));
  const kir::Kernel doubles = b.finish();
  small = kAll;
  small.float64 = false;
  EXPECT_THAT(tests::message_of<UnsupportedError>([&] { emit(doubles, small); }),
              HasSubstr("kernel 'doubles' needs numbers of f64"));
}

TEST(Spirv, the_tools_find_what_is_wrong) {
  std::vector<std::uint32_t> words = emit(many_things(1), kAll).words;
  words.resize(words.size() - 1);  // the end of the function
  EXPECT_NE(broken_rule(words), "");
}

}  // namespace
}  // namespace pantala::codegen::spirv
