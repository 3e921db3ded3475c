#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "base/text.h"
#include "pantala/error.h"
#include "pantala/generate.h"

namespace pantala {

namespace {

// The index of the first largest logit.
std::size_t most_likely(std::span<const float> logits) {
  std::size_t best = logits.size();
  for (std::size_t k = 0; k < logits.size(); ++k) {
    if (std::isnan(logits[k]) || logits[k] == INFINITY)
      throw ValueError(fmt::format("sampler: the logit of token {} is {}", k,
                                   exact(static_cast<double>(logits[k]))));
    if (logits[k] != -INFINITY && (best == logits.size() || logits[k] > logits[best])) best = k;
  }
  if (best == logits.size())
    throw ValueError(
        fmt::format("sampler: none of {} tokens has a logit above -inf", logits.size()));
  return best;
}

struct Candidate {
  std::int64_t token;
  float logit;
  double weight;  // its probability times a factor that all share
};
bool less_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.token > b.token;
}

double total(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& c : candidates) sum += c.weight;
  return sum;
}

// The `count` most likely, the most likely one first.
std::vector<Candidate> best(std::vector<Candidate> candidates, std::size_t count) {
  const auto more_likely = [](const Candidate& a, const Candidate& b) { return less_likely(b, a); };
  if (count < candidates.size()) {
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(candidates.begin(), end, candidates.end(), more_likely);
    candidates.erase(end, candidates.end());
  }
  std::sort(candidates.begin(), candidates.end(), more_likely);
  return candidates;
}

// The fewest most likely whose weights reach this sum; at least one. Taken from a heap: they are
// few as a rule, and sorting a whole vocabulary would take longer than to draw from it.
std::vector<Candidate> nucleus(std::vector<Candidate> candidates, double sum) {
  std::make_heap(candidates.begin(), candidates.end(), less_likely);
  std::vector<Candidate> taken;
  double reached = 0;
  while (!candidates.empty() && (taken.empty() || reached < sum)) {
    std::pop_heap(candidates.begin(), candidates.end(), less_likely);
    taken.push_back(candidates.back());
    candidates.pop_back();
    reached += taken.back().weight;
  }
  return taken;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  if (!(std::isfinite(options.temperature) && options.temperature >= 0))
    throw TypeError(fmt::format("sampler: temperature must be finite and not negative, got {}",
                                exact(options.temperature)));
  if (options.top_k < 0)
    throw TypeError(fmt::format("sampler: top_k must not be negative, got {}", options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw TypeError(
        fmt::format("sampler: top_p must be above 0 and at most 1, got {}", exact(options.top_p)));
}

void Sampler::restart(std::uint64_t seed) {
  options_.seed = seed;
  picks_ = 0;
}

double Sampler::draw() {
  // A stream of its own, which no op of a graph has: those are counted from 0.
  constexpr std::uint32_t kStream = 0xffffffff;
  const std::uint64_t high = random_bits(options_.seed, picks_, kStream, 0),
                      low = random_bits(options_.seed, picks_, kStream, 1);
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

std::int64_t Sampler::pick(std::span<const float> logits) {
  const std::size_t first = most_likely(logits);
  const double number = draw();
  ++picks_;
  if (options_.temperature == 0 || options_.top_k == 1) return static_cast<std::int64_t>(first);
  std::vector<Candidate> candidates;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    // The difference comes first, so that no quotient of a small temperature overflows.
    const double weight =
        std::exp((static_cast<double>(logits[k]) - static_cast<double>(logits[first])) /
                 options_.temperature);
    if (weight > 0) candidates.push_back({static_cast<std::int64_t>(k), logits[k], weight});
  }
  if (options_.top_k > 0)
    candidates = best(std::move(candidates), static_cast<std::size_t>(options_.top_k));
  if (options_.top_p < 1) {
    const double sum = options_.top_p * total(candidates);
    candidates = nucleus(std::move(candidates), sum);
  }
  const double target = number * total(candidates);
  double passed = 0;
  for (const Candidate& candidate : candidates) {
    passed += candidate.weight;
    if (target < passed) return candidate.token;
  }
  return candidates.back().token;  // rounding alone leads here
}

}  // namespace pantala
