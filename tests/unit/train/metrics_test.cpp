// Metrics of predictions, against numbers worked out by hand.
#include "pantala/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::metrics {
namespace {

using pantala::tests::message_of;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using tests::message_of;

TEST(Metrics, of_each_kind_are_in_one_table) {
  EXPECT_THAT(names(Kind::classes),
              ElementsAre("loss", "accuracy", "top5", "precision", "recall", "f1"));
  EXPECT_THAT(names(Kind::numbers), ElementsAre("loss", "mae", "rmse", "r2"));
  EXPECT_THAT(names(Kind::tokens), ElementsAre("loss", "accuracy", "perplexity", "bits_per_token"));
  EXPECT_THAT(names(Kind::bytes), ElementsAre("loss", "accuracy", "perplexity", "bits_per_byte"));
  EXPECT_EQ(names().size(), 12U);
  for (const char* name : {"loss", "mae", "rmse", "perplexity", "bits_per_byte", "bits_per_token"})
    EXPECT_FALSE(larger_is_better(name)) << name;
  for (const char* name : {"accuracy", "top5", "precision", "recall", "f1", "r2"})
    EXPECT_TRUE(larger_is_better(name)) << name;
}

TEST(ConfusionMatrix, counts_by_truth_and_prediction) {
  ConfusionMatrix m(4);  // class 3 never occurs
  m.add(0, 0, 5);
  m.add(0, 1, 1);
  m.add(1, 1, 2);
  m.add(2, 0);
  m.add(2, 1);
  EXPECT_EQ(m.total(), 10);
  EXPECT_EQ(m.at(0, 0), 5);
  EXPECT_EQ(m.at(1, 0), 0);
  EXPECT_DOUBLE_EQ(m.accuracy(), 0.7);
  EXPECT_DOUBLE_EQ(m.precision(0), 5.0 / 6);
  EXPECT_DOUBLE_EQ(m.recall(0), 5.0 / 6);
  EXPECT_DOUBLE_EQ(m.precision(1), 0.5);
  EXPECT_DOUBLE_EQ(m.recall(1), 1);
  EXPECT_DOUBLE_EQ(m.f1(1), 2.0 / 3);
  EXPECT_DOUBLE_EQ(m.precision(2), 0);
  EXPECT_DOUBLE_EQ(m.recall(2), 0);
  EXPECT_DOUBLE_EQ(m.f1(3), 0);
  // Over the three classes that occur.
  EXPECT_DOUBLE_EQ(m.macro_precision(), (5.0 / 6 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(m.macro_recall(), (5.0 / 6 + 1) / 3);
  EXPECT_DOUBLE_EQ(m.macro_f1(), (5.0 / 6 + 2.0 / 3) / 3);
}

TEST(ConfusionMatrix, is_all_0_if_empty) {
  for (const ConfusionMatrix& m : {ConfusionMatrix(), ConfusionMatrix(3)}) {
    EXPECT_EQ(m.total(), 0);
    EXPECT_EQ(m.accuracy(), 0);
    EXPECT_EQ(m.macro_f1(), 0);
  }
}

TEST(ConfusionMatrix, refuses_what_is_no_class) {
  ConfusionMatrix m(3);
  EXPECT_THAT(message_of<TypeError>([&] { m.add(3, 0); }), HasSubstr("true class is 3"));
  EXPECT_THAT(message_of<TypeError>([&] { m.add(0, -1); }), HasSubstr("predicted class is -1"));
  EXPECT_THROW(m.at(0, 3), TypeError);
  EXPECT_THROW(ConfusionMatrix(-1), TypeError);
  EXPECT_EQ(m, ConfusionMatrix(3));
}

TEST(ConfusionMatrix, very_many_classes_take_little_memory) {
  ConfusionMatrix m(1'000'000);
  m.add(999'999, 5);
  EXPECT_EQ(m.at(999'999, 5), 1);
  EXPECT_EQ(m.cells().size(), 1u);
}

TEST(ConfusionMatrix, prints_a_table) {
  ConfusionMatrix m(2);
  m.add(0, 0, 12345);
  m.add(1, 0, 7);
  EXPECT_EQ(m.text({"shirt"}),
            "true            0     1  recall\n"
            "shirt    0  12345     0  1.0000\n"
            "1        1      7     0  0.0000\n");
  EXPECT_EQ(m.text(),
            "true      0     1  recall\n"
            "   0  12345     0  1.0000\n"
            "   1      7     0  0.0000\n");
}

TEST(Classification, counts_the_best_and_the_k_best) {
  Classification c(4, {2, 3, 4});
  // Right; second best; worst; equal scores, of which the first is the better.
  const std::vector<float> scores = {9, 1, 2, 3, 5, 9, 1, 2, 4, 3, 2, 1, 7, 7, 7, 7};
  c.add(scores, std::vector<std::int64_t>{0, 0, 3, 1});
  EXPECT_THAT(c.values(), ElementsAre(Pair("accuracy", 0.25), Pair("top2", 0.75),
                                      Pair("top3", 0.75), Pair("precision", ::testing::_),
                                      Pair("recall", ::testing::_), Pair("f1", ::testing::_)));
  EXPECT_EQ(c.confusion().at(1, 0), 1);
}

TEST(Classification, a_row_with_a_nan_is_wrong) {
  Classification c(2, {1});
  c.add(std::vector<float>{1, std::nanf(""), 3, 2}, std::vector<std::int64_t>{0, 0});
  EXPECT_EQ(c.confusion().accuracy(), 0.5);
  EXPECT_EQ(c.confusion().undecided(0), 1);
  EXPECT_EQ(c.confusion().recall(0), 0.5);
  EXPECT_EQ(c.confusion().precision(0), 1);
  EXPECT_THAT(c.confusion().text(), HasSubstr("none"));
  EXPECT_THAT(c.values()[1], Pair("top1", 0.5));
}

TEST(Classification, refuses_what_does_not_fit_and_counts_nothing_of_it) {
  Classification c(2);
  EXPECT_THAT(message_of<TypeError>(
                  [&] { c.add(std::vector<float>{1, 2, 3}, std::vector<std::int64_t>{0, 1}); }),
              HasSubstr("need 4 scores, got 3"));
  EXPECT_THROW(c.add(std::vector<float>{1, 2, 3, 4}, std::vector<std::int64_t>{0, 2}), TypeError);
  EXPECT_EQ(c.confusion().total(), 0);
}

TEST(Regression, mae_rmse_and_r2) {
  Regression r;
  r.add(std::vector<float>{2.5F, 0}, std::vector<float>{3, -0.5F});
  r.add(std::vector<float>{2, 8}, std::vector<float>{2, 7});
  // scikit-learn: 0.5, sqrt(0.375), 0.9486081370449679
  EXPECT_THAT(r.values(), ElementsAre(Pair("mae", DoubleNear(0.5, 1e-12)),
                                      Pair("rmse", DoubleNear(std::sqrt(0.375), 1e-12)),
                                      Pair("r2", DoubleNear(0.9486081370449679, 1e-12))));
}

TEST(Regression, without_numbers_or_spread) {
  Regression r;
  EXPECT_THAT(r.values(), ElementsAre(Pair("mae", 0), Pair("rmse", 0), Pair("r2", 0)));
  r.add(std::vector<float>{3, 3}, std::vector<float>{3, 3});
  EXPECT_THAT(r.values()[2], Pair("r2", 1));
  r.add(std::vector<float>{4}, std::vector<float>{3});
  EXPECT_THAT(r.values()[2], Pair("r2", 0));
  EXPECT_THROW(r.add(std::vector<float>{4}, {}), TypeError);
}

TEST(Regression, r2_is_the_mean_over_the_columns) {
  Regression r(2);
  r.add(std::vector<float>{0, -1, -1, 5, 8, -5}, std::vector<float>{0.5F, 1, -1, 1, 7, -6});
  const double squared0 = 0.25 + 0 + 1, squared1 = 4 + 16 + 1;
  const double mean0 = 6.5 / 3, mean1 = -4.0 / 3;
  const double spread0 = 0.25 + 1 + 49 - 3 * mean0 * mean0,
               spread1 = 1 + 1 + 36 - 3 * mean1 * mean1;
  EXPECT_THAT(r.values(),
              ElementsAre(Pair("mae", DoubleNear(8.5 / 6, 1e-12)),
                          Pair("rmse", DoubleNear(std::sqrt((squared0 + squared1) / 6), 1e-12)),
                          Pair("r2", DoubleNear((2 - squared0 / spread0 - squared1 / spread1) / 2,
                                                1e-12))));
  EXPECT_THROW(r.add(std::vector<float>{1}, std::vector<float>{1}), TypeError);
  EXPECT_THROW(Regression(0), TypeError);
}

// Numbers far from 0 with a small spread: a sum of squares would lose it.
TEST(Regression, the_spread_is_exact_far_from_0) {
  Regression r;
  std::vector<float> targets, predictions;
  for (int k = 0; k < 1000; ++k) {
    targets.push_back(1e6F + static_cast<float>(k % 2));
    predictions.push_back(1e6F + 0.5F);
  }
  r.add(predictions, targets);
  EXPECT_NEAR(r.values()[2].second, 0, 1e-6);
}

}  // namespace
}  // namespace pantala::metrics
