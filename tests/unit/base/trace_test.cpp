// Traces: what is recorded, from which thread, and that the text is what Chrome's format asks for.
#include "base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/file.h"
#include "support/allocations.h"
#include "support/temporary.h"

namespace pantala::trace {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::vector<Json> complete_events(const Recorder& recorder) {
  std::vector<Json> events;
  const Json document = Json::parse(recorder.json());
  for (const Json& event : document.at("traceEvents"))
    if (event.at("ph") == "X") events.push_back(event);
  return events;
}

TEST(Trace, a_span_is_a_complete_event_with_its_arguments) {
  Recorder recorder;
  {
    Span span(&recorder, "saturate", "compile");
    span.note("nodes", 17);
    span.note("ratio", 0.25);
    span.note("device", "cpu");
    span.note("stopped", true);
    std::this_thread::sleep_for(microseconds(300));
  }
  const auto events = complete_events(recorder);
  ASSERT_EQ(events.size(), 1U);
  const Json& event = events[0];
  EXPECT_EQ(event.at("name"), "saturate");
  EXPECT_EQ(event.at("cat"), "compile");
  EXPECT_GE(event.at("ts").get<double>(), 0);
  EXPECT_GE(event.at("dur").get<double>(), 300);
  EXPECT_EQ(event.at("args"),
            Json({{"nodes", 17}, {"ratio", 0.25}, {"device", "cpu"}, {"stopped", true}}));
}

TEST(Trace, nested_spans_lie_within_each_other) {
  Recorder recorder;
  {
    const Span outer(&recorder, "outer", "test");
    const Span inner(&recorder, "inner", "test");
  }
  const auto events = complete_events(recorder);
  ASSERT_EQ(events.size(), 2U);
  const Json &inner = events[0], &outer = events[1];
  const auto end = [](const Json& e) {
    return e.at("ts").get<double>() + e.at("dur").get<double>();
  };
  EXPECT_LE(outer.at("ts").get<double>(), inner.at("ts").get<double>());
  EXPECT_GE(end(outer), end(inner) - 1e-9);
}

TEST(Trace, without_a_recorder_nothing_is_allocated) {
  const auto before = tests::allocations().count;
  for (int k = 0; k < 1000; ++k) {
    Span span(nullptr, "a name that is too long for the small-string buffer", "test");
    span.note("another name that is too long for it", "and a value");
  }
  EXPECT_EQ(tests::allocations().count, before);
}

TEST(Trace, times_are_microseconds_to_the_nanosecond) {
  Recorder recorder;
  const Clock::time_point begin = Clock::now();
  const Track track = recorder.add_track("kernels");
  recorder.add({"a", "kernel", begin, nanoseconds(1), track});
  recorder.add({"b", "kernel", begin + nanoseconds(1234567), nanoseconds(2000005), track});
  EXPECT_THAT(recorder.json(), testing::HasSubstr("\"dur\":0.001"));
  EXPECT_THAT(recorder.json(), testing::HasSubstr("\"dur\":2000.005"));
  const auto events = complete_events(recorder);
  EXPECT_NEAR(events[1].at("ts").get<double>() - events[0].at("ts").get<double>(), 1234.567, 1e-6);
}

TEST(Trace, rows_have_names) {
  Recorder recorder("my program");
  recorder.this_thread();
  const Track kernels = recorder.add_track("worker 0");
  std::thread([&] { const Span span(&recorder, "load", "device"); }).join();
  recorder.add({"k", "kernel", Clock::now(), nanoseconds(1), kernels});
  std::map<std::pair<std::string, int>, std::string> names;
  const Json document = Json::parse(recorder.json());
  for (const Json& event : document.at("traceEvents"))
    if (event.at("ph") == "M")
      names[{event.at("name"), event.at("tid")}] = event.at("args").at("name");
  EXPECT_EQ((names[{"process_name", 0}]), "my program");
  EXPECT_EQ((names[{"thread_name", 0}]), "thread 1");
  EXPECT_EQ((names[{"thread_name", 1}]), "worker 0");
  EXPECT_EQ((names[{"thread_name", 2}]), "thread 2");
  const auto events = complete_events(recorder);
  EXPECT_EQ(events[0].at("tid"), 2);
  EXPECT_EQ(events[1].at("tid"), 1);
}

TEST(Trace, what_lasts_is_kept_beyond_the_limit) {
  Recorder recorder("pantala", 2);
  for (int k = 0; k < 4; ++k) recorder.add({"step", "step", Clock::now(), nanoseconds(1), {}});
  for (int k = 0; k < 4; ++k)
    recorder.add({"epoch", "epoch", Clock::now(), nanoseconds(1), {}, {}, true});
  EXPECT_EQ(recorder.size(), 4U);
  EXPECT_EQ(recorder.dropped(), 4U);
  EXPECT_EQ(complete_events(recorder)[3].at("name"), "epoch");
}

TEST(Trace, any_name_makes_valid_json) {
  Recorder recorder("\x01\"\\\n");
  const std::string names[] = {
      "quote\" back\\ line\n tab\t nul" + std::string(1, '\0'), "Grüße, 世界 🙂",
      "broken \xff\xc3 \xed\xa0\x80 \xf4\x90\x80\x80 \xe0\x80\x80 \xc0\xaf"};
  for (const std::string& name : names) {
    Span span(&recorder, name, name);
    span.note(name, name);
    span.note("inf", INFINITY);
  }
  const auto events = complete_events(recorder);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].at("name"), names[0]);
  EXPECT_EQ(events[1].at("name"), names[1]);
  EXPECT_THAT(events[2].at("name").get<std::string>(), testing::StartsWith("broken \uFFFD\uFFFD "));
  EXPECT_EQ(events[0].at("args").at("inf"), "inf");
}

TEST(Trace, what_is_beyond_the_limit_is_counted) {
  Recorder recorder("pantala", 10);
  for (int k = 0; k < 25; ++k) const Span span(&recorder, "s", "c");
  EXPECT_EQ(recorder.size(), 10U);
  EXPECT_EQ(recorder.dropped(), 15U);
  EXPECT_EQ(complete_events(recorder).size(), 10U);
  EXPECT_EQ(Json::parse(recorder.json()).at("otherData").at("dropped"), 15);
}

TEST(Trace, many_threads_may_record) {
  Recorder recorder;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int k = 0; k < 500; ++k) {
          Span span(&recorder, "work", "test");
          span.note("k", k);
          if (k == 250) (void)recorder.json();
        }
      });
  }
  EXPECT_EQ(recorder.size(), 2000U);
  std::map<int, int> by_row;
  for (const Json& event : complete_events(recorder)) ++by_row[event.at("tid")];
  EXPECT_THAT(by_row, testing::SizeIs(4));
}

TEST(Trace, is_written_like_any_text) {
  Recorder recorder;
  { const Span span(&recorder, "plan", "compile"); }
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("trace.json");
  io::write_file(path, recorder.json());
  EXPECT_EQ(Json::parse(io::read_file(path)).at("traceEvents").size(), 3U);
}

}  // namespace
}  // namespace pantala::trace
