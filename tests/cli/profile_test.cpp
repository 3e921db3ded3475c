// Profiles of one's own runs and models: train --profile and --trace, devices --probe, inspect
// --profile, and what inspect makes of ONNX files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "support/trace_file.h"

namespace pantala::tests::profile_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

using ProfiledRun = TrainingTest;

TEST_F(ProfiledRun, has_the_bits_and_the_logs_of_any_other) {
  const Outcome plain = run_pantala(train("plain"));
  const Outcome timed =
      run_pantala(train("timed", {"--profile", "--trace", file("trace.json"), "--json"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_EQ(bytes("plain/model.safetensors"), bytes("timed/model.safetensors"));
  EXPECT_EQ(bytes("plain/config.toml").size(), bytes("timed/config.toml").size());
  const auto losses = [&](const std::string& run) {
    std::vector<json> rows;
    std::istringstream lines(bytes(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
    for (json& row : rows)  // what a clock says
      for (const char* key : {"items_per_second", "seconds", "wait_seconds", "time"})
        row.erase(key);
    return rows;
  };
  ASSERT_EQ(losses("plain").size(), losses("timed").size());
  for (std::size_t k = 0; k < losses("plain").size(); ++k) {
    const json a = losses("plain")[k], b = losses("timed")[k];
    for (const auto& [key, value] : a.items()) EXPECT_TRUE(b.contains(key)) << key;
    for (const char* key : {"loss", "lr", "accuracy", "validation_loss"})
      EXPECT_EQ(a.value(key, 0.0), b.value(key, 0.0)) << key;
  }
  EXPECT_FALSE(json::parse(bytes("timed/result.json")).contains("profile"));
}

TEST_F(ProfiledRun, the_table_has_the_layers_of_the_model) {
  const Outcome outcome = run_pantala(train("run", {"--profile", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json profile = json::parse(outcome.out).at("profile");
  EXPECT_GT(profile.at("limits").at("flops"), 0);
  EXPECT_GT(profile.at("limits").at("bytes"), 0);
  std::vector<std::string> plans, layers;
  for (const json& plan : profile.at("plans")) plans.push_back(plan.at("name"));
  EXPECT_THAT(plans, Contains("step"));
  double last = 1;
  for (const json& kernel : profile.at("kernels")) {
    layers.push_back(kernel.at("layers"));
    EXPECT_LE(kernel.at("share"), last);
    last = kernel.at("share");
    EXPECT_FALSE(kernel.at("ops").get<std::string>().empty());
    EXPECT_GE(kernel.at("share_of_limit"), 0);
  }
  EXPECT_THAT(layers, Contains("fc1"));
  const Outcome text = run_pantala(train("text", {"--profile"}));
  EXPECT_THAT(text.out, HasSubstr("GFLOP/s"));
  EXPECT_THAT(text.out, HasSubstr("fc1"));
}

TEST_F(ProfiledRun, the_trace_has_epochs_that_hold_their_steps) {
  const Outcome outcome = run_pantala(train("run", {"--trace", file("trace.json")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("GFLOP/s")));
  const TraceFile trace(bytes("trace.json"));
  trace.expect_nesting();
  const std::vector<TraceSpan> epochs = trace.named("steps", "epoch");
  ASSERT_EQ(epochs.size(), 4u);
  EXPECT_EQ(trace.named("steps", "validation").size(), 4u);
  std::size_t within = 0;
  const std::vector<TraceSpan> steps = trace.named("steps", "step");
  EXPECT_GE(steps.size(), 32u);
  for (const TraceSpan& step : steps)
    for (const TraceSpan& epoch : epochs)
      within += step.begin >= epoch.begin && step.end <= epoch.end;
  EXPECT_EQ(within, steps.size());
}

TEST_F(ProfiledRun, that_diverges_leaves_its_trace) {
  std::vector<std::string> words = train("run", {"--trace", file("trace.json")});
  *(std::find(words.begin(), words.end(), "--lr") + 1) = "1e30";
  const Outcome outcome = run_pantala(words);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_GE(TraceFile(bytes("trace.json")).named("steps", "step").size(), 1u);
}

TEST_F(ProfiledRun, a_place_that_cannot_be_is_said_before_anything_is_trained) {
  const Outcome outcome = run_pantala(train("run", {"--trace", file("nowhere/trace.json")}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: --trace " + file("nowhere/trace.json") +
                             ": there is no folder " + file("nowhere") + "\n");
  EXPECT_FALSE(exists("run"));
}

TEST_F(ProfiledRun, that_was_finished_before_says_that_there_is_nothing_to_show) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const auto told = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run_pantala(train("run", more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  const std::string begin = file("run") + ": this run is finished already",
                    end = "; --restart trains anew\n";
  EXPECT_EQ(told({}), begin + end);
  EXPECT_EQ(told({"--profile"}), begin + ", so there is no profile of it" + end);
  EXPECT_EQ(told({"--trace", file("t.json")}), begin + ", so there is no trace of it" + end);
  EXPECT_EQ(told({"--profile", "--trace", file("t.json")}),
            begin + ", so there is neither a profile nor a trace of it" + end);
  EXPECT_FALSE(exists("t.json"));
}

// The most address space that the command has taken, in KiB.
long peak_of(const std::vector<std::string>& words) {
  Running running(words);
  const std::string status = "/proc/" + std::to_string(running.id()) + "/status";
  long peak = 0;
  while (!running.ended()) {
    std::ifstream lines(status);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("VmPeak:")) peak = std::max(peak, std::stol(line.substr(7)));
  }
  return peak;
}

// The measurement takes two pieces of 128 MB.
TEST_F(ProfiledRun, whose_machine_cannot_be_measured_has_its_result_and_its_table) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more address space than any limit of this test";
#endif
  const long limit = peak_of(train("plain")) + 100'000;
  const std::string words = "--profile --progress none --threads 1 --model mlp --epochs 1";
  const std::string line = "ulimit -v " + std::to_string(limit) +
                           "; exec '" PANTALA_COMMAND "' train " + words + " --data '" + points() +
                           "' --out '" + file("run") + "' >'" + file("out.txt") + "' 2>'" +
                           file("err.txt") + "'";
  EXPECT_EQ(std::system(line.c_str()), 0) << bytes("err.txt");
  EXPECT_THAT(bytes("err.txt"),
              HasSubstr("what the machine can do at most is not known: there is no"));
  EXPECT_THAT(bytes("out.txt"), HasSubstr("accuracy"));
  EXPECT_THAT(bytes("out.txt"), HasSubstr("fc1"));
}

TEST(DevicesProbe, measures_numbers_and_bytes) {
  const Outcome outcome = run_pantala({"devices", "--probe", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json row = json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  for (const char* key : {"gflops_per_second", "gflops_per_second_of_one", "read_gb_per_second",
                          "copy_gb_per_second"})
    EXPECT_GT(row.at("probe").at(key), 0) << key;
  EXPECT_THAT(row.at("description").get<std::string>(), HasSubstr(" GFLOP/s (one worker "));
}

class InspectOnnx : public TrainingTest {
 protected:
  InspectOnnx() {
    Graph graph;
    const Tensor x = graph.input("x", {4, 3});
    graph.output("y", relu(matmul(x, graph.parameter("w", {3, 5}))));
    Weights weights;
    weights.set("w", Literal::floats({3, 5}, std::vector<double>(15, 0.5)));
    onnx::export_model(graph, weights, path());
  }
  std::string path() const { return file("model.onnx"); }
  std::string shown(const std::string& picture, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"inspect", path(), picture});
    const Outcome outcome = run_pantala(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(InspectOnnx, shows_what_a_file_compiles_to) {
  EXPECT_THAT(shown("--graph"), HasSubstr("contract"));
  EXPECT_THAT(shown("--lowered"), HasSubstr("contract"));
  EXPECT_THAT(shown("--schedule"), HasSubstr("reads store 'w' f32[15]"));
  EXPECT_THAT(shown("--kernels"), HasSubstr("launches"));
  EXPECT_THAT(shown("--memory"), HasSubstr("bytes in all"));
  EXPECT_THAT(shown("--report"), testing::StartsWith("stage"));
  const json launch = json::parse(shown("--schedule", {"--json"})).at("step").at(0);
  EXPECT_EQ(launch.at("read_bytes"), 4 * (4 * 3 + 3 * 5));
  EXPECT_EQ(launch.at("written_bytes"), 4 * 4 * 5);
}

TEST_F(InspectOnnx, runs_it_for_a_profile) {
  const json profile = json::parse(shown("--profile", {"--json", "--threads", "1"}));
  EXPECT_GE(profile.at("plans").at(0).at("runs"), 3);
  EXPECT_THAT(profile.at("kernels").at(0).at("ops").get<std::string>(), HasSubstr("contract"));
}

TEST_F(InspectOnnx, sizes_are_for_pictures_of_onnx_files) {
  const Outcome alone = run_pantala({"inspect", path(), "--size", "batch=3"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--size needs a picture"));
  const Outcome model = run_pantala({"inspect", "mlp", "--size", "batch=3"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("--size is for ONNX files"));
}

}  // namespace
}  // namespace pantala::tests::profile_test
