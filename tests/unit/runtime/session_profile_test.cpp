// Where the time of a session goes: the table of kernels, and the trace of its steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/file.h"
#include "pantala/session.h"
#include "support/temporary.h"
#include "support/trace_file.h"
#include "support/trainer_case.h"

namespace pantala::tests::session_profile_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Session timed_session(int threads, int steps) {
  const zoo::Model model = zoo::mlp({.batch = 64, .inputs = 96, .hidden = {128}, .classes = 10});
  Session session =
      build_session(model.graph, model.loss, {.threads = threads, .optimizer = optim::adam(0.01)});
  session.set_input("x", random_floats(64 * 96, 1));
  session.set_input("labels", std::vector<std::int64_t>(64, 3));
  session.set_timing(true);
  for (int k = 0; k < steps; ++k) session.step();
  return session;
}

TraceFile trace_of(const Session& session) {
  const TemporaryFolder folder;
  session.write_trace(folder.path() / "trace.json");
  return TraceFile(io::read_file(folder.path() / "trace.json"));
}

TEST(SessionTrace, has_a_row_for_each_worker_whose_spans_cover_the_steps) {
  for (const int threads : {1, 2}) {
    const TraceFile trace = trace_of(timed_session(threads, 5));
    trace.expect_nesting();
    const std::vector<TraceSpan> steps = trace.named("steps", "step");
    ASSERT_EQ(steps.size(), 5u);
    for (int worker = 0; worker < threads; ++worker)
      for (const TraceSpan& step : steps)
        EXPECT_GE(trace.covered("worker " + std::to_string(worker), step.begin, step.end), 0.9)
            << "worker " << worker << " of " << threads;
  }
}

TEST(SessionTrace, waits_lie_within_the_launch_that_is_waited_for) {
  const TraceFile trace = trace_of(timed_session(2, 5));
  for (const char* row : {"worker 0", "worker 1"}) {
    const std::vector<TraceSpan>& spans = trace.row(row);
    for (std::size_t k = 0; k < spans.size(); ++k) {
      EXPECT_THAT(spans[k].category, testing::AnyOf("kernel", "wait"));
      EXPECT_EQ(spans[k].name == "wait", spans[k].category == "wait");
      // A wait after work belongs to the span of that work, which ends with it; one for launches in
      // which the worker has no part stands alone.
      if (k == 0 || spans[k].category != "wait" || spans[k - 1].category != "kernel" ||
          spans[k].begin >= spans[k - 1].end - 0.002)
        continue;
      EXPECT_NEAR(spans[k].end, spans[k - 1].end, 0.002);
    }
  }
}

TEST(SessionTrace, kernels_say_their_layers_and_ops) {
  const TraceFile trace = trace_of(timed_session(1, 1));
  std::vector<std::string> layers;
  for (const TraceSpan& span : trace.row("worker 0"))
    if (span.category == "kernel") {
      layers.push_back(span.arguments.at("layers"));
      EXPECT_FALSE(span.arguments.at("ops").get<std::string>().empty()) << span.name;
      EXPECT_EQ(span.arguments.at("items"), span.arguments.at("part"));
    }
  EXPECT_THAT(layers, Contains("fc1"));
  EXPECT_THAT(layers, Contains("fc2"));
}

TEST(SessionTrace, has_what_else_is_added_while_spans_are_recorded) {
  Session session = timed_session(1, 1);
  { const SessionSpan epoch(session, "epoch"); }
  session.set_timing(true, false);
  { const SessionSpan epoch(session, "epoch"); }
  session.step();
  const TraceFile trace = trace_of(session);
  EXPECT_EQ(trace.named("steps", "epoch").size(), 1u);
  EXPECT_EQ(trace.named("steps", "step").size(), 1u);
  EXPECT_EQ(session.profile().plans.at(0).runs, 2);
}

TEST(SessionProfile, lists_kernels_by_time_with_layers_work_and_bytes) {
  const Session session = timed_session(2, 5);
  const SessionProfile profile = session.profile();
  ASSERT_EQ(profile.plans.size(), 1u);
  EXPECT_EQ(profile.plans[0].name, "step");
  EXPECT_EQ(profile.plans[0].runs, 5);
  EXPECT_EQ(profile.kernels.size(), session.kernels().size());
  double sum = 0, longest = profile.kernels[0].milliseconds;
  for (const KernelInfo& kernel : profile.kernels) {
    EXPECT_LE(kernel.milliseconds, longest);
    longest = kernel.milliseconds;
    sum += kernel.milliseconds;
    EXPECT_FALSE(kernel.ops.empty()) << kernel.name;
    EXPECT_GT(kernel.bytes(), 0) << kernel.name;
  }
  EXPECT_LE(sum, profile.milliseconds() * 1.001);
  const Report& report = session.report();
  double flops = 0, bytes = 0;
  for (const KernelInfo& kernel : profile.kernels) flops += kernel.flops, bytes += kernel.bytes();
  EXPECT_DOUBLE_EQ(flops, report.flops);
  EXPECT_DOUBLE_EQ(bytes, report.bytes);
}

TEST(SessionProfile, shares_of_a_limit_take_the_tighter_one) {
  KernelInfo kernel;
  kernel.runs = 2;
  kernel.milliseconds = 4;
  kernel.flops = 2e6;
  kernel.read_bytes = 3e6;
  kernel.written_bytes = 1e6;
  EXPECT_DOUBLE_EQ(kernel.flops_per_second(), 1e9);
  EXPECT_DOUBLE_EQ(kernel.bytes_per_second(), 2e9);
  EXPECT_DOUBLE_EQ(SessionProfile::share_of_limit(kernel, {.flops = 4e9, .bytes = 20e9}), 0.25);
  EXPECT_DOUBLE_EQ(SessionProfile::share_of_limit(kernel, {.flops = 40e9, .bytes = 4e9}), 0.5);
  EXPECT_EQ(SessionProfile::share_of_limit(kernel, {}), 0);
  EXPECT_EQ(SessionProfile::share_of_limit({}, {.flops = 1, .bytes = 1}), 0);
}

TEST(SessionProfile, the_table_says_what_it_leaves_out) {
  const SessionProfile profile = timed_session(1, 3).profile();
  const std::string text = profile.text({.flops = 1e11, .bytes = 1e10}, 2);
  EXPECT_THAT(text, testing::StartsWith("step: 3 runs, "));
  EXPECT_THAT(text, HasSubstr("the machine's limits: 100.0 GFLOP/s, 10.0 GB/s\n"));
  EXPECT_THAT(text, HasSubstr("in " + std::to_string(profile.kernels.size() - 2) + " more\n"));
  EXPECT_THAT(profile.text(), testing::Not(HasSubstr(" more\n")));
  EXPECT_THAT(profile.text(), testing::Not(HasSubstr("limits")));
  const auto json = nlohmann::json::parse(profile.json());
  EXPECT_EQ(json.at("kernels").size(), profile.kernels.size());
  EXPECT_EQ(json.at("plans").at(0).at("runs"), 3);
}

TEST(SessionProfile, attention_of_a_language_model_has_its_layer) {
  const zoo::LlamaConfig config{.vocabulary = 61,
                                .hidden = 24,
                                .intermediate = 40,
                                .layers = 2,
                                .heads = 6,
                                .kv_heads = 2,
                                .max_positions = 64};
  const zoo::Model model = zoo::llama(config, {.batch = 1, .sequence = 8});
  std::vector<std::string> layers;
  const Report report = compile(model.graph, {.device = "kir"}).report;
  for (const Report::Launch& launch : report.launches)
    if (launch.ops == "attention") layers.push_back(launch.layers);
  EXPECT_THAT(layers, testing::ElementsAre("model.layers.0.self_attn", "model.layers.1.self_attn"));
}

TEST(SessionProfile, a_plan_from_a_file_keeps_what_is_known_of_its_launches) {
  const TemporaryFolder folder;
  const zoo::Model model = small_mlp(4);
  const auto open = [&] {
    return build_session_cached(model.graph, model.loss, {.optimizer = optim::sgd(0.1)},
                                folder.path() / "plan");
  };
  const Session made = open(), loaded = open();
  ASSERT_TRUE(loaded.report().cached());
  const std::vector<KernelInfo> a = made.kernels(), b = loaded.kernels();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].layers, b[k].layers);
    EXPECT_EQ(a[k].ops, b[k].ops);
    EXPECT_EQ(a[k].flops, b[k].flops);
    EXPECT_EQ(a[k].read_bytes, b[k].read_bytes);
    EXPECT_EQ(a[k].written_bytes, b[k].written_bytes);
  }
}

}  // namespace
}  // namespace pantala::tests::session_profile_test
