// The parts of pointwise kernel code that must be exact to the bit: random bits against the
// generator, rounding to the storage dtypes against memory.
#include "schedule/scalar_parts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "base/philox.h"
#include "kir/simplify.h"
#include "pantala/error.h"
#include "schedule/scalar_ops.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::schedule::scalar_parts_test {
namespace {

using ir::Number;
using kir::Var;

kir::Kernel random_kernel(int lanes, std::int64_t stream) {
  kir::Builder b("random_bits_x" + std::to_string(lanes) + "_" + std::to_string(stream));
  const kir::BufferId elements = b.buffer("elements", i64, kir::Access::read),
                      out = b.buffer("bits", i32, kir::Access::write);
  const Var seed = b.param("seed"), draw = b.param("draw");
  const Var at = b.item() * lanes;
  b.store(out, at, emit_random_bits(b, seed, draw, b.i64(stream), b.load(elements, at, lanes)));
  return kir::simplify(b.finish());
}

TEST(ScalarRandomBits, are_those_of_the_generator) {
  std::vector<std::int64_t> elements;
  for (std::int64_t k = 0; k < 48; ++k) elements.push_back(k);
  for (const int power : {20, 31, 32, 33, 34, 35, 40, 61, 62})  // blocks beyond 2^32 as well
    for (std::int64_t k = -4; k < 4; ++k) elements.push_back((std::int64_t{1} << power) + k);
  elements.resize(128, INT64_MAX);
  for (const std::int64_t stream : {std::int64_t{0}, std::int64_t{5}, std::int64_t{UINT32_MAX}})
    for (const int lanes : {1, 8, 16})
      for (const auto& [seed, draw] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {0, 0}, {1, 2}, {-1, INT64_MIN}, {0x123456789ABCDEF, 0x7EDCBA9876543210}}) {
        const std::vector<codegen::Array> results = codegen::expect_same(
            random_kernel(lanes, stream),
            {codegen::array_of(i64, elements), codegen::zeros(i32, std::ssize(elements))},
            {Number::of(seed), Number::of(draw)}, std::ssize(elements) / lanes,
            codegen::detect_host());
        std::vector<std::int32_t> bits(elements.size());
        std::memcpy(bits.data(), results[1].bytes.data(), results[1].bytes.size());
        for (std::size_t k = 0; k < elements.size(); ++k)
          ASSERT_EQ(static_cast<std::uint32_t>(bits[k]),
                    random_bits(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(draw),
                                static_cast<std::uint32_t>(stream),
                                static_cast<std::uint64_t>(elements[k])))
              << "element " << elements[k] << " of stream " << stream << ", " << lanes << " lanes";
      }
}

TEST(ScalarRandomBits, refuse_other_counters) {
  kir::Builder b("refused");
  const Var one = b.i64(1), vector = b.splat(one, 8), narrow = b.constant({i32, 1}, 1.0);
  EXPECT_THROW(emit_random_bits(b, vector, one, one, one), InternalError);
  EXPECT_THROW(emit_random_bits(b, one, narrow, one, one), InternalError);
  EXPECT_THROW(emit_random_bits(b, one, one, vector, one), InternalError);
  EXPECT_THROW(emit_random_bits(b, one, one, one, narrow), InternalError);
  EXPECT_EQ(emit_random_bits(b, one, one, one, vector).type(), (kir::VType{i32, 8}));
}

// Every number of the dtype, the middle between it and the next, and the neighbours of both.
std::vector<float> around_numbers_of(DType dtype) {
  std::vector<float> values;
  const std::uint32_t middle = dtype == f16 ? 0x1000 : 0x8000;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto stored = static_cast<std::uint16_t>(pattern);
    float number = 0;
    kir::load_element(dtype, reinterpret_cast<const std::byte*>(&stored),
                      reinterpret_cast<std::byte*>(&number));
    const auto bits = std::bit_cast<std::uint32_t>(number);
    for (const std::uint32_t b :
         {bits, bits + 1, bits + middle - 1, bits + middle, bits + middle + 1})
      values.push_back(std::bit_cast<float>(b));
    // Below the normal numbers of f16 the middle is a multiple of 2^-25.
    values.push_back(number + 0x1p-25F), values.push_back(std::nextafter(number, 0.0F));
  }
  values.resize((values.size() + 31) / 32 * 32);
  return values;
}

TEST(ScalarRounding, is_that_of_memory) {
  for (const DType dtype : {f16, bf16}) {
    std::vector<float> x = around_numbers_of(dtype), rounded(x.size());
    kir::Builder b("round");
    const kir::BufferId in = b.buffer("x", f32, kir::Access::read),
                        out = b.buffer("y", f32, kir::Access::write);
    const Var at = b.item() * 32, value = b.load(in, at, 32);
    b.store(out, at, dtype == f16 ? emit_round_to_f16(value) : emit_round_to_bf16(value));
    const auto bind = [](std::vector<float>& v) {
      return kir::BoundBuffer{f32, reinterpret_cast<std::byte*>(v.data()), std::ssize(v)};
    };
    kir::interpret(b.finish(), {{bind(x), bind(rounded)}, {}}, 0, std::ssize(x) / 32);
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::uint16_t stored = 0;
      float loaded = 0;
      kir::store_element(dtype, reinterpret_cast<const std::byte*>(&x[k]),
                         reinterpret_cast<std::byte*>(&stored));
      kir::load_element(dtype, reinterpret_cast<const std::byte*>(&stored),
                        reinterpret_cast<std::byte*>(&loaded));
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(rounded[k]) ==
                      std::bit_cast<std::uint32_t>(loaded) ||
                  (rounded[k] != rounded[k] && loaded != loaded))
          << x[k] << " becomes " << rounded[k] << ", in memory as " << dtype_name(dtype) << " "
          << loaded;
    }
  }
}

}  // namespace
}  // namespace pantala::schedule::scalar_parts_test
