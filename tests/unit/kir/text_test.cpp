// The text form of kernels: exact round trips, and errors with positions.
#include "kir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kir/builder.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/random_kernel.h"

namespace pantala::kir::text_test {
namespace {

using ::testing::HasSubstr;
using tests::message_of;

TEST(KirText, is_readable) {
  Builder b("example");
  const BufferId x = b.buffer("x", bf16, Access::read), y = b.buffer("y", f32, Access::write),
                 tile = b.scratch("tile", f32, 64);
  const Var n = b.param("n"), mask = lt(b.iota({i64, 8}), n);
  const Var sum = b.loop(
      b.i64(0), n, b.i64(8), {b.constant({f32, 8}, 0.5)}, [&](Var i, std::span<const Var> c) {
        return std::vector<Var>{b.fma(b.load(x, i, 8, mask), b.load_strided(x, i, n, 8), c[0])};
      })[0];
  b.store(tile, n, sum, mask, true);
  b.branch(le(n, 3), [&] { b.store_strided(y, n, n, b.extract(sum, 2)); });
  b.report(eq(n, 0), 7);
  EXPECT_EQ(print(b.finish()), R"(kernel "example" {
  buffer x: bf16 read
  buffer y: f32 write
  scratch tile: f32[64]
  param n: i64
  item %0
  %1:i64 = param n
  %2:i64x8 = iota
  %3:i64x8 = splat %1
  %4:boolx8 = lt %2, %3
  %5:f32x8 = constant 0.5
  %6:i64 = constant 8
  %7:i64 = constant 0
  %13:f32x8 = for %8 in %7 to %1 step %6 carry (%9 = %5) {
    %10:f32x8 = load_strided x[%8 by %1]
    %11:f32x8 = load x[%8] mask %4
    %12:f32x8 = fma %11, %10, %9
    yield %12
  }
  store tile[%1] = %13 mask %4 stream
  %14:i64 = constant 3
  %15:bool = le %1, %14
  if %15 {
    %16:f32 = extract %13 lane 2
    store_strided y[%1 by %1] = %16
  }
  %17:i64 = constant 0
  %18:bool = eq %1, %17
  report %18 code 7
}
)");
}

void expect_round_trip(const Kernel& kernel) {
  const std::string text = print(kernel);
  const Kernel again = parse(text);
  ASSERT_TRUE(same_code(kernel, again)) << text;
  ASSERT_EQ(print(again), text);
}

TEST(KirText, round_trips_random_kernels) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) expect_round_trip(tests::random_kernel(seed));
}

TEST(KirText, round_trips_all_constants) {
  Builder b("constants \"quoted\"\n");
  const BufferId out = b.buffer("out", f64, Access::write);
  for (const double v :
       {0.0, -0.0, 1e-320, 0.1, -1e300, 5e-324, double(INFINITY), -double(INFINITY), double(NAN)})
    b.store(out, b.item(), b.constant({f64, 1}, v));
  b.prefetch(out, b.i64(INT64_MIN));
  const Kernel kernel = b.finish();
  expect_round_trip(kernel);
  EXPECT_EQ(parse(print(kernel)).name, kernel.name);
}

TEST(KirText, round_trips_threads) {
  Builder b("threads", 64);
  const BufferId out = b.buffer("out", f64, Access::write);
  b.barrier();
  b.store(out, b.thread(), b.group(Op::group_add, b.cast(b.thread(), f64)));
  expect_round_trip(b.finish());
}

std::string parse_error(std::string_view text) {
  return message_of<Error>([&] { parse(text, "file.kir"); });
}

TEST(KirText, says_what_is_wrong_and_where) {
  EXPECT_THAT(parse_error("kernel x {"),
              HasSubstr("file.kir:1:8: expected the kernel's name in quotes, found \"x\""));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:f32 = sinh %0\n}"),
              HasSubstr("file.kir:3:11: there is no instruction 'sinh'"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:f7 = neg %0\n}"),
              HasSubstr("'f7' is not a dtype"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:f32 = load x[%0]\n}"),
              HasSubstr("there is no buffer 'x'"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:i64 = param n\n}"),
              HasSubstr("there is no parameter 'n'"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:i32 = constant 1.5\n}"),
              HasSubstr("'1.5' is not an integer of 64 bits"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:i64 = neg %0\n"),
              HasSubstr("expected an instruction, found the end of the text"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %2:i64 = neg %0\n}"),
              HasSubstr("%2 is defined without all numbers below it"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %0:i64 = neg %0\n}"),
              HasSubstr("%0 is defined twice"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:i64 = neg %4000000000\n}"),
              HasSubstr("%4000000000 has no type"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n %1:i64 = add %0\n}"),
              HasSubstr("it has 1 operands, not 2, in: %1:i64 = add %0"));
  EXPECT_THAT(parse_error("kernel \"k\" {\n item %0\n if %0 {\n"),
              HasSubstr("found the end of the text"));
}

TEST(KirText, survives_damage) {
  const std::string text = print(tests::random_kernel(3));
  for (std::size_t k = 0; k < text.size(); k += 7) {
    std::string cut = text.substr(0, k), changed = text;
    changed[k] = "%{}[]=:,0x\""[k % 11];
    for (const std::string& damaged : {cut, changed}) {
      try {
        parse(damaged);
      } catch (const Error&) {}
    }
  }
}

}  // namespace
}  // namespace pantala::kir::text_test
