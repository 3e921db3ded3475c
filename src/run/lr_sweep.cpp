#include "run/lr_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/doing.h"
#include "base/text.h"
#include "pantala/error.h"
#include "run/first_weights.h"
#include "run/models/model.h"
#include "run/run_data.h"
#include "run/setup.h"

namespace pantala::run {

namespace {

constexpr double kExploded = 4;        // times the smallest loss
constexpr double kMemory = 0.9;        // of the average that is compared with it
constexpr double kBellDecades = 0.15;  // the deviation of the bell that smooths
constexpr double kSlopeDecades = 0.4;  // to either side, for the slope

void check(const RateSweepOptions& options) {
  if (!(options.from > 0 && options.to > options.from && std::isfinite(options.to)))
    throw TypeError(fmt::format("--first must be above 0 and below --last, got {} and {}",
                                exact(options.from), exact(options.to)));
}

// The rate schedule grows by itself: no rate is set from outside.
RunConfig sweeping(RunConfig config, const RateSweepOptions& options) {
  const double growth =
      std::pow(options.to / options.from, 1.0 / static_cast<double>(options.steps - 1));
  config.optimizer.options["lr"] = options.from;
  config.rate_schedule.name = "exponential";
  config.rate_schedule.options = {{"gamma", growth}};
  config.non_finite = "error";
  return config;
}

double decades(double lr) { return std::log10(lr); }

// The points of the sweep until the loss explodes or the rates are used up.
std::vector<RateSweepPoint> measure(Trainer& trainer, data::Loader& loader,
                                    const RateSweepOptions& options) {
  std::vector<RateSweepPoint> points;
  const double growth = decades(options.to / options.from) / static_cast<double>(options.steps - 1);
  double mean = 0, weight = 0, least = std::numeric_limits<double>::infinity();
  const auto exploded = [&](double loss) {  // a moving average, without the bias of its beginning
    mean = kMemory * mean + (1 - kMemory) * loss;
    weight = kMemory * weight + (1 - kMemory);
    least = std::min(least, mean / weight);
    return mean / weight > kExploded * least;
  };
  for (std::uint64_t epoch = 0;; ++epoch) {
    loader.shuffle(epoch);
    while (const std::optional<data::Batch> batch = loader.next_batch()) {
      std::optional<StepMetrics> step;
      try {
        step = trainer.step(*batch);
      } catch (const DivergenceError&) { return points; }
      if (!step) continue;
      const double lr = options.from * std::pow(10.0, growth * static_cast<double>(points.size()));
      points.push_back({lr, step->loss});
      if (std::ssize(points) == options.steps || exploded(step->loss)) return points;
    }
  }
}

}  // namespace

std::vector<RateSweepPoint> smooth(const std::vector<RateSweepPoint>& points) {
  std::vector<RateSweepPoint> result;
  for (const RateSweepPoint& center : points) {
    double sum = 0, weights = 0;
    for (const RateSweepPoint& point : points) {
      const double distance = (decades(point.lr) - decades(center.lr)) / kBellDecades;
      const double weight = std::exp(-0.5 * distance * distance);
      sum += weight * point.loss;
      weights += weight;
    }
    result.push_back({center.lr, sum / weights});
  }
  return result;
}

double steepest(const std::vector<RateSweepPoint>& smoothed) {
  const auto least = std::min_element(smoothed.begin(), smoothed.end(),
                                      [](auto& a, auto& b) { return a.loss < b.loss; });
  double best_slope = 0, best_lr = 0;
  for (auto center = smoothed.begin(); center != least; ++center) {
    // Least squares over the neighbourhood.
    double n = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0;
    for (const RateSweepPoint& point : smoothed) {
      const double x = decades(point.lr) - decades(center->lr);
      if (std::fabs(x) > kSlopeDecades) continue;
      n += 1, x_sum += x, y_sum += point.loss, xx += x * x, xy += x * point.loss;
    }
    const double spread = n * xx - x_sum * x_sum;
    const double slope = spread > 0 ? (n * xy - x_sum * y_sum) / spread : 0;
    if (slope < best_slope) {
      best_slope = slope;
      best_lr = center->lr;
    }
  }
  if (best_lr == 0)
    throw ValueError("the loss never falls: look at the data, or begin lower with --first");
  return best_lr;
}

RateSweep sweep_learning_rates(const RunConfig& config, const RateSweepOptions& options) {
  check(options);
  const RunConfig sweep = sweeping(config, options);
  const RunData data = open_run_data(sweep);
  const auto loader = open_loader(data.train, sweep, data.facts, Use::training);
  const RunLength length = run_length(sweep, *loader);
  if (length.steps_per_epoch < 1 || length.batches < sweep.accumulate)
    throw TypeError(fmt::format("an epoch has {} batches: that makes no whole update of {}",
                                length.batches, sweep.accumulate));
  const ModelShape shape = model_shape(sweep, data.facts);
  Trainer trainer = make_trainer(sweep, shape, options.steps, options.plan_cache);
  const Doing doing("trying learning rates for " + model_title(config));
  load_first_weights(sweep, shape, trainer.session());
  RateSweep result;
  result.points = measure(trainer, *loader, options);
  if (result.points.size() < 3)
    throw ValueError("the loss is not finite from the first steps on: begin lower with --first");
  result.smoothed = smooth(result.points);
  result.suggestion = steepest(result.smoothed);
  return result;
}

}  // namespace pantala::run
