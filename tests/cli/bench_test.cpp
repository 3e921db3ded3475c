// pantala bench: figures, files and mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/run.h"
#include "support/temporary.h"

namespace pantala::tests::bench_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

Json bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "mlp32", "--seconds", "0", "--json"});
  const Outcome outcome = run_pantala(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  return Json::parse(outcome.out);  // one object and nothing else
}

class BenchFile : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("file");
};

TEST(Bench, prints_one_object_with_all_figures) {
  const Json line = bench({});
  for (const char* field :
       {"workload", "mode", "device", "threads", "ms_min", "ms_median", "steps", "loss_first",
        "loss_last", "compile_ms", "ready_ms", "first_step_ms", "cached", "kernels", "units",
        "peak_bytes", "resident_idle_bytes", "resident_peak_bytes"})
    EXPECT_TRUE(line.contains(field)) << field;
  EXPECT_LE(line["compile_ms"], line["ready_ms"]);
  EXPECT_LE(line["ready_ms"], line["first_step_ms"]);
  EXPECT_LE(line["resident_idle_bytes"], line["resident_peak_bytes"]);
  EXPECT_EQ(line["mode"], "train");
  EXPECT_FALSE(line.contains("launches"));
}

TEST(Bench, inference_is_the_outputs_alone) {
  const Json training = bench({}), inference = bench({"--infer"});
  EXPECT_EQ(inference["mode"], "infer");
  EXPECT_FALSE(inference.contains("loss_last"));
  EXPECT_GT(inference["output_rms"], 0);
  EXPECT_FALSE(training.contains("output_rms"));
  EXPECT_LT(training["loss_last"], training["loss_first"]);
  EXPECT_LT(inference["kernels"], training["kernels"]);
}

TEST(Bench, a_plan_says_the_same_whether_it_runs_or_not) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--infer"}, {"--rewrite", "none"}}) {
    std::vector<std::string> plan_only = more;
    plan_only.insert(plan_only.end(), {"--plan-only", "--kernels"});
    const Json run = bench(more), plan = bench(plan_only);
    for (const char* field :
         {"workload", "mode", "kernels", "peak_bytes", "nodes", "bytes", "predicted_us"})
      EXPECT_EQ(plan.at(field), run.at(field)) << field;
    EXPECT_EQ(plan["launches"].size(), plan["kernels"]);
    EXPECT_FALSE(plan.contains("ms_min"));
  }
  const Outcome refused = run_pantala({"bench", "mlp32", "--plan-only", "--cache", "file"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--plan-only makes no code"));
}

TEST(Bench, weights_are_the_same_every_time) {
  EXPECT_EQ(bench({})["loss_first"], bench({})["loss_first"]);
  EXPECT_EQ(bench({"--infer"})["output_rms"], bench({"--infer"})["output_rms"]);
}

// Where the processor is of no such class, kernels of that form are compiled for it.
TEST(Bench, code_can_be_for_a_class_of_processors) {
  const Json usual = bench({}), narrow = bench({"--target", "x86-64-v3", "--kernels"});
  EXPECT_NEAR(narrow["loss_last"], usual["loss_last"], 1e-4 * usual["loss_last"].get<double>());
  EXPECT_NE(narrow["predicted_us"], usual["predicted_us"]);
  for (const Json& launch : narrow["launches"]) EXPECT_LE(launch["best_us"], launch["us"]);
}

TEST(Bench, launches_are_a_part_of_the_object) {
  const Json line = bench({"--kernels"});
  ASSERT_EQ(line["launches"].size(), line["kernels"].get<std::size_t>());
  for (const Json& launch : line["launches"]) {
    EXPECT_GT(launch["us"], 0);
    EXPECT_GT(launch["items"], 0);
    EXPECT_FALSE(launch["ops"].get<std::string>().empty());
    EXPECT_GT(launch["read_bytes"].get<double>() + launch["written_bytes"].get<double>(), 0);
    EXPECT_GT(launch["share_of_limit"], 0);
  }
}

TEST(Bench, launches_are_summed_up_by_kind) {
  const Json line = bench({"--kernels"});
  double us = 0, flops = 0;
  std::size_t launches = 0;
  for (const Json& kind : line["kinds"]) {
    us += kind["us"].get<double>();
    flops += kind["flops"].get<double>();
    launches += kind["launches"].get<std::size_t>();
    EXPECT_GT(kind["share_of_limit"], 0) << kind;
  }
  EXPECT_EQ(launches, line["kernels"].get<std::size_t>());
  EXPECT_NEAR(line["totals"]["us"].get<double>(), us, 1e-6 * us);
  EXPECT_NEAR(line["totals"]["flops"].get<double>(), flops, 1e-6 * flops);
  EXPECT_LT(line["kinds"].size(), launches);
}

TEST(Bench, sizes_can_be_others_than_those_of_the_name) {
  const auto run = [](const std::string& workload) {
    return run_pantala({"bench", workload, "--seconds", "0", "--json"});
  };
  const Outcome small = run("lenet64:batch=2");
  ASSERT_EQ(small.exit_code, 0) << small.err;
  EXPECT_EQ(Json::parse(small.out)["workload"], "lenet64:batch=2");
  for (const auto& [workload, reason] : std::vector<std::pair<std::string, std::string>>{
           {"lenet64:layers=2", "workload 'lenet64' has no size 'layers'; it has batch"},
           {"lenet64:batch=0", "batch of workload 'lenet64' must be a number from 1 to 1048576"},
           {"lenet64:batch", "must be a number from 1"},
           {"resnet18_b8:batch=2", "the sizes of workload 'resnet18_b8' cannot be changed"},
           {"lenet:batch=2", "there is no workload 'lenet'; did you mean 'lenet64'?"}}) {
    const Outcome outcome = run(workload);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(reason));
  }
}

TEST_F(BenchFile, plans_of_training_and_inference_are_cached) {
  for (const std::vector<std::string>& mode : {std::vector<std::string>{}, {"--infer"}}) {
    std::vector<std::string> arguments = mode;
    arguments.insert(arguments.end(), {"--cache", path_});
    const Json compiled = bench(arguments), loaded = bench(arguments);
    EXPECT_EQ(compiled["cached"], false);
    EXPECT_EQ(loaded["cached"], true);
    for (const char* figure : {"loss_last", "output_rms"})
      EXPECT_EQ(loaded.value(figure, 0.0), compiled.value(figure, 0.0));
  }
}

TEST_F(BenchFile, the_trace_has_stages_steps_and_launches) {
  bench({"--trace", path_});
  std::ifstream file(path_);
  const Json trace = Json::parse(file);
  std::set<std::string> categories;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") categories.insert(event["cat"]);
  categories.erase("wait");  // one worker alone hardly waits
  EXPECT_EQ(categories, (std::set<std::string>{"compile", "step", "kernel"}));
}

TEST(Bench, mistakes_are_named) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_pantala(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(error({"bench"}), HasSubstr("workload is required"));
  EXPECT_THAT(error({"bench", "mlp31"}), HasSubstr("did you mean 'mlp32'?"));
  EXPECT_THAT(error({"bench", "whisper-tiny"}), HasSubstr("did you mean 'whisper_tiny'?"));
  EXPECT_THAT(error({"bench", "mlp32", "--target", "pdp11"}),
              HasSubstr("no target is named 'pdp11'; there are x86-64, x86-64-v3"));
  EXPECT_THAT(error({"bench", "nothing.onnx"}), HasSubstr("nothing.onnx"));
  EXPECT_THAT(error({"bench", "mlp32", "--thread", "1"}), HasSubstr("did you mean '--threads'?"));
  EXPECT_THAT(error({"bench", "mlp32", "--threads", "-1"}), HasSubstr("--threads"));
  for (const char* seconds : {"-1", "nan", "inf", "soon"})
    EXPECT_THAT(error({"bench", "mlp32", "--seconds", seconds}), HasSubstr("--seconds"));
  for (const char* option : {"--cache", "--trace"})
    EXPECT_THAT(error({"bench", "mlp32", "mlp128", option, "x"}), HasSubstr("of one workload"));
}

}  // namespace
}  // namespace pantala::tests::bench_test
