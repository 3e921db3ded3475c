// What `pantala scale` says of a model: a step on 1, 2, 4, ... ranks by the compiler's estimate and
// the model of distributed/prediction.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "distributed/prediction.h"
#include "tools/inspect/subject.h"

namespace pantala::tools {

// "1..1024" or "4": powers of two from the first to the last, and the last. TypeError otherwise.
std::vector<std::int64_t> rank_counts(const std::string& text);
// "10G" is 10^10 bits a second. TypeError otherwise.
distributed::Network network_of(const std::string& speed, double latency_us);

// A rank of a model: its step by the estimate, or as long as was measured, and what it keeps.
struct ScaledModel {
  distributed::RankStep step;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  std::int64_t other_bytes = 0;  // temporaries, running statistics
  // With and without optimizer states that are shared out.
  std::int64_t memory(std::int64_t ranks, bool shard_optimizer) const;
};
ScaledModel scaled_model(InspectSubject subject, std::optional<double> measured_ms);

}  // namespace pantala::tools
