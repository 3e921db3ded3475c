#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace pantala {
namespace {

TEST(ParallelFor, every_part_is_done_once) {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    parallel_for(done.size(), threads, [&](std::size_t k) { ++done[k]; });
    for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  }
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, an_exception_ends_it_and_is_thrown_again) {
  std::atomic<int> begun{0};
  const auto work = [&](std::size_t k) {
    ++begun;
    if (k == 3) throw std::runtime_error("part 3");
  };
  EXPECT_THROW(parallel_for(1'000'000, 2, work), std::runtime_error);
  EXPECT_GE(begun, 4);
  EXPECT_LT(begun, 1'000'000);
}

}  // namespace
}  // namespace pantala
