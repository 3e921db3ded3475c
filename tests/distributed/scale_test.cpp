// `pantala scale`: its options, and what it takes from the plans of a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "pantala/error.h"
#include "tools/scale_ranks.h"

namespace pantala::tools {
namespace {

using ::testing::ElementsAre;

TEST(Scale, takes_powers_of_two_and_the_last_number) {
  EXPECT_THAT(rank_counts("1..8"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(rank_counts("3..20"), ElementsAre(3, 6, 12, 20));
  EXPECT_THAT(rank_counts("5"), ElementsAre(5));
  for (const char* wrong : {"", "0..4", "8..1", "1..", "many", "1..10000000"})
    EXPECT_THROW(rank_counts(wrong), TypeError) << wrong;
}

TEST(Scale, takes_bits_a_second) {
  EXPECT_DOUBLE_EQ(network_of("10G", 30).bandwidth, 1.25e9);
  EXPECT_DOUBLE_EQ(network_of("10G", 30).latency, 30e-6);
  for (const char* wrong : {"", "10", "10M", "-1G", "G"})
    EXPECT_THROW(network_of(wrong, 1), TypeError) << wrong;
}

TEST(Scale, counts_all_gradients_of_a_model_once) {
  InspectSubject lenet;
  lenet.name = "lenet";
  lenet.batch = 16;
  const ScaledModel model = scaled_model(lenet, {});
  double bytes = 0, before = 0;
  for (const auto& bucket : model.step.buckets) {
    bytes += bucket.bytes;
    EXPECT_GE(bucket.ready, before);
    EXPECT_LE(bucket.ready, model.step.backward);
    before = bucket.ready;
  }
  // The sums, of which the loss and its weight are two.
  EXPECT_EQ(static_cast<std::int64_t>(bytes), model.gradient_bytes);
  EXPECT_EQ(model.gradient_bytes, model.parameter_bytes + 8);
  // Adam has two moments of every parameter.
  EXPECT_GE(model.optimizer_bytes, 2 * model.parameter_bytes);
  EXPECT_LT(model.memory(4, true), model.memory(4, false));
  const ScaledModel measured = scaled_model(lenet, 100.0);
  EXPECT_NEAR(measured.step.backward + measured.step.update, 0.1, 1e-9);
}

}  // namespace
}  // namespace pantala::tools
