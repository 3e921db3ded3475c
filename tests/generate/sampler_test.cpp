// The sampler: what it may pick, how often, and that seeds decide it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "pantala/generate.h"

namespace pantala {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits of these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<std::int64_t> picks(const SamplerOptions& options, const std::vector<float>& logits,
                                int count) {
  Sampler sampler(options);
  std::vector<std::int64_t> tokens;
  for (int k = 0; k < count; ++k) tokens.push_back(sampler.pick(logits));
  return tokens;
}

std::set<std::int64_t> support_of(const SamplerOptions& options, const std::vector<float>& logits) {
  const std::vector<std::int64_t> tokens = picks(options, logits, 2000);
  return {tokens.begin(), tokens.end()};
}

// Pearson's statistic of so many picks against probabilities.
double chi_squared(const SamplerOptions& options, const std::vector<float>& logits,
                   const std::map<std::int64_t, double>& expected, int count) {
  std::map<std::int64_t, int> counts;
  for (const std::int64_t token : picks(options, logits, count)) ++counts[token];
  double sum = 0;
  for (const auto& [token, p] : expected) {
    const double mean = p * count;
    sum += (counts[token] - mean) * (counts[token] - mean) / mean;
    counts.erase(token);
  }
  EXPECT_TRUE(counts.empty()) << "picked a token of probability 0";
  return sum;
}

TEST(Sampler, follows_the_probabilities) {
  const std::vector<float> logits = logits_of({0.5, 0.25, 0.15, 0.1});
  // The 0.999 quantile of 3 degrees of freedom is 16.3.
  EXPECT_LT(chi_squared({}, logits, {{0, 0.5}, {1, 0.25}, {2, 0.15}, {3, 0.1}}, 20000), 16.3);
  // Half the temperature squares the probabilities.
  const double total = 0.25 + 0.0625 + 0.0225 + 0.01;
  EXPECT_LT(
      chi_squared({.temperature = 0.5}, logits,
                  {{0, 0.25 / total}, {1, 0.0625 / total}, {2, 0.0225 / total}, {3, 0.01 / total}},
                  20000),
      16.3);
  EXPECT_LT(chi_squared({.top_k = 2}, logits, {{0, 2.0 / 3}, {1, 1.0 / 3}}, 20000), 10.9);
  EXPECT_LT(chi_squared({.top_p = 0.8}, logits, {{0, 5.0 / 9}, {1, 2.5 / 9}, {2, 1.5 / 9}}, 20000),
            13.9);
}

TEST(Sampler, greedy_is_the_first_of_the_largest) {
  const std::vector<float> logits{1, 3, -kInfinity, 3, 2};
  for (const SamplerOptions& options :
       {SamplerOptions{.temperature = 0}, SamplerOptions{.top_k = 1}, SamplerOptions{.top_p = 1e-9},
        SamplerOptions{.temperature = 1e-300, .top_k = 1}})
    EXPECT_THAT(support_of(options, logits), ElementsAre(1));
}

TEST(Sampler, top_k_keeps_the_most_likely) {
  const std::vector<float> logits{0, 5, 1, 5, 4.5F, 5};
  EXPECT_THAT(support_of({.top_k = 2}, logits), ElementsAre(1, 3));  // of equals the first
  EXPECT_THAT(support_of({.top_k = 4}, logits), ElementsAre(1, 3, 4, 5));
  for (const std::int64_t all : {0, 6, 7, 1000000})
    EXPECT_THAT(support_of({.temperature = 100, .top_k = all}, logits),
                ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Sampler, top_p_keeps_the_fewest_that_reach_the_sum) {
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(support_of({.top_p = 0.01}, logits), ElementsAre(1));
  EXPECT_THAT(support_of({.top_p = 0.39}, logits), ElementsAre(1));
  EXPECT_THAT(support_of({.top_p = 0.41}, logits), ElementsAre(1, 3));
  EXPECT_THAT(support_of({.top_p = 0.69}, logits), ElementsAre(1, 3));
  EXPECT_THAT(support_of({.top_p = 0.71}, logits), ElementsAre(1, 2, 3));
  EXPECT_THAT(support_of({.top_p = 0.91}, logits), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(support_of({.top_p = 1}, logits), ElementsAre(0, 1, 2, 3));
  // Of what top_k has left: 4/7 and 3/7.
  EXPECT_THAT(support_of({.top_k = 2, .top_p = 0.5}, logits), ElementsAre(1));
  EXPECT_THAT(support_of({.top_k = 2, .top_p = 0.6}, logits), ElementsAre(1, 3));
}

TEST(Sampler, leaves_out_what_has_no_probability) {
  EXPECT_THAT(support_of({}, {-kInfinity, 0, -kInfinity, 0}), ElementsAre(1, 3));
  EXPECT_THAT(support_of({.top_k = 3}, {-kInfinity, 0, -kInfinity, 0}), ElementsAre(1, 3));
  EXPECT_THAT(support_of({}, {-kInfinity, -3e38F}), ElementsAre(1));
  // Neither the largest numbers nor the smallest temperature overflow.
  EXPECT_THAT(support_of({.temperature = 1e-300}, {-3e38F, 3e38F, 3e38F}), ElementsAre(1, 2));
  EXPECT_THAT(support_of({.temperature = 1e300}, {-3e38F, 3e38F}), ElementsAre(0, 1));
}

TEST(Sampler, seeds_decide) {
  const std::vector<float> logits(50, 0);
  const std::vector<std::int64_t> first = picks({.seed = 7}, logits, 40);
  EXPECT_EQ(picks({.seed = 7}, logits, 40), first);
  EXPECT_NE(picks({.seed = 8}, logits, 40), first);
  Sampler sampler({.seed = 8});
  for (int k = 0; k < 5; ++k) sampler.pick(logits);
  sampler.restart(7);
  for (const std::int64_t token : first) EXPECT_EQ(sampler.pick(logits), token);
  // The bits of one run, so that no other build or machine gives other texts.
  EXPECT_THAT(picks({.seed = 7}, logits, 6), ElementsAre(27, 11, 14, 40, 18, 7));
}

TEST(Sampler, refuses_options_out_of_range) {
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL})
    EXPECT_THAT([&] { Sampler({.temperature = bad}); },
                ThrowsMessage<TypeError>(HasSubstr("temperature must be finite")));
  EXPECT_THAT([] { Sampler({.top_k = -1}); }, ThrowsMessage<TypeError>(HasSubstr("top_k")));
  for (const double bad : {0.0, -0.5, 1.5, std::nan("")})
    EXPECT_THAT([&] { Sampler({.top_p = bad}); },
                ThrowsMessage<TypeError>(HasSubstr("top_p must be above 0 and at most 1")));
}

TEST(Sampler, refuses_logits_that_say_nothing) {
  Sampler sampler;
  EXPECT_THAT([&] { sampler.pick(std::vector<float>{0, std::nanf("")}); },
              ThrowsMessage<ValueError>(HasSubstr("the logit of token 1 is nan")));
  EXPECT_THAT([&] { sampler.pick(std::vector<float>{kInfinity, 0}); },
              ThrowsMessage<ValueError>(HasSubstr("the logit of token 0 is inf")));
  EXPECT_THAT([&] { sampler.pick(std::vector<float>{-kInfinity, -kInfinity}); },
              ThrowsMessage<ValueError>(HasSubstr("none of 2 tokens")));
  EXPECT_THAT([&] { sampler.pick({}); }, ThrowsMessage<ValueError>(HasSubstr("none of 0 tokens")));
}

}  // namespace
}  // namespace pantala
