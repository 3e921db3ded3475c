// Results that a thread makes before they are wanted.
#include "base/ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

namespace pantala {
namespace {

using testing::Optional;

TEST(Ahead, gives_what_was_made_once) {
  Ahead<int, std::string> ahead;
  for (int k = 0; k < 3; ++k)
    ahead.add(k, [k](const std::stop_token&) { return std::to_string(k); });
  while (!ahead.is_made(2)) std::this_thread::yield();
  EXPECT_TRUE(ahead.has(1));
  EXPECT_THAT(ahead.take(1), Optional(std::string("1")));
  EXPECT_FALSE(ahead.has(1));
  EXPECT_EQ(ahead.take(1), std::nullopt);
  EXPECT_THAT(ahead.take(0), Optional(std::string("0")));
  EXPECT_EQ(ahead.take(7), std::nullopt);
  // The thread has nothing to do by now; another one takes its place.
  ahead.add(8, [](const std::stop_token&) { return "again"; });
  while (!ahead.is_made(8)) std::this_thread::yield();
  EXPECT_THAT(ahead.take(8), Optional(std::string("again")));
}

TEST(Ahead, a_key_is_made_once) {
  Ahead<int, int> ahead;
  std::atomic<int> calls = 0;
  for (int k = 0; k < 3; ++k) ahead.add(1, [&](const std::stop_token&) { return ++calls; });
  while (!ahead.is_made(1)) std::this_thread::yield();
  EXPECT_THAT(ahead.take(1), Optional(1));
  EXPECT_EQ(calls, 1);
}

TEST(Ahead, an_error_is_thrown_to_whoever_takes_it) {
  Ahead<int, int> ahead;
  ahead.add(1, [](const std::stop_token&) -> int { throw std::out_of_range("far"); });
  ahead.add(2, [](const std::stop_token&) { return 2; });
  while (!ahead.is_made(2)) std::this_thread::yield();
  EXPECT_THROW(ahead.take(1), std::out_of_range);
  EXPECT_THAT(ahead.take(2), Optional(2));
}

TEST(Ahead, waits_for_what_is_being_made_and_leaves_the_rest_to_the_caller) {
  Ahead<int, int> ahead;
  std::latch begun(1), go_on(1);
  ahead.add(1, [&](const std::stop_token&) {
    begun.count_down();
    go_on.wait();
    return 1;
  });
  ahead.add(2, [](const std::stop_token&) { return 2; });
  begun.wait();
  EXPECT_FALSE(ahead.is_made(1));
  EXPECT_EQ(ahead.take(2), std::nullopt);
  EXPECT_FALSE(ahead.has(2));
  go_on.count_down();
  EXPECT_THAT(ahead.take(1), Optional(1));
}

TEST(Ahead, its_end_stops_what_is_being_made_and_drops_what_waits) {
  std::latch begun(1);
  std::atomic<bool> stopped = false, later = false;
  {
    Ahead<int, int> ahead;
    ahead.add(1, [&](const std::stop_token& stop) {
      begun.count_down();
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
      return 1;
    });
    ahead.add(2, [&](const std::stop_token&) { return later = true, 2; });
    begun.wait();
  }
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(later);
}

TEST(Ahead, gives_way_to_other_threads) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  const int mine = niceness();
  Ahead<int, int> ahead;
  ahead.add(1, [&](const std::stop_token&) { return niceness(); });
  while (!ahead.is_made(1)) std::this_thread::yield();
  EXPECT_GE(ahead.take(1).value(), std::max(mine, 5));
  EXPECT_EQ(niceness(), mine);
}

// A thread inherits what its process was given, and nobody may ask for less without a privilege.
TEST(Ahead, takes_no_more_than_its_process_has) {
  constexpr int kNicer = 12;
  int before = 0, after = 0;
  std::thread([&] {
    const auto thread = static_cast<id_t>(::gettid());
    before = ::setpriority(PRIO_PROCESS, thread, kNicer) == 0 ? kNicer : -1;
    give_way_to_other_threads();
    after = ::getpriority(PRIO_PROCESS, thread);
  }).join();
  ASSERT_EQ(before, kNicer);
  EXPECT_EQ(after, kNicer);
}

}  // namespace
}  // namespace pantala
