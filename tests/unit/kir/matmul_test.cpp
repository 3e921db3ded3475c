// A contraction as the scheduler will write it: items are row blocks, a register tile of vectors is
// carried through the loop over k, B is packed into scratch, tails are masked. Against a plain loop
// in the same order, bit by bit.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/philox.h"
#include "kir/builder.h"
#include "kir/interpret.h"
#include "kir/simplify.h"
#include "kir/text.h"

namespace pantala::kir::matmul_test {
namespace {

constexpr int kRows = 3, kVectors = 2, kLanes = 8, kColumns = kVectors * kLanes;

// C[m, n] = A[m, k] B[k, n]; item i computes the rows from 3 i on.
Kernel matmul() {
  Builder b("matmul");
  const BufferId a = b.buffer("a", f32, Access::read), bb = b.buffer("b", f32, Access::read),
                 c = b.buffer("c", f32, Access::write);
  const BufferId panel = b.scratch("panel", f32, 64 * kColumns);
  const Var m = b.param("m"), n = b.param("n"), k = b.param("k");
  const Var row = b.item() * kRows, lane = b.iota({i64, kLanes});
  b.loop(b.i64(0), n, b.i64(kColumns), [&](Var column) {
    const auto columns_of = [&](int v) { return lt(lane + (column + v * kLanes), n); };
    b.loop(b.i64(0), k, b.i64(1), [&](Var p) {
      for (int v = 0; v < kVectors; ++v)
        b.store(panel, p * kColumns + v * kLanes,
                b.load(bb, p * n + column + v * kLanes, kLanes, columns_of(v)));
    });
    const std::vector<Var> zeros(kRows * kVectors, b.constant({f32, kLanes}, 0.0));
    const std::vector<Var> tile =
        b.loop(b.i64(0), k, b.i64(1), zeros, [&](Var p, std::span<const Var> sums) {
          std::vector<Var> next, right;
          for (int v = 0; v < kVectors; ++v)
            right.push_back(b.load(panel, p * kColumns + v * kLanes, kLanes));
          for (int r = 0; r < kRows; ++r) {
            const Var left = b.load(a, (row + r) * k + p, 1, lt(row + r, m));
            for (int v = 0; v < kVectors; ++v)
              next.push_back(b.fma(left, right[static_cast<std::size_t>(v)], sums[next.size()]));
          }
          return next;
        });
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const Var inside = b.binary(Op::bit_and, columns_of(v), b.splat(lt(row + r, m), kLanes));
        b.store(c, (row + r) * n + column + v * kLanes,
                tile[static_cast<std::size_t>(r * kVectors + v)], inside);
      }
  });
  return b.finish();
}

void expect_right(const Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto random = [](std::int64_t count, std::uint32_t stream) {
    std::vector<float> v(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<float>(2 * bits_to_unit(random_bits(1, 0, stream, i)) - 1);
    return v;
  };
  std::vector<float> a = random(m * k, 0), b = random(k * n, 1),
                     c(static_cast<std::size_t>(m * n), NAN);
  const auto bind = [](std::vector<float>& v) {
    return BoundBuffer{f32, reinterpret_cast<std::byte*>(v.data()), std::ssize(v)};
  };
  const auto integer = [](std::int64_t i) { return ir::Number::of(i); };
  ASSERT_EQ(interpret(kernel, {{bind(a), bind(b), bind(c)}, {integer(m), integer(n), integer(k)}},
                      0, (m + kRows - 1) / kRows),
            0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum = std::fma(a[static_cast<std::size_t>(i * k + p)],
                       b[static_cast<std::size_t>(p * n + j)], sum);
      ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum)
          << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
}

TEST(KirMatmul, tiles_with_masked_tails_equal_a_plain_loop) {
  const Kernel kernel = matmul();
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 16, 4},
                                {1, 1, 1},
                                {7, 37, 13},
                                {6, 32, 64},
                                {5, 15, 0},
                                {2, 33, 9},
                                {0, 5, 3}})
    expect_right(kernel, m, n, k);
}

TEST(KirMatmul, simplifies_and_prints_without_change) {
  const Kernel kernel = matmul(), simple = simplify(kernel);
  EXPECT_LT(simple.types.size(), kernel.types.size());
  EXPECT_TRUE(same_code(simple, parse(print(simple))));
  expect_right(simple, 7, 37, 13);
}

}  // namespace
}  // namespace pantala::kir::matmul_test
