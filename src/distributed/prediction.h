// What a step takes on many ranks, by a simple model: each message takes `latency` and its bytes by
// `bandwidth`, in both directions at once; a sum over ranks goes in pairs (sum.h), bucket by
// bucket, each as soon as its gradients are there and the bucket before it has gone.
#pragma once

#include <cstdint>
#include <vector>

namespace pantala::distributed {

struct Network {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes a second
  double adding = 0;     // bytes a second that a rank adds
};

// On one rank, in seconds.
struct RankStep {
  double backward = 0;  // forward and backward pass
  double update = 0;
  struct Bucket {
    double ready = 0;  // since the beginning
    double bytes = 0;
  };
  std::vector<Bucket> buckets;
};

struct StepPrediction {
  std::int64_t ranks = 1;
  double communication = 0;  // of all buckets
  double exposed = 0;        // of it, after the backward pass
  double step = 0;
  double efficiency = 1;  // the step of one rank by this one
};

StepPrediction predict(const RankStep& step, const Network& network, std::int64_t ranks,
                       bool overlap = true);

}  // namespace pantala::distributed
