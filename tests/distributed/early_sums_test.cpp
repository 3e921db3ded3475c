// Parts are handed on in their order, each after its launch, and whatever goes wrong ends both.
#include "train/early_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace pantala::train {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

TEST(EarlySums, hands_on_what_is_ready_and_no_more) {
  EarlySums early;
  const std::vector<std::int64_t> ready = {2, 2, 5};
  std::vector<std::size_t> parts;
  std::atomic<std::size_t> count = 0;
  early.begin(ready, [&](std::size_t part) {
    parts.push_back(part);
    count = parts.size();
  });
  *early.finished() = 1;
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(count, 0U);
  *early.finished() = 3;
  while (count < 2) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(count, 2U);
  early.end();
  EXPECT_THAT(parts, ElementsAre(0, 1, 2));
}

TEST(EarlySums, can_be_used_again) {
  EarlySums early;
  const std::vector<std::int64_t> ready = {1};
  int sum = 0;
  for (int k = 0; k < 100; ++k) {
    early.begin(ready, [&](std::size_t) { ++sum; });
    early.end();
  }
  EXPECT_EQ(sum, 100);
}

TEST(EarlySums, throws_what_was_thrown_at_the_end) {
  EarlySums early;
  const std::vector<std::int64_t> ready = {0, 9};
  early.begin(ready, [](std::size_t) { throw std::runtime_error("cut off"); });
  EXPECT_THROW(early.end(), std::runtime_error);
  early.begin({}, [](std::size_t) {});
  EXPECT_NO_THROW(early.end());
}

TEST(EarlySums, that_are_given_up_hand_nothing_on) {
  EarlySums early;
  const std::vector<std::int64_t> ready = {1};
  bool called = false;
  early.begin(ready, [&](std::size_t) { called = true; });
  early.give_up();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace pantala::train
