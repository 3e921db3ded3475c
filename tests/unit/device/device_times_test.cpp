// The times of launches, and what is made of them: a table of kernels and spans of a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "device/profile.h"
#include "pantala/error.h"
#include "support/allocations.h"
#include "support/trace_file.h"
#include "unit/plan/plan_case.h"

namespace pantala::device::device_times_test {
namespace {

using plan::Plan;
using plan::slot_of;

const std::vector<std::int64_t> kUniforms{slot_of(0.125F), slot_of(1e9)};

RunTimes timed_run(Device& device, OnDevice& on) {
  RunTimes times;
  device.run(on.id(), {on.arena, on.regions, kUniforms, &times});
  return times;
}

TEST(RunTimes, every_launch_has_its_times) {
  for (const char* name : {"cpu", "kir"})
    for (const int workers : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", name, workers));
      const Plan plan = plan::small_step(4096);
      const auto device = make_device(name, {.workers = workers});
      OnDevice on(*device, plan);
      const auto before = std::chrono::steady_clock::now();
      const RunTimes times = timed_run(*device, on);
      const auto after = std::chrono::steady_clock::now();
      EXPECT_GE(times.begin, before);
      EXPECT_LE(times.begin + std::chrono::nanoseconds(times.duration), after);
      ASSERT_EQ(times.launches.size(), plan.launches.size());
      std::int64_t end = 0;
      for (const LaunchTime& t : times.launches) {
        EXPECT_GE(t.begin, end) << "worker 0 does one after the other";
        EXPECT_GE(t.duration, 0);
        EXPECT_GE(t.longest, t.duration);
        EXPECT_LE(t.begin + t.duration, times.duration);
        end = t.begin + t.duration;
      }
      EXPECT_GT(times.launches.back().duration, 0);
    }
}

TEST(RunTimes, timed_runs_compute_the_same_and_allocate_nothing_after_the_first) {
  const Plan plan = plan::small_step();
  const auto device = make_device("cpu", {.workers = 3});
  OnDevice plain(*device, plan), timed(*device, plan);
  plain.fill(1);
  timed.fill(1);
  RunTimes times;
  Profile profile(plan);
  const RunArguments arguments{timed.arena, timed.regions, kUniforms, &times};
  device->run(timed.id(), arguments);
  plain.run(kUniforms);
  const auto before = tests::allocations().count;
  for (int k = 0; k < 50; ++k) {
    device->run(timed.id(), arguments);
    profile.add(times);
  }
  EXPECT_EQ(tests::allocations().count, before);
  for (int k = 0; k < 50; ++k) plain.run(kUniforms);
  EXPECT_EQ(timed.contents(), plain.contents());
}

TEST(RunTimes, one_set_of_times_serves_several_plans) {
  const auto device = make_device("cpu", {.workers = 2});
  Plan half = plan::small_step();
  half.launches.resize(3);
  OnDevice all(*device, plan::small_step()), some(*device, half);
  RunTimes times;
  device->run(all.id(), {all.arena, all.regions, kUniforms, &times});
  EXPECT_EQ(times.launches.size(), 7U);
  device->run(some.id(), {some.arena, some.regions, kUniforms, &times});
  EXPECT_EQ(times.launches.size(), 3U);
}

TEST(Profile, sums_the_launches_of_a_kernel) {
  const Plan plan = plan::small_step();
  Profile profile(plan);
  RunTimes times;
  times.duration = 2000;
  for (std::int64_t k = 0; k < 7; ++k) times.launches.push_back({k * 200, 50, 100 + k});
  profile.add(times);
  profile.add(times);
  // update a bias b c sums loss: axpy square axpy halve square tile_sums total
  EXPECT_THAT(
      profile.kernels(),
      testing::ElementsAre(KernelTime{"square", 2, 2 * (101 + 104)},
                           KernelTime{"axpy", 2, 2 * (100 + 102)}, KernelTime{"total", 1, 2 * 106},
                           KernelTime{"tile_sums", 1, 2 * 105}, KernelTime{"halve", 1, 2 * 103}));
  EXPECT_EQ(profile.runs(), 2);
  EXPECT_THAT(profile.table(), testing::StartsWith("plan small_step: 2.0 us per run, 2 runs\n"
                                                   " share  us per run  launches  kernel\n"
                                                   " 10.2%         0.2         2  square\n"));
  times.launches.pop_back();
  EXPECT_THROW(profile.add(times), TypeError);
  trace::Recorder recorder;
  RunTracks tracks;
  EXPECT_THROW(profile.record(times, recorder, tracks), TypeError);
}

TEST(RunTimes, every_worker_has_its_shares_one_after_the_other) {
  for (const char* name : {"cpu", "kir"})
    for (const int workers : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", name, workers));
      const Plan plan = plan::small_step(4096);
      const auto device = make_device(name, {.workers = workers});
      OnDevice on(*device, plan);
      const RunTimes times = timed_run(*device, on);
      ASSERT_EQ(times.workers(), name == std::string("cpu") ? workers : 1);
      std::vector<std::int64_t> items(plan.launches.size());
      for (std::size_t worker = 0; worker < times.workers(); ++worker) {
        std::int64_t end = 0;
        for (std::size_t k = 0; k < plan.launches.size(); ++k) {
          const ShareTime& share = times.shares_of(worker)[k];
          EXPECT_GE(share.begin, end);
          EXPECT_GE(share.end, share.begin);
          EXPECT_LE(share.end - share.begin, times.launches[k].longest);
          end = share.end;
          items[k] += share.items;
        }
        EXPECT_LE(end, times.duration);
      }
      for (std::size_t k = 0; k < plan.launches.size(); ++k)
        EXPECT_EQ(items[k], plan.launches[k].items());
    }
}

// Two workers: the first waits for the second in launch 0 and does launch 1 alone.
TEST(Profile, becomes_spans_to_the_end_of_a_launch_with_waits_in_them) {
  Plan plan = plan::small_step();
  plan.launches.resize(2);
  RunTimes times{
      .begin = trace::Clock::now(),
      .duration = 30000,
      .launches = {{1000, 4000, 9000}, {11000, 15000, 15000}},
      .shares = {{1000, 5000, 3}, {11000, 26000, 2}, {1000, 10000, 4}, {11000, 11000, 0}}};
  trace::Recorder recorder;
  RunTracks tracks{recorder.add_track("steps")};
  Profile(plan).record(times, recorder, tracks);
  const tests::TraceFile trace(recorder.json());
  trace.expect_nesting();
  EXPECT_THAT(trace.rows(), testing::ElementsAre("steps", "worker 0", "worker 1"));
  const auto lines = [&](const char* row) {
    const double origin = trace.row("steps")[0].begin;
    std::vector<std::string> all;
    for (const tests::TraceSpan& span : trace.row(row))
      all.push_back(
          fmt::format("{} {:.0f}-{:.0f}", span.name, span.begin - origin, span.end - origin));
    return all;
  };
  const std::string first = plan.launches[0].name, second = plan.launches[1].name;
  EXPECT_THAT(lines("steps"), testing::ElementsAre("small_step 0-30"));
  EXPECT_THAT(lines("worker 0"), testing::ElementsAre("wait 0-1", first + " 1-11", "wait 5-11",
                                                      second + " 11-30", "wait 26-30"));
  EXPECT_THAT(lines("worker 1"),
              testing::ElementsAre("wait 0-1", first + " 1-11", "wait 10-11", "wait 11-30"));
  EXPECT_EQ(trace.row("worker 1")[1].arguments.at("part"), 4);
}

TEST(Profile, becomes_spans_of_a_trace) {
  const Plan plan = plan::small_step();
  const auto device = make_device("cpu", {.workers = 2});
  OnDevice on(*device, plan);
  trace::Recorder recorder;
  RunTracks tracks{recorder.add_track("cpu")};
  Profile(plan).record(timed_run(*device, on), recorder, tracks);
  EXPECT_EQ(tracks.workers.size(), 2u);
  std::vector<nlohmann::json> spans;  // of the run, and of the launches on worker 0
  const nlohmann::json document = nlohmann::json::parse(recorder.json());
  for (const auto& event : document.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("cat") != "wait" &&
        event.at("tid") <= tracks.workers[0].number)
      spans.push_back(event);
  ASSERT_EQ(spans.size(), 1 + plan.launches.size());
  EXPECT_EQ(spans[0].at("cat"), "step");
  EXPECT_EQ(spans[0].at("name"), "small_step");
  for (std::size_t k = 0; k < plan.launches.size(); ++k) {
    EXPECT_EQ(spans[k + 1].at("name"), plan.launches[k].name);
    EXPECT_EQ(spans[k + 1].at("cat"), "kernel");
    EXPECT_EQ(spans[k + 1].at("args").at("items"), plan.launches[k].items());
    EXPECT_EQ(spans[k + 1].at("args").at("kernel"), plan.units[plan.launches[k].unit].entry);
    EXPECT_GE(spans[k + 1].at("ts").get<double>(), spans[0].at("ts").get<double>());
  }
}

}  // namespace
}  // namespace pantala::device::device_times_test
