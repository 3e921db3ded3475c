// Looks for a learning rate: trains while the rate grows exponentially, and judges by the loss
// where it falls fastest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "run/core/config.h"

namespace pantala::run {

struct RateSweepOptions {
  double from = 1e-7, to = 10;
  std::int64_t steps = 200;
  std::filesystem::path plan_cache = {};  // a folder for compiled plans; "": they are not kept
};
struct RateSweepPoint {
  double lr = 0;
  double loss = 0;
};
struct RateSweep {
  std::vector<RateSweepPoint> points;    // as measured
  std::vector<RateSweepPoint> smoothed;  // the same rates
  double suggestion = 0;
};

// Stops early where the loss has become several times the smallest one, or is not finite.
// TypeError for a range that is none; ValueError if the loss never falls.
RateSweep sweep_learning_rates(const RunConfig& config, const RateSweepOptions& options);

// --- the judgement

// Each loss becomes a mean of its neighbourhood on the axis of log(lr), weighted by a bell.
std::vector<RateSweepPoint> smooth(const std::vector<RateSweepPoint>& points);
// The rate where the slope of the loss over log(lr), fitted to a neighbourhood, is most negative,
// among the rates below that of the smallest loss.
double steepest(const std::vector<RateSweepPoint>& smoothed);

}  // namespace pantala::run
