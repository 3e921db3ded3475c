// Learning-rate schedules. The recorded rates of PyTorch are checked by the fixtures; here are the
// shapes, limits and errors.
#include "pantala/rate_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "pantala/error.h"
#include "pantala/rate_schedule_table.h"
#include "support/errors.h"

namespace pantala {
namespace {

using tests::message_of;

std::vector<double> rates(const RateSchedule& schedule, int steps, double base = 1) {
  std::vector<double> all;
  for (int k = 0; k < steps; ++k) all.push_back(schedule.lr(k, base));
  return all;
}

void expect_rates(const RateSchedule& schedule, const std::vector<double>& expected,
                  double base = 1) {
  const std::vector<double> got = rates(schedule, static_cast<int>(expected.size()), base);
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(got[k], expected[k], 1e-15) << schedule << " at step " << k;
}

TEST(RateSchedule, kinds) {
  expect_rates(RateSchedule(), {3, 3, 3}, 3);
  expect_rates(StepRate{.step_size = 2, .gamma = 0.5}, {1, 1, 0.5, 0.5, 0.25});
  expect_rates(MultistepRate{.milestones = {3, 1}, .gamma = 0.5}, {1, 0.5, 0.5, 0.25});
  expect_rates(ExponentialRate{.gamma = 0.5}, {1, 0.5, 0.25});
  expect_rates(CosineRate{.T_max = 2}, {1, 0.5, 0, 0.5, 1});
  expect_rates(CosineRestartsRate{.T_0 = 2, .T_mult = 2},
               {1, 0.5, 1, std::pow(std::cos(M_PI / 8), 2), 0.5});
  expect_rates(LinearRate{.start_factor = 0.5, .end_factor = 1, .total_iters = 2},
               {0.5, 0.75, 1, 1});
  expect_rates(PolynomialRate{.total_iters = 2, .power = 2}, {1, 0.25, 0, 0});
  expect_rates(CyclicRate{.base_lr = 1, .max_lr = 3, .step_size_up = 2}, {1, 2, 3, 2, 1, 2}, 77);
  expect_rates(CyclicRate{.base_lr = 1, .max_lr = 3, .step_size_up = 1, .mode = "triangular2"},
               {1, 3, 1, 2, 1, 1.5});
  expect_rates(
      CyclicRate{.base_lr = 0, .max_lr = 1, .step_size_up = 1, .mode = "exp_range", .gamma = 0.5},
      {0, 0.5, 0, 0.125});
}

TEST(RateSchedule, names_and_the_options_that_say_how_long_they_last) {
  const std::vector<std::string> names = RateSchedule::names();
  ASSERT_EQ(names.size(), std::variant_size_v<RateSchedule::Kind>);
  EXPECT_EQ(names.front(), RateSchedule().name());
  EXPECT_EQ(RateSchedule::length_option("cosine"), "T_max");
  EXPECT_EQ(RateSchedule::length_option("one_cycle"), "total_steps");
  EXPECT_EQ(RateSchedule::length_option("linear"), "total_iters");
  EXPECT_EQ(RateSchedule::length_option("polynomial"), "total_iters");
  for (const char* name : {"constant", "step", "cosine_restarts", "cyclic", "plateau", "none"})
    EXPECT_EQ(RateSchedule::length_option(name), "") << name;
}

TEST(RateSchedule, one_cycle_rises_falls_and_stays) {
  const RateSchedule schedule = OneCycleRate{.max_lr = 1,
                                             .total_steps = 10,
                                             .pct_start = 0.5,
                                             .anneal_strategy = "linear",
                                             .div_factor = 10,
                                             .final_div_factor = 10};
  EXPECT_NEAR(schedule.lr(0, 5), 0.1, 1e-15);
  EXPECT_NEAR(schedule.lr(4, 5), 1, 1e-15);
  EXPECT_NEAR(schedule.lr(9, 5), 0.01, 1e-15);
  EXPECT_EQ(schedule.lr(1000, 5), schedule.lr(9, 5));
  // Phases without length.
  for (const double pct_start : {0.0, 0.1, 1.0})
    for (const bool three : {false, true})
      for (const std::int64_t total : {1, 2, 10})
        for (const double lr : rates(OneCycleRate{.max_lr = 1,
                                                  .total_steps = total,
                                                  .pct_start = pct_start,
                                                  .three_phase = three},
                                     12))
          EXPECT_TRUE(lr >= 0 && lr <= 1) << lr;
}

TEST(RateSchedule, far_steps_do_not_overflow) {
  const std::int64_t far = std::numeric_limits<std::int64_t>::max();
  for (const RateSchedule& schedule :
       {RateSchedule(), RateSchedule(StepRate{.step_size = 1}),
        RateSchedule(CosineRate{.T_max = far}),
        RateSchedule(CosineRestartsRate{.T_0 = 3, .T_mult = 7}),
        RateSchedule(CosineRestartsRate{.T_0 = far, .T_mult = far}),
        RateSchedule(CyclicRate{.base_lr = 0, .max_lr = 1}), RateSchedule(PolynomialRate{}),
        RateSchedule().with_warmup(far)}) {
    EXPECT_TRUE(std::isfinite(schedule.lr(far, 1))) << schedule;
    EXPECT_TRUE(std::isfinite(schedule.lr(far - 1, 1))) << schedule;
  }
}

TEST(RateSchedule, warm_up_is_linear_and_then_the_schedule_begins) {
  expect_rates(RateSchedule(StepRate{.step_size = 1, .gamma = 0.5}).with_warmup(4),
               {0.25, 0.5, 0.75, 1, 1, 0.5, 0.25});
  EXPECT_EQ(RateSchedule::from_options("constant", {{"warmup_steps", 2.0}}),
            RateSchedule().with_warmup(2));
}

TEST(RateSchedule, values_are_comparable_and_printable) {
  const RateSchedule a = CosineRate{.T_max = 30, .eta_min = 0.001};
  EXPECT_EQ(a, RateSchedule::from_options("cosine", {{"T_max", 30.0}, {"eta_min", 0.001}}));
  EXPECT_NE(a, RateSchedule(CosineRate{.T_max = 31}));
  EXPECT_NE(a, a.with_warmup(1));
  EXPECT_EQ(a.with_warmup(5).str(), "cosine(T_max=30, eta_min=0.001, warmup_steps=5)");
  EXPECT_EQ(testing::PrintToString(RateSchedule(MultistepRate{.milestones = {4, 9}})),
            "multistep(milestones=[4,9], gamma=0.1)");
}

TEST(RateSchedule, options_are_checked) {
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("cosin", {}); }),
            "there is no schedule 'cosin'; did you mean 'cosine'?");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("cosine", {}); }),
            "cosine: the option T_max is missing");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("cosine", {{"T_maxx", 3.0}}); }),
            "cosine has no option 'T_maxx'; did you mean 'T_max'?");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("cosine", {{"T_max", 2.5}}); }),
            "cosine: T_max must be a whole number, got 2.5");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("cosine", {{"T_max", true}}); }),
            "cosine: T_max must be a whole number, got true");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule s = CosineRate{}; }),
            "cosine: T_max must be at least 1, got 0");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule s = LinearRate{.start_factor = 2}; }),
            "linear: start_factor must be in [0, 1], got 2");
  EXPECT_EQ(message_of<TypeError>([] {
              RateSchedule s =
                  OneCycleRate{.max_lr = 1, .total_steps = 5, .anneal_strategy = "cosine"};
            }),
            "one_cycle: anneal_strategy must be one of cos, linear, got \"cosine\"");
  EXPECT_EQ(message_of<TypeError>([] { static_cast<void>(RateSchedule().lr(-1, 1)); }),
            "constant: steps count from 0, got -1");
  EXPECT_EQ(message_of<TypeError>([] { static_cast<void>(RateSchedule().with_warmup(-1)); }),
            "constant: warmup_steps must be at least 0, got -1");
  EXPECT_EQ(message_of<TypeError>([] { RateSchedule::from_options("plateau", {}); }),
            "plateau follows a metric, not the step: it is made with Plateau::from_options");
}

TEST(Plateau, lowers_the_rate_after_patience_and_cools_down) {
  Plateau plateau(1, {.factor = 0.5, .patience = 1, .cooldown = 2, .min_lr = 0.3});
  std::vector<double> lrs;
  for (const double loss :
       std::vector<double>{1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1, NAN, NAN}) {
    plateau.report(loss);
    lrs.push_back(plateau.lr());
  }
  // Two reports without improvement, then two that are ignored, then two again; the floor holds.
  EXPECT_THAT(lrs, testing::ElementsAre(1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3));
}

TEST(RateSchedule, descriptions_are_of_all_names_and_options) {
  std::vector<std::string> names;
  for (const RateDescription& description : rate_descriptions()) names.push_back(description.name);
  std::vector<std::string> expected = RateSchedule::names();
  expected.emplace_back("plateau");
  EXPECT_EQ(names, expected);
  const RateDescription& multistep = rate_descriptions()[2];
  ASSERT_EQ(multistep.options.size(), 2u);
  EXPECT_EQ(multistep.options[0].name, "milestones");
  EXPECT_TRUE(multistep.options[0].required && multistep.options[0].whole);
  EXPECT_EQ(multistep.options[1].default_value, OptionValue(0.1));
  EXPECT_FALSE(multistep.options[1].required || multistep.options[1].whole);
}

TEST(RateSchedule, the_described_defaults_make_the_same_schedule) {
  for (const RateDescription& description : rate_descriptions()) {
    NamedOptions given, all;
    for (const RateOption& option : description.options) {
      const OptionValue value = option.name == "milestones" ? OptionValue(std::vector<double>{3, 5})
                                : option.required           ? OptionValue(2.0)
                                                            : option.default_value;
      all[option.name] = value;
      if (option.required) given[option.name] = value;
    }
    if (description.name == "plateau")
      EXPECT_EQ(Plateau::from_options(1, all), Plateau::from_options(1, given));
    else
      EXPECT_EQ(RateSchedule::from_options(description.name, all),
                RateSchedule::from_options(description.name, given));
  }
}

TEST(Plateau, modes_and_thresholds) {
  Plateau up(1, {.mode = "max", .patience = 0, .threshold = 0.1, .threshold_mode = "abs"});
  EXPECT_FALSE(up.report(1));
  EXPECT_FALSE(up.report(1.2));
  EXPECT_TRUE(up.report(1.25));
  EXPECT_DOUBLE_EQ(up.lr(), 0.1);
  Plateau relative(1, {.patience = 0, .threshold = 0.5});
  EXPECT_FALSE(relative.report(8));
  EXPECT_FALSE(relative.report(3));
  EXPECT_TRUE(relative.report(2));
}

TEST(Plateau, state_can_be_saved) {
  const PlateauOptions options{.factor = 0.5, .patience = 1};
  Plateau a(1, options), b(1, options);
  a.report(1), a.report(2);
  b.restore(a.state());
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.report(2), b.report(2));
  EXPECT_EQ(b.lr(), 0.5);
  EXPECT_EQ(Plateau::from_options(1, {{"factor", 0.5}, {"patience", 1.0}}), Plateau(1, options));
  EXPECT_EQ(message_of<TypeError>([] { Plateau(1, {.factor = 1}); }),
            "plateau: factor must be in [0, 1), got 1");
  EXPECT_EQ(message_of<TypeError>([] { Plateau(1, {.mode = "low"}); }),
            "plateau: mode must be one of min, max, got \"low\"");
}

}  // namespace
}  // namespace pantala
