#include "tools/scale_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pantala/error.h"
#include "plan/step_names.h"
#include "train/buckets.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;
// What a core adds of floats that lie in memory, roughly: the three streams of an addition.
constexpr double kAddingBytes = 4e9;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

const plan::CompiledStep& step_of(const std::vector<plan::CompiledStep>& steps,
                                  std::string_view role) {
  return *std::ranges::find(steps, role, &plan::CompiledStep::role);
}

// Seconds from the beginning of a step to the end of each launch.
std::vector<double> ends_of(const plan::CompiledStep& step) {
  std::vector<double> ends = {0};
  for (const Report::Launch& launch : step.report.launches)
    ends.push_back(ends.back() + launch.predicted_us * 1e-6);
  return ends;
}

}  // namespace

std::vector<std::int64_t> rank_counts(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = whole_number(std::string_view(text).substr(0, dots)),
             last = dots == std::string::npos
                        ? first
                        : whole_number(std::string_view(text).substr(dots + 2));
  if (!first || !last || *first < 1 || *last < *first || *last > kMostRanks)
    throw TypeError(
        fmt::format("--ranks must be a number or a range such as 1..1024, up to {}, got '{}'",
                    kMostRanks, text));
  std::vector<std::int64_t> counts;
  for (std::int64_t ranks = *first; ranks < *last; ranks *= 2) counts.push_back(ranks);
  counts.push_back(*last);
  return counts;
}

distributed::Network network_of(const std::string& speed, double latency_us) {
  double gigabits = 0;
  const char* const end = speed.data() + speed.size();
  const auto [rest, error] = std::from_chars(speed.data(), end, gigabits);
  if (error != std::errc() || std::string_view(rest, end) != "G" || !(gigabits > 0))
    throw TypeError(
        fmt::format("--network must be bits a second such as 1G, 10G or 200G, got '{}'", speed));
  return {.latency = latency_us * 1e-6, .bandwidth = gigabits * 1e9 / 8, .adding = kAddingBytes};
}

std::int64_t ScaledModel::memory(std::int64_t ranks, bool shard_optimizer) const {
  const std::int64_t states =
      shard_optimizer ? (optimizer_bytes + ranks - 1) / ranks : optimizer_bytes;
  // The sums lie beside the gradients, and half of them comes from others.
  const std::int64_t sums = ranks > 1 ? gradient_bytes + gradient_bytes / 2 : gradient_bytes;
  return parameter_bytes + gradient_bytes + sums + states + other_bytes;
}

ScaledModel scaled_model(InspectSubject subject, std::optional<double> measured_ms) {
  Inspected inspected = read_subject(subject);
  if (!inspected.loss.valid())
    throw TypeError("scale: nothing is trained: a graph in text form needs --loss");
  inspected.options.split_update = true;
  inspected.options.accumulation_steps = 1;
  inspected.options.guard_micro_batches = false;
  const std::vector<plan::CompiledStep> steps = planned_steps(inspected);
  const plan::CompiledStep& backward = step_of(steps, plan::kAccumulate);
  const std::vector<double> ends = ends_of(backward);
  ScaledModel model;
  model.step.backward = ends.back();
  model.step.update = ends_of(step_of(steps, plan::kApply)).back();
  struct Gradient {
    std::int64_t ready;
    std::size_t elements;
  };
  std::vector<Gradient> gradients;
  for (const plan::CompiledStep& step : steps)
    model.other_bytes =
        std::max(model.other_bytes, step.plan.arena_bytes + step.plan.scratch_bytes);
  for (const plan::CompiledStep& step : steps)
    for (const plan::CompiledLeaf& leaf : step.leaves) {
      const std::int64_t bytes = leaf.type.shape.numel() * dtype_bytes(leaf.type.dtype);
      const bool is_backward = &step == &backward;
      if (leaf.kind == LeafKind::parameter && is_backward) model.parameter_bytes += bytes;
      if (leaf.kind != LeafKind::state) continue;
      if (leaf.name.starts_with("optim.") && !is_backward) model.optimizer_bytes += bytes;
      if (!leaf.name.starts_with("accum.") || !is_backward) continue;
      model.gradient_bytes += bytes;
      gradients.push_back({train::last_launch(backward.plan, leaf.name),
                           static_cast<std::size_t>(leaf.type.shape.numel())});
    }
  std::ranges::stable_sort(gradients, {}, &Gradient::ready);
  std::vector<std::size_t> elements;
  for (const Gradient& gradient : gradients) elements.push_back(gradient.elements);
  for (const train::Bucket& bucket : train::buckets_of(elements))
    model.step.buckets.push_back(
        {ends[static_cast<std::size_t>(gradients[bucket.last_sum - 1].ready)],
         static_cast<double>((bucket.last - bucket.first) * sizeof(float))});
  if (!measured_ms) return model;
  const double factor = *measured_ms * 1e-3 / (model.step.backward + model.step.update);
  model.step.backward *= factor;
  model.step.update *= factor;
  for (auto& bucket : model.step.buckets) bucket.ready *= factor;
  return model;
}

}  // namespace pantala::tools
