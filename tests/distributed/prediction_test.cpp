// The model of a step on many ranks, against sums by hand.
#include "distributed/prediction.h"

#include <gtest/gtest.h>

namespace pantala::distributed {
namespace {

// A second of work; the first of two buckets is ready after half of it.
const RankStep kStep{.backward = 1, .update = 0.5, .buckets = {{0.5, 100}, {1, 100}}};
const Network kNetwork{.latency = 0.01, .bandwidth = 1000, .adding = 1e12};

TEST(Prediction, of_one_rank_is_its_own_step) {
  const StepPrediction one = predict(kStep, kNetwork, 1);
  EXPECT_DOUBLE_EQ(one.step, 1.5);
  EXPECT_DOUBLE_EQ(one.efficiency, 1);
  EXPECT_DOUBLE_EQ(one.communication, 0);
}

// Two ranks: 2 messages of half a bucket each way: 2 * 0.01 + 2 * 50 / 1000 = 0.12 a bucket.
TEST(Prediction, of_two_ranks_hides_what_goes_before_the_end_of_the_backward_pass) {
  const StepPrediction two = predict(kStep, kNetwork, 2);
  EXPECT_NEAR(two.communication, 0.24, 1e-9);
  EXPECT_NEAR(two.exposed, 0.12, 1e-9);
  EXPECT_NEAR(two.step, 1.62, 1e-9);
  const StepPrediction late = predict(kStep, kNetwork, 2, false);
  EXPECT_NEAR(late.exposed, 0.24, 1e-9);
}

// A slow network: the second bucket waits for the first one.
TEST(Prediction, buckets_go_one_after_the_other) {
  const StepPrediction slow = predict(kStep, {.latency = 0, .bandwidth = 100, .adding = 1e12}, 2);
  EXPECT_NEAR(slow.exposed, 0.5 + 1 + 1 - 1, 1e-9);
}

TEST(Prediction, more_ranks_take_more_rounds_and_never_less_time) {
  double before = 0;
  for (std::int64_t ranks = 1; ranks <= 1024; ranks *= 2) {
    const StepPrediction now = predict(kStep, kNetwork, ranks);
    EXPECT_GE(now.step, before);
    EXPECT_GT(now.efficiency, 0);
    before = now.step;
  }
}

}  // namespace
}  // namespace pantala::distributed
