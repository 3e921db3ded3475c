// Charts: ticks, thinning, and SVG that is well formed whatever is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <regex>

#include "io/file.h"
#include "monitor/chart.h"
#include "monitor/run_plots.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::monitor::plot_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Every tag is closed in order, every number of a drawing lies on the paper.
void expect_well_formed(const std::string& text) {
  EXPECT_TRUE(text.starts_with("<svg xmlns=")) << text.substr(0, 40);
  std::vector<std::string> open;
  std::size_t tags = 0;
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at, ++tags) {
    const std::size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
  const std::string shapes = std::regex_replace(text, std::regex(">[^<]*<"), "><");
  EXPECT_FALSE(std::regex_search(shapes, std::regex("[\"ML ,-](nan|inf)|[0-9]e[+-]")));
  static const std::regex coordinate("[ML](-?[0-9.]+) (-?[0-9.]+)");
  for (std::sregex_iterator it(text.begin(), text.end(), coordinate), end; it != end; ++it) {
    ASSERT_GE(std::stod((*it)[1]), 0) << (*it)[0];
    ASSERT_LE(std::stod((*it)[1]), kChartWidth) << (*it)[0];
    ASSERT_GE(std::stod((*it)[2]), 0) << (*it)[0];
    ASSERT_LE(std::stod((*it)[2]), 10000) << (*it)[0];
  }
}

RunSeries run(const std::string& name, bool with_validation = true) {
  RunSeries series{.name = name, .steps = {}, .epochs = {}};
  for (std::int64_t k = 1; k <= 40; ++k)
    series.steps.push_back({.epoch = (k - 1) / 10,
                            .step = (k - 1) % 10,
                            .global_step = k,
                            .loss = 2 / static_cast<double>(k),
                            .learning_rate = 0.01});
  for (std::int64_t k = 0; k < 4; ++k) {
    EpochRecord epoch{
        .epoch = k, .steps = 10, .global_step = 10 * (k + 1), .avg_loss = 1, .metrics = {}};
    if (with_validation) {
      epoch.validation_loss = 0.5;
      epoch.metrics = {{"accuracy", 0.8 + 0.01 * static_cast<double>(k)}};
    }
    series.epochs.push_back(epoch);
  }
  return series;
}

TEST(Ticks, are_round_numbers) {
  EXPECT_THAT(ticks_between(0, 1, 5),
              ElementsAre(0, DoubleNear(0.2, 1e-12), DoubleNear(0.4, 1e-12), DoubleNear(0.6, 1e-12),
                          DoubleNear(0.8, 1e-12), 1));
  EXPECT_THAT(ticks_between(0, 4690, 7), ElementsAre(0, 1000, 2000, 3000, 4000));
  EXPECT_THAT(ticks_between(1, 3, 7, true), ElementsAre(1, 2, 3));
  EXPECT_THAT(ticks_between(-1e-9, 1e-9, 2),
              ElementsAre(DoubleNear(-1e-9, 1e-18), 0, DoubleNear(1e-9, 1e-18)));
  EXPECT_THAT(ticks_between(1, 1, 5), ElementsAre());
  EXPECT_THAT(ticks_between(0, kInf, 5), ElementsAre());
  std::mt19937_64 random(3);
  for (int k = 0; k < 2000; ++k) {
    const double low = std::ldexp(static_cast<double>(random() % 2000) - 1000.0,
                                  static_cast<int>(random() % 200) - 100);
    const double high =
        low + std::max(std::abs(low) * 1e-8, 1e-30) * static_cast<double>(1 + random() % 1000000);
    const std::vector<double> ticks = ticks_between(low, high, 6);
    EXPECT_GE(ticks.size(), 2U) << low << " " << high;
    EXPECT_LE(ticks.size(), 8U) << low << " " << high;
  }
}

TEST(Ticks, of_a_logarithmic_axis_are_powers_of_ten) {
  EXPECT_THAT(log_ticks_between(1e-6, 1e-1), ElementsAre(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1));
  EXPECT_THAT(
      log_ticks_between(0.09, 2.1),
      ElementsAre(DoubleNear(0.1, 1e-12), DoubleNear(0.2, 1e-12), DoubleNear(0.5, 1e-12), 1, 2));
  EXPECT_LE(log_ticks_between(1e-300, 1e300).size(), 9U);
  EXPECT_GE(log_ticks_between(1e-300, 1e300).size(), 3U);
}

TEST(Ticks, are_short_texts) {
  EXPECT_EQ(tick_text(0.30000000000000004, 0.1), "0.3");
  EXPECT_EQ(tick_text(0.05, 0.05), "0.05");
  EXPECT_EQ(tick_text(2, 0.5), "2.0");
  EXPECT_EQ(tick_text(4000, 1000), "4000");
  EXPECT_EQ(tick_text(0, 1000), "0");
  EXPECT_EQ(tick_text(2e7, 1e7), "2e7");
  EXPECT_EQ(tick_text(3e-7, 1e-7), "3e-7");
  EXPECT_EQ(tick_text(1e-5, 0), "1e-5");
  EXPECT_EQ(tick_text(0.001, 0), "0.001");
  EXPECT_EQ(tick_text(1000, 0), "1000");
}

TEST(Thinned, keeps_ends_and_peaks) {
  std::vector<Point> points;
  for (int k = 0; k < 100000; ++k) points.push_back({static_cast<double>(k), 1.0});
  points[54321].y = 100;
  points[65432].y = -100;
  const std::vector<Point> thin = thinned(points);
  EXPECT_LE(thin.size(), kMostPoints);
  EXPECT_EQ(thin.front(), points.front());
  EXPECT_EQ(thin.back(), points.back());
  EXPECT_THAT(thin, testing::Contains(points[54321]));
  EXPECT_THAT(thin, testing::Contains(points[65432]));
  EXPECT_TRUE(std::ranges::is_sorted(thin, {}, &Point::x));
  EXPECT_EQ(thinned({points[0], points[1]}).size(), 2U);
}

TEST(Smoothed, is_the_average_around_a_point) {
  std::vector<Point> points;
  for (int k = 0; k < 400; ++k) points.push_back({static_cast<double>(k), k % 2 == 0 ? 1.0 : 3.0});
  points[7].y = kInf;
  points[9].y = std::nan("");
  const std::vector<Point> smooth = smoothed(points);
  ASSERT_EQ(smooth.size(), 398U);
  EXPECT_NEAR(smooth[200].y, 2, 0.1);
  // A straight line stays one, up to its ends.
  for (Point& point : points) point.y = 5 - point.x;
  const std::vector<Point> line = smoothed(points);
  for (std::size_t k = 0; k < line.size(); ++k) EXPECT_NEAR(line[k].y, points[k].y, 1e-9);
  EXPECT_TRUE(smoothed({}).empty());
  // Many points are averaged first; a huge one spoils only what is near.
  points.clear();
  for (int k = 0; k < 100000; ++k)
    points.push_back({static_cast<double>(k), k % 2 == 0 ? 1.0 : 3.0});
  points[1000].y = 1e300;
  const std::vector<Point> many = smoothed(points);
  EXPECT_LE(many.size(), 2 * kMostPoints);
  EXPECT_NEAR(many.back().y, 2, 0.1);
  EXPECT_GT(std::ranges::max(many, {}, &Point::y).y, 1e250);
}

TEST(Smoothed, few_points_stay_what_they_are) {
  const std::vector<Point> points = {{1, 1.0}, {100, 0.02}, {200, 0.015}, {300, 0.01}};
  EXPECT_EQ(smoothed(points), points);
}

TEST(Smoothed, a_steep_beginning_lifts_nothing_after_it) {
  // A loss that falls at once and then lies at 0.02, give or take a bit.
  std::vector<Point> points;
  for (int k = 1; k <= 400; ++k)
    points.push_back({static_cast<double>(k), k < 4 ? 2.3 / k : (k % 2 == 0 ? 0.015 : 0.025)});
  const std::vector<Point> smooth = smoothed(points);
  ASSERT_EQ(smooth.size(), points.size());
  EXPECT_EQ(smooth[0].y, 2.3);
  for (std::size_t k = 3; k < smooth.size(); ++k) EXPECT_LE(smooth[k].y, 0.025) << k;
  for (std::size_t k = 100; k < smooth.size(); ++k) EXPECT_NEAR(smooth[k].y, 0.02, 0.002) << k;
}

TEST(Smoothed, never_leaves_the_range_of_the_points) {
  std::mt19937_64 random(7);
  std::vector<Point> points;
  for (int k = 0; k < 1000; ++k)
    points.push_back({static_cast<double>(k), static_cast<double>(random() % 1000) + 1});
  points.back().y = 1e-3;
  for (const Point& point : smoothed(points)) {
    EXPECT_GE(point.y, 1e-3);
    EXPECT_LE(point.y, 1001);
  }
}

TEST(Chart, draws_what_it_is_given) {
  const std::string text =
      svg({.title = "A <title> & more",
           .x_label = "step",
           .y_label = "loss",
           .curves = {{"first", {{0, 1}, {10, 2}, {20, 0.5}}, 0, Stroke::plain},
                      {"second\x01", {{0, 2}, {20, 1}}, 1, Stroke::marked},
                      {"", {{5, 1}}, 2, Stroke::dashed}}});
  expect_well_formed(text);
  EXPECT_THAT(text, HasSubstr("A &lt;title&gt; &amp; more"));
  EXPECT_THAT(text, HasSubstr(">first</text>"));
  EXPECT_THAT(text, HasSubstr(">second?</text>"));
  EXPECT_THAT(text, HasSubstr("width=\"720\" height=\"440\""));
}

TEST(Chart, logarithmic_with_a_mark) {
  Chart chart{.title = "Learning rate",
              .x_label = "learning rate",
              .y_label = "loss",
              .curves = {{"loss", {{0, 1}, {-1, 1}}, 0, Stroke::plain}},
              .marks = {{{3e-3, 1.2}, "3.0e-3"}},
              .log_x = true};
  for (int k = 0; k < 100; ++k)
    chart.curves[0].points.push_back({1e-6 * std::pow(10, k / 20.0), 2.3 - k / 100.0});
  const std::string text = svg(chart);
  expect_well_formed(text);
  EXPECT_THAT(text, HasSubstr(">3.0e-3</text>"));
  EXPECT_THAT(text, HasSubstr(">1e-5</text>"));
  EXPECT_THAT(text, HasSubstr(">0.01</text>"));
}

TEST(Chart, any_numbers_make_a_well_formed_file_of_bounded_size) {
  const double odd[] = {0,    -0.0,  1,     1e308,     -1e308, 1e-308,       5e-324,
                        kInf, -kInf, 1e300, 1.0000001, -3,     std::nan(""), 1e15};
  std::mt19937_64 random(5);
  for (int k = 0; k < 400; ++k) {
    Chart chart{.title = std::string(300, 'x'),
                .x_label = "\xff\xfe",
                .y_label = std::string(300, 'y'),
                .curves = {},
                .log_x = k % 3 == 0,
                .log_y = k % 5 == 0,
                .whole_x = k % 2 == 0,
                .y_from_zero = k % 7 < 3};
    for (std::uint64_t c = 0; c < random() % 4; ++c) {
      Curve curve{.label = "c", .points = {}, .colour = random(), .stroke = Stroke::plain};
      for (std::uint64_t p = 0; p < random() % 6; ++p)
        curve.points.push_back({odd[random() % std::size(odd)], odd[random() % std::size(odd)]});
      chart.curves.push_back(curve);
    }
    chart.marks.push_back({{odd[random() % std::size(odd)], odd[random() % std::size(odd)]}, "m"});
    const std::string text = svg(chart);
    expect_well_formed(text);
    EXPECT_LT(text.size(), 20000U);
  }
  Chart large{.title = "", .x_label = "", .y_label = "", .curves = {{"c", {}, 0, Stroke::faint}}};
  for (int k = 0; k < 200000; ++k)
    large.curves[0].points.push_back({static_cast<double>(k), static_cast<double>(random() % 100)});
  EXPECT_LT(svg(large).size(), 60000U);
}

TEST(Chart, many_runs_make_a_long_legend) {
  Chart chart{.title = "t", .x_label = "x", .y_label = "y", .curves = {}};
  for (int k = 0; k < 60; ++k)
    chart.curves.push_back({"a run with quite a long name, number " + std::to_string(k) +
                                ", and something that is cut off",
                            {{0, 1}, {1, 2}},
                            static_cast<std::size_t>(k),
                            Stroke::plain});
  const std::string text = svg(chart);
  expect_well_formed(text);
  EXPECT_THAT(text, Not(HasSubstr("cut off")));
  EXPECT_THAT(text, Not(HasSubstr("height=\"440\"")));
}

TEST(RunPlots, the_loss_of_one_run) {
  const Chart chart = plot_runs({run("lenet")}, "loss");
  EXPECT_EQ(chart.title, "Loss: lenet");
  std::vector<std::string> labels;
  for (const Curve& curve : chart.curves) labels.push_back(curve.label);
  EXPECT_THAT(labels, ElementsAre("training steps", "smoothed", "average of epoch", "validation"));
  EXPECT_EQ(chart.curves[0].points.size(), 40U);
  EXPECT_EQ(chart.curves[0].points[4], (Point{5, 0.4}));
  EXPECT_EQ(chart.curves[3].points[1], (Point{20, 0.5}));
  expect_well_formed(svg(chart));
}

RunSeries falling_run(const std::string& name, double last) {
  RunSeries series = run(name, false);
  for (StepRecord& step : series.steps)
    step.loss = 2 * std::pow(last / 2, static_cast<double>(step.global_step - 1) / 39);
  for (EpochRecord& epoch : series.epochs)
    epoch.avg_loss = series.steps.at(static_cast<std::size_t>(epoch.global_step - 1)).loss;
  return series;
}

TEST(RunPlots, losses_that_span_decades_have_a_logarithmic_axis) {
  const Chart converged = plot_runs({falling_run("a", 1e-3)}, "loss");
  EXPECT_TRUE(converged.log_y);
  EXPECT_EQ(converged.y_label, "loss (logarithmic)");
  expect_well_formed(svg(converged));
  EXPECT_THAT(svg(converged), HasSubstr(">0.01</text>"));
  const Chart usual = plot_runs({falling_run("a", 0.2)}, "loss");
  EXPECT_FALSE(usual.log_y);
  EXPECT_EQ(usual.y_label, "loss");
  // One that has converged among others that have not.
  EXPECT_TRUE(plot_runs({falling_run("a", 0.2), falling_run("b", 1e-4)}, "loss").log_y);
  // A loss that can be negative has no such axis, one that is 0 now and then has.
  RunSeries negative = falling_run("a", 1e-3), zero = falling_run("a", 1e-3);
  negative.epochs[3].avg_loss = -1;
  zero.epochs[3].avg_loss = 0;
  EXPECT_FALSE(plot_runs({negative}, "loss").log_y);
  EXPECT_TRUE(plot_runs({zero}, "loss").log_y);
  EXPECT_FALSE(plot_runs({falling_run("a", 1e-3)}, "learning_rate").log_y);
}

TEST(RunPlots, single_steps_do_not_stretch_a_logarithmic_axis) {
  Chart chart{.title = "t",
              .x_label = "x",
              .y_label = "y",
              .curves = {{"steps", {{0, 1}, {1, 1e-9}}, 0, Stroke::faint},
                         {"smoothed", {{0, 1}, {1, 0.01}}, 0, Stroke::plain}},
              .log_y = true};
  const std::string text = svg(chart);
  expect_well_formed(text);
  EXPECT_THAT(text, HasSubstr(">0.001</text>"));
  EXPECT_THAT(text, Not(HasSubstr(">0.0001</text>")));
  EXPECT_THAT(text, Not(HasSubstr(">1e-5</text>")));
}

TEST(RunPlots, several_runs_over_each_other) {
  const std::vector<RunSeries> runs = {run("a"), run("b", false), run("c")};
  const Chart loss = plot_runs(runs, "loss");
  std::vector<std::string> labels;
  for (const Curve& curve : loss.curves) labels.push_back(curve.label);
  EXPECT_THAT(labels, ElementsAre("a", "a, validation", "b", "c", "c, validation"));
  EXPECT_EQ(loss.curves[0].colour, loss.curves[1].colour);
  const Chart accuracy = plot_runs(runs, "accuracy");
  EXPECT_EQ(accuracy.curves.size(), 2U);
  EXPECT_EQ(accuracy.x_label, "epoch");
  EXPECT_EQ(accuracy.curves[1].points[0], (Point{1, 0.8}));
  EXPECT_EQ(plot_runs(runs, "validation_accuracy").curves.size(), 2U);
  EXPECT_EQ(plot_runs(runs, "learning_rate").x_label, "step");
  EXPECT_EQ(plot_runs(runs, "learning_rate").title, "Learning rate");
}

TEST(RunPlots, a_metric_that_no_run_has_is_a_mistake) {
  EXPECT_EQ(tests::message_of<TypeError>([] { plot_runs({run("a")}, "acuracy"); }),
            "no run has the metric 'acuracy'; did you mean 'accuracy'?; there are: accuracy, "
            "learning_rate, loss, validation_loss");
}

TEST(RunPlots, are_written_into_a_folder) {
  const tests::TemporaryFolder folder;
  const auto plots = folder.path() / "run" / "plots";
  EXPECT_THAT(write_plots({run("a")}, plots),
              ElementsAre(plots / "loss.svg", plots / "accuracy.svg"));
  EXPECT_THAT(write_plots({run("a", false)}, folder.path()),
              ElementsAre(folder.path() / "loss.svg"));
  expect_well_formed(io::read_file(plots / "accuracy.svg"));
  RunSeries hostile = run("a");
  hostile.epochs[0].metrics.emplace_back("../../x", 1.0);
  EXPECT_THAT(write_plots({hostile}, plots, {"../../x"}), ElementsAre(plots / "------x.svg"));
}

}  // namespace
}  // namespace pantala::monitor::plot_test
