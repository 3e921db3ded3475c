#include "train/buckets.h"

#include <algorithm>
#include <numeric>

namespace pantala::train {

std::vector<Bucket> buckets_of(std::span<const std::size_t> elements, std::size_t cut) {
  constexpr std::size_t kLeast = std::size_t{1} << 14, kMost = std::size_t{1} << 20, kParts = 8;
  const auto is_alone = [&](std::size_t k) { return elements[k] >= kAlone; };
  const std::size_t all = std::accumulate(elements.begin(), elements.end(), std::size_t{0});
  const std::size_t enough = std::clamp(all / kParts, kLeast, kMost);
  std::vector<Bucket> buckets;
  Bucket bucket;
  for (std::size_t k = 0; k < elements.size(); ++k) {
    bucket.last += elements[k];
    bucket.last_sum = k + 1;
    const bool is_end = k + 1 == elements.size() || k + 1 == cut || is_alone(k) || is_alone(k + 1);
    if (bucket.last - bucket.first < enough && !is_end) continue;
    buckets.push_back(bucket);
    bucket = {bucket.last, bucket.last, k + 1, k + 1};
  }
  return buckets;
}

std::int64_t last_launch(const plan::Plan& plan, const std::string& name) {
  const auto is_meant = [&](std::uint32_t index) {
    const plan::Buffer& buffer = plan.buffers[index];
    return buffer.storage == plan::Storage::store && plan.regions[buffer.region].name == name;
  };
  std::int64_t last = 0;
  for (std::size_t k = 0; k < plan.launches.size(); ++k)
    for (const plan::ArgumentSet& set : plan.launches[k].sets)
      if (std::ranges::any_of(set.buffers, is_meant)) last = static_cast<std::int64_t>(k) + 1;
  return last;
}

}  // namespace pantala::train
