#include "device/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::device {

Profile::Profile(const plan::Plan& plan) : plan_(plan.name) {
  for (const plan::Unit& unit : plan.units) kernels_.push_back({.kernel = unit.entry});
  for (const plan::Launch& launch : plan.launches) {
    launches_.push_back({launch.name, launch.unit, launch.items()});
    ++kernels_[launch.unit].launches;
  }
}

void Profile::check(const RunTimes& times) const {
  if (times.launches.size() != launches_.size())
    throw TypeError(fmt::format("plan '{}' has {} launches, these are the times of {}", plan_,
                                launches_.size(), times.launches.size()));
}

void Profile::add(const RunTimes& times) {
  check(times);
  for (std::size_t k = 0; k < launches_.size(); ++k)
    kernels_[launches_[k].kernel].nanoseconds += times.launches[k].longest;
  nanoseconds_ += times.duration;
  ++runs_;
}

std::vector<KernelTime> Profile::kernels() const {
  std::vector<KernelTime> sorted;
  std::ranges::copy_if(kernels_, std::back_inserter(sorted),
                       [](const KernelTime& k) { return k.launches > 0; });
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &KernelTime::nanoseconds);
  return sorted;
}

std::string Profile::table() const {
  const double runs = static_cast<double>(std::max<std::int64_t>(runs_, 1));
  const double whole = static_cast<double>(std::max<std::int64_t>(nanoseconds_, 1));
  std::string text =
      fmt::format("plan {}: {:.1f} us per run, {} runs\n share  us per run  launches  kernel\n",
                  plan_, static_cast<double>(nanoseconds_) / runs / 1e3, runs_);
  for (const KernelTime& k : kernels()) {
    const auto time = static_cast<double>(k.nanoseconds);
    text += fmt::format("{:5.1f}%  {:10.1f}  {:8}  {}\n", 100 * time / whole, time / runs / 1e3,
                        k.launches, k.kernel);
  }
  return text;
}

void Profile::record(const RunTimes& times, trace::Recorder& recorder, trace::Track track) const {
  check(times);
  recorder.add({.name = plan_,
                .category = "step",
                .begin = times.begin,
                .duration = std::chrono::nanoseconds(times.duration),
                .track = track});
  for (std::size_t k = 0; k < launches_.size(); ++k) {
    const LaunchTime& time = times.launches[k];
    recorder.add({.name = launches_[k].name,
                  .category = "kernel",
                  .begin = times.begin + std::chrono::nanoseconds(time.begin),
                  .duration = std::chrono::nanoseconds(time.duration),
                  .track = track,
                  .arguments = {{"kernel", kernels_[launches_[k].kernel].kernel},
                                {"items", launches_[k].items},
                                {"longest_us", static_cast<double>(time.longest) / 1e3}}});
  }
}

}  // namespace pantala::device
