#include "device/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::device {

namespace {

// Nanoseconds: less is the way from one launch to the next.
constexpr std::int64_t kLeastWait = 500;

}  // namespace

Profile::Profile(const plan::Plan& plan, std::span<const Report::Launch> described)
    : plan_(plan.name) {
  for (const plan::Unit& unit : plan.units) kernels_.push_back({.kernel = unit.entry});
  const bool is_described = described.size() == plan.launches.size();
  for (std::size_t k = 0; k < plan.launches.size(); ++k) {
    const plan::Launch& launch = plan.launches[k];
    launches_.push_back({launch.name, launch.unit, launch.items()});
    if (is_described)
      launches_.back().layers = described[k].layers, launches_.back().ops = described[k].ops;
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

void Profile::record(const RunTimes& times, trace::Recorder& recorder, RunTracks& tracks) const {
  check(times);
  recorder.add({.name = plan_,
                .category = "step",
                .begin = times.begin,
                .duration = std::chrono::nanoseconds(times.duration),
                .track = tracks.runs});
  for (std::size_t worker = 0; worker < times.workers(); ++worker) {
    if (worker == tracks.workers.size())
      tracks.workers.push_back(recorder.add_track(fmt::format("worker {}", worker)));
    record_worker(times, worker, recorder, tracks.workers[worker]);
  }
}

void Profile::record_worker(const RunTimes& times, std::size_t worker, trace::Recorder& recorder,
                            trace::Track track) const {
  const std::span<const ShareTime> shares = times.shares_of(worker);
  const auto add = [&](std::string name, std::string category, std::int64_t begin, std::int64_t end,
                       trace::Arguments arguments = {}) {
    recorder.add({.name = std::move(name),
                  .category = std::move(category),
                  .begin = times.begin + std::chrono::nanoseconds(begin),
                  .duration = std::chrono::nanoseconds(end - begin),
                  .track = track,
                  .arguments = std::move(arguments)});
  };
  const auto add_wait = [&](std::int64_t begin, std::int64_t end) {
    if (end > begin) add("wait", "wait", begin, end);
  };
  std::int64_t idle_since = 0;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (shares[k].items == 0) continue;
    const std::int64_t next = k + 1 < shares.size() ? shares[k + 1].begin : times.duration;
    const Launch& launch = launches_[k];
    add_wait(idle_since, shares[k].begin);
    add(launch.name, "kernel", shares[k].begin, next,
        {{"kernel", kernels_[launch.kernel].kernel},
         {"layers", launch.layers},
         {"ops", launch.ops},
         {"items", launch.items},
         {"part", shares[k].items}});
    if (next - shares[k].end >= kLeastWait) add_wait(shares[k].end, next);
    idle_since = next;
  }
  add_wait(idle_since, times.duration);
}

}  // namespace pantala::device
