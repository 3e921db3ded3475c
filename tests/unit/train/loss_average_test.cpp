// The loss of an epoch: over the labels that count, in training as in validation, and none where
// every step was left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/trainer.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using namespace tests;  // NOLINT: the tests' own words
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Scores [items, classes, places] that are the input itself, and a label for each place.
ModelFactory by_place(std::int64_t ignored) {
  return [ignored](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, 2, 3}), labels = g.input("labels", {batch, 3}, i64);
    const Tensor y = x * g.parameter("w", {1}, init::constant(1));
    g.output("logits", y);
    g.output("loss", cross_entropy(y, labels, {.ignore_index = ignored}));
    return g;
  };
}
data::Batch places(std::vector<float> scores, std::vector<std::int64_t> labels) {
  const std::int64_t items = std::ssize(labels) / 3;
  return {{{items, 2, 3}, std::move(scores)}, {{items, 3}, std::move(labels)}};
}

// Three labels with the loss log 2, and one with almost none.
std::vector<data::Batch> uneven(std::int64_t ignored) {
  return {places({0, 0, 0, 0, 0, 0}, {1, 1, 1}),
          places({0, 0, 0, 40, 0, 0}, {1, ignored, ignored})};
}
constexpr double kUnevenLoss = 0.75 * 0.6931471805599453;

TEST(LossAverage, is_over_the_labels_that_count) {
  for (const std::int64_t ignored :
       {kIgnoredLabel, std::int64_t{-1}, std::int64_t{0}, std::int64_t{255}}) {
    FixedLoader loader(uneven(ignored));
    Trainer trainer(by_place(ignored), 1, {.optimizer = optim::sgd(0)});
    EXPECT_NEAR(trainer.train_epoch(loader, 0).avg_loss, kUnevenLoss, 1e-6) << ignored;
    const Evaluation evaluation = trainer.evaluate(loader);
    EXPECT_NEAR(evaluation.loss, kUnevenLoss, 1e-6) << ignored;
    ASSERT_TRUE(evaluation.confusion) << ignored;
    EXPECT_EQ(evaluation.confusion->total(), 4) << ignored;
  }
}

TEST(LossAverage, of_a_window_is_over_the_labels_that_count) {
  FixedLoader loader(uneven(kIgnoredLabel));
  Trainer trainer(by_place(kIgnoredLabel), 1, {.optimizer = optim::sgd(0)},
                  {.accumulation_steps = 2});
  const auto losses = std::make_shared<LossHistory>();
  trainer.add_callback(losses);
  EXPECT_NEAR(trainer.train_epoch(loader, 0).avg_loss, kUnevenLoss, 1e-6);
  ASSERT_EQ(losses->losses.size(), 1U);
  EXPECT_NEAR(losses->losses[0], kUnevenLoss, 1e-6);
}

TEST(LossAverage, there_is_none_if_every_label_is_ignored) {
  FixedLoader loader({places({0, 0, 0, 0, 0, 0}, {-100, -100, -100})});
  Trainer trainer(by_place(kIgnoredLabel), 1);
  EXPECT_TRUE(std::isnan(trainer.evaluate(loader).loss));
}

TEST(LossAverage, there_is_none_if_every_step_was_left_out) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const TrainConfig skipping{.optimizer = optim::sgd(0.1), .non_finite = NonFinite::skip};
  FixedLoader broken({constant_batch(2, nan), constant_batch(2, nan)}),
      half({constant_batch(2, nan), constant_batch(2, 3)}), empty({});
  std::optional<EpochStats> stats;
  Trainer trainer(mean_graph, 2, skipping);
  const std::vector<std::string> lines = logged(logging::Level::warning, [&] {
    const FitResult result = trainer.fit(broken);
    ASSERT_EQ(result.history.epochs.size(), 1U);
    stats = result.history.epochs[0];
  });
  EXPECT_TRUE(std::isnan(stats->avg_loss));
  EXPECT_EQ(stats->steps, 0);
  EXPECT_EQ(trainer.state().skipped, 2);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("every step was left out")));
  // Those that were not count alone, and without batches nothing is wrong.
  EXPECT_EQ(Trainer(mean_graph, 2, skipping).train_epoch(half, 0).avg_loss, 3);
  EXPECT_EQ(Trainer(mean_graph, 2, skipping).train_epoch(empty, 0).avg_loss, 0);
}

TEST(LossAverage, the_ignored_label_is_the_one_of_the_losses) {
  EXPECT_EQ(CrossEntropyOptions{}.ignore_index, kIgnoredLabel);
  EXPECT_EQ(NllOptions{}.ignore_index, kIgnoredLabel);
}

}  // namespace
}  // namespace pantala::tests
