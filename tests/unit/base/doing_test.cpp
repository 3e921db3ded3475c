// What the process is doing, said by several threads.
#include "base/doing.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

namespace pantala {
namespace {

std::string now() {
  std::array<char, 64> space{};
  return std::string(Doing::current(space));
}

std::string now_in_another_thread() {
  std::string text;
  std::thread([&] { text = now(); }).join();
  return text;
}

TEST(Doing, is_the_innermost_activity) {
  EXPECT_EQ(now(), "");
  {
    const Doing outer("reading");
    {
      const Doing inner("reading line 3");
      EXPECT_EQ(now(), "reading line 3");
    }
    EXPECT_EQ(now(), "reading");
  }
  EXPECT_EQ(now(), "");
}

TEST(Doing, of_a_helper_without_its_own_is_that_of_whoever_works) {
  const Doing doing("training");
  EXPECT_EQ(now_in_another_thread(), "training");
}

TEST(Doing, of_two_threads_end_in_any_order) {
  auto first = std::make_unique<Doing>("training");
  std::unique_ptr<Doing> second;
  std::thread([&] {
    second = std::make_unique<Doing>("compiling ahead");
    EXPECT_EQ(now(), "compiling ahead");
  }).join();
  EXPECT_EQ(now(), "training");  // each thread has its own
  first.reset();
  EXPECT_EQ(now_in_another_thread(), "compiling ahead");
  second.reset();
  EXPECT_EQ(now(), "");
}

TEST(Doing, is_cut_to_the_space) {
  const Doing doing(std::string(100, 'x'));
  EXPECT_EQ(now(), std::string(64, 'x'));
}

}  // namespace
}  // namespace pantala
