// Plans as bytes: they come back as they were, and nothing that is not a plan comes through.
#include "plan/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kir/text.h"
#include "pantala/error.h"
#include "support/allocations.h"
#include "support/errors.h"
#include "unit/plan/plan_case.h"

namespace pantala::plan {
namespace {

using tests::message_of;

constexpr std::size_t kHeader = 28, kHashAt = 20, kLengthAt = 12;

Plan example() {
  Plan p = small_step(100);
  p.target = "some target";
  p.units[1].object = {std::byte{1}, std::byte{2}, std::byte{3}};
  p.units[2].object = std::vector<std::byte>(1000, std::byte{7});
  p.units[2].kernel.reset();
  p.inputs[0].limit = 10;
  p.inputs[0].exempt = -100;
  return p;
}

void put(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value) {
  for (std::size_t k = 0; k < 8 && at + k < bytes.size(); ++k)
    bytes[at + k] = static_cast<std::byte>(value >> (8 * k));
}

// Makes header and content agree, so that the reader itself is tried and not only the hash.
void sign(std::vector<std::byte>& bytes) {
  if (bytes.size() < kHeader) return;
  put(bytes, kLengthAt, bytes.size() - kHeader);
  put(bytes, kHashAt, content_hash(std::span(bytes).subspan(kHeader)));
}

TEST(PlanSerialize, a_plan_comes_back) {
  const Plan p = example();
  const std::vector<std::byte> bytes = serialize(p);
  const Plan q = deserialize(bytes);
  EXPECT_EQ(q.name, p.name);
  EXPECT_EQ(q.target, p.target);
  EXPECT_EQ(q.regions, p.regions);
  EXPECT_EQ(q.buffers, p.buffers);
  EXPECT_EQ(q.constants, p.constants);
  EXPECT_EQ(q.uniforms, p.uniforms);
  EXPECT_EQ(q.launches, p.launches);
  EXPECT_EQ(q.arena_bytes, p.arena_bytes);
  EXPECT_EQ(q.scratch_bytes, p.scratch_bytes);
  EXPECT_EQ(q.inputs, p.inputs);
  EXPECT_EQ(q.parameters, p.parameters);
  EXPECT_EQ(q.outputs, p.outputs);
  EXPECT_EQ(q.gradients, p.gradients);
  ASSERT_EQ(q.units.size(), p.units.size());
  for (std::size_t k = 0; k < p.units.size(); ++k) {
    EXPECT_EQ(q.units[k].entry, p.units[k].entry);
    EXPECT_EQ(q.units[k].signature, p.units[k].signature);
    EXPECT_EQ(q.units[k].object, p.units[k].object);
    ASSERT_EQ(q.units[k].kernel.has_value(), p.units[k].kernel.has_value());
    EXPECT_TRUE(!p.units[k].kernel ||
                kir::print(*q.units[k].kernel) == kir::print(*p.units[k].kernel));
  }
  EXPECT_EQ(serialize(q), bytes);
}

TEST(PlanSerialize, says_what_is_wrong) {
  const std::vector<std::byte> good = serialize(example());
  const auto message = [](const std::vector<std::byte>& bytes) -> std::string {
    return message_of<ParseError>([&] { deserialize(bytes, "cache/step.plan"); });
  };
  EXPECT_EQ(message(good), "no error");
  EXPECT_THAT(message({}),
              testing::HasSubstr("cache/step.plan, byte 0: 8 bytes expected, 0 are left"));
  std::vector<std::byte> bytes = good;
  bytes[0] = std::byte{'X'};
  EXPECT_THAT(message(bytes), testing::HasSubstr("this is not a plan"));
  bytes = good;
  bytes[8] = std::byte{200};
  EXPECT_THAT(message(bytes), testing::HasSubstr(fmt::format(
                                  "a plan of version 200, {} is expected", kPlanVersion)));
  bytes = good;
  bytes.back() ^= std::byte{1};
  EXPECT_THAT(message(bytes), testing::HasSubstr("its hash differs"));
  bytes = good;
  bytes.push_back(std::byte{0});
  sign(bytes);
  EXPECT_THAT(message(bytes), testing::HasSubstr("1 bytes too many"));
  Plan p = example();
  p.launches[3].unit = 99;
  EXPECT_THAT(message(serialize(p)), testing::HasSubstr("launch 3 'b': there is no unit 99"));
}

TEST(PlanSerialize, every_truncation_is_refused) {
  const std::vector<std::byte> good = serialize(example());
  for (std::size_t size = 0; size < good.size(); ++size) {
    std::vector<std::byte> bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(deserialize(bytes), ParseError) << size;
    sign(bytes);
    EXPECT_THROW(deserialize(bytes), ParseError) << size;
  }
}

TEST(PlanSerialize, survives_mutations) {
  const std::vector<std::byte> good = serialize(example());
  constexpr std::uint64_t kNasty[] = {0,
                                      1,
                                      127,
                                      255,
                                      65536,
                                      1U << 31,
                                      UINT32_MAX,
                                      std::uint64_t{1} << 40,
                                      std::uint64_t{1} << 62,
                                      INT64_MAX,
                                      std::uint64_t{1} << 63,
                                      UINT64_MAX};
  std::mt19937_64 random(1);
  int accepted = 0;
  tests::reset_largest_allocation();
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1U << (random() % 8));
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random());
          break;
        case 2:
          put(bytes, at, kNasty[random() % std::size(kNasty)]);
          break;
        case 3:
          bytes.resize(std::max<std::size_t>(at, 1));
          break;
        default:
          std::rotate(
              bytes.begin() + static_cast<std::ptrdiff_t>(at),
              bytes.begin() + static_cast<std::ptrdiff_t>(at + random() % (bytes.size() - at)),
              bytes.end());
      }
    }
    if (bytes == good) continue;
    const bool whole_header = round % 4 != 0;
    if (whole_header) {
      std::copy_n(good.begin(), std::min(kLengthAt, bytes.size()), bytes.begin());
      sign(bytes);
    }
    try {
      deserialize(bytes);
      ++accepted;  // a changed number or name may well make a valid plan
      EXPECT_TRUE(whole_header) << "round " << round << ": a damaged file was accepted";
    } catch (const ParseError&) {}
  }
  EXPECT_LT(tests::allocations().largest, 64 * good.size());
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace pantala::plan
