#include "distributed/prediction.h"

#include <algorithm>
#include <bit>

namespace pantala::distributed {

namespace {

double sum_time(double bytes, const Network& network, std::int64_t ranks) {
  const auto rounds = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
  const double moved = bytes * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return 2 * rounds * network.latency + 2 * moved / network.bandwidth + moved / network.adding;
}

}  // namespace

StepPrediction predict(const RankStep& step, const Network& network, std::int64_t ranks,
                       bool overlap) {
  StepPrediction prediction{.ranks = ranks};
  double end = 0;  // of the bucket before
  for (const RankStep::Bucket& bucket : step.buckets) {
    const double time = ranks > 1 ? sum_time(bucket.bytes, network, ranks) : 0;
    prediction.communication += time;
    end = std::max(end, overlap ? bucket.ready : step.backward) + time;
  }
  prediction.exposed = std::max(0.0, end - step.backward);
  prediction.step = step.backward + prediction.exposed + step.update;
  prediction.efficiency = (step.backward + step.update) / prediction.step;
  return prediction;
}

}  // namespace pantala::distributed
