// The command on a Vulkan device: every verb that computes, what is found out about the device, and
// what is said without one.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/training.h"
#include "pantala/data.h"
#include "pantala/zoo.h"
#include "support/llama_case.h"
#include "support/trace_file.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::Outcome;

// Validation layers, where there are any (validate.cmake), write to its standard output.
Outcome run_pantala(const std::vector<std::string>& arguments) {
  Outcome outcome = tests::run_pantala(arguments);
  EXPECT_THAT(outcome.out,
              testing::Not(testing::ContainsRegex("Validation (Error|Warning)|VUID-|SYNC-HAZARD")));
  return outcome;
}

class VulkanCommand : public tests::TrainingTest {
 protected:
  void SetUp() override { need_device(); }
  void TearDown() override { ::unsetenv("PANTALA_VULKAN_FAULT"); }
};

json last_json(const Outcome& outcome) { return json::parse(outcome.last_line()); }

TEST_F(VulkanCommand, trains_evaluates_and_predicts_as_the_cpu_does) {
  const Outcome cpu = run_pantala(train("cpu", {"--json", "--progress", "none"})),
                gpu = run_pantala(
                    train("gpu", {"--json", "--progress", "none", "--device", test_device()}));
  ASSERT_EQ(cpu.exit_code, 0) << cpu.err;
  ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
  const double expected = last_json(cpu).at("evaluation").at("loss"),
               got = last_json(gpu).at("evaluation").at("loss");
  EXPECT_NEAR(got, expected, 1e-3 * expected);
  const Outcome again =
      run_pantala(train("again", {"--json", "--progress", "none", "--device", test_device()}));
  EXPECT_EQ(bytes("gpu/model.safetensors"), bytes("again/model.safetensors"));
  const Outcome evaluated = run_pantala({"eval", file("gpu"), "--json", "--device", test_device()});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_NEAR(last_json(evaluated).at("loss").get<double>(), got, 1e-6);
  const Outcome predicted =
      run_pantala({"predict", file("gpu"), "--data", points(), "--device", test_device()});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
}

TEST_F(VulkanCommand, a_run_goes_on_on_another_device_and_says_that_the_bits_will_differ) {
  const std::string notice = "the bits will differ from those of a run on one device";
  const auto run = [&](const char* epochs, const std::string& device) {
    std::vector<std::string> words = train("run", {"--json", "--device", device});
    *(std::ranges::find(words, "--epochs") + 1) = epochs;
    return run_pantala(words);
  };
  ASSERT_EQ(run("2", "cpu").exit_code, 0);
  // The table that chose the CPU's kernels says nothing of others.
  for (const char* verb : {"eval", "predict"}) {
    std::vector<std::string> words = {verb, file("run"), "--device", test_device()};
    if (verb == std::string_view("predict")) words.insert(words.end(), {"--data", points()});
    const Outcome used = run_pantala(words);
    EXPECT_EQ(used.exit_code, 0) << verb << used.err;
  }
  const Outcome gpu = run("3", test_device());
  ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
  EXPECT_THAT(gpu.err, HasSubstr("was trained on the device cpu and goes on on " + test_device()));
  EXPECT_THAT(gpu.err, HasSubstr(notice));
  const Outcome same = run("4", test_device());
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.err, testing::Not(HasSubstr(notice)));
  const Outcome back = run("5", "cpu");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr(notice));
  EXPECT_EQ(last_json(back).at("epochs"), 5);
}

// An epoch is 9 updates; the device is lost behind the second or third one.
TEST_F(VulkanCommand, a_run_that_loses_its_device_says_how_to_go_on_and_goes_on) {
  ASSERT_EQ(run_pantala(train("whole", {"--device", test_device()})).exit_code, 0);
  for (const char* fault : {"submit=40", "wait=150"})
    for (const std::string& device : {test_device(), std::string("cpu")}) {
      const std::string out = std::string(fault, 4) + device;
      SCOPED_TRACE(out);
      ::setenv("PANTALA_VULKAN_FAULT", fault, 1);
      const Outcome lost = run_pantala(train(out, {"--device", test_device()}));
      ::unsetenv("PANTALA_VULKAN_FAULT");
      EXPECT_EQ(lost.exit_code, 75) << lost.err;
      EXPECT_THAT(lost.err,
                  testing::ContainsRegex("the device is lost; what was in its memory is gone; the "
                                         "run was saved after [0-9]+ updates in .*: the same "
                                         "command goes on from there, and with --device cpu on the "
                                         "CPU"));
      EXPECT_FALSE(exists(out + "/model.safetensors"));
      const Outcome again = run_pantala(train(out, {"--device", device}));
      ASSERT_EQ(again.exit_code, 0) << again.err;
      if (device == "cpu")
        EXPECT_TRUE(exists(out + "/model.safetensors"));
      else
        EXPECT_EQ(bytes(out + "/model.safetensors"), bytes("whole/model.safetensors"));
    }
}

TEST_F(VulkanCommand, a_run_that_loses_its_device_before_it_has_saved_anything_begins_anew) {
  ASSERT_EQ(run_pantala(train("whole", {"--device", test_device()})).exit_code, 0);
  ::setenv("PANTALA_VULKAN_FAULT", "wait=3", 1);
  const Outcome lost = run_pantala(train("run", {"--device", test_device(), "--restart"}));
  ::unsetenv("PANTALA_VULKAN_FAULT");
  EXPECT_EQ(lost.exit_code, 75) << lost.err;
  EXPECT_THAT(lost.err, HasSubstr("nothing was saved yet: the same command without --restart "
                                  "begins anew"));
  ASSERT_EQ(run_pantala(train("run", {"--device", test_device()})).exit_code, 0);
  EXPECT_EQ(bytes("run/model.safetensors"), bytes("whole/model.safetensors"));
}

// Greedily: the most likely token is the same.
TEST_F(VulkanCommand, writes_the_text_that_the_cpu_writes) {
  std::ofstream(file("config.json"))
      << R"({"vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
             "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
             "max_position_embeddings": 32, "tie_word_embeddings": true})";
  const Graph graph = zoo::llama_cached(zoo::read_llama_config(file("config.json")), {.cache = 32});
  Weights weights;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter))
    weights.set(leaf.name, tests::llama_weight(leaf.name, leaf.value.shape()));
  weights.save(file("model.safetensors"));
  const auto text = [&](const std::string& device) {
    const Outcome outcome =
        run_pantala({"generate", "--weights", file("model.safetensors"), "--prompt", "AB",
                     "--tokens", "8", "--temperature", "0", "--device", device});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(text(test_device()), text("cpu"));
}

TEST_F(VulkanCommand, runs_a_model_of_a_file_as_the_cpu_does) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const std::string model = file("model.onnx");
  ASSERT_EQ(run_pantala({"export", file("run"), "--out", model, "--batch", "3"}).exit_code, 0);
  data::write_npy(file("x.npy"),
                  {Shape{3, 4}, std::vector<float>{1, -2, 3, 0, 2, 2, -1, 1, 0, 0, 1, 3}});
  std::vector<data::Array> results;
  for (const std::string& device : {std::string("cpu"), test_device()}) {
    const Outcome outcome = run_pantala({"run", model, "--input", "x=" + file("x.npy"), "--output",
                                         file("out"), "--device", device});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    results.push_back(data::read_npy(file("out/logits.npy")));
  }
  const auto &expected = std::get<std::vector<float>>(results[0].values),
             &got = std::get<std::vector<float>>(results[1].values);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-4);
}

TEST_F(VulkanCommand, a_kernel_that_computes_something_else_is_found_and_refused) {
  forget_plans();
  ::setenv("PANTALA_VULKAN_FAULT", "kernel=product", 1);
  const Outcome trained = run_pantala(train("run", {"--device", test_device()}));
  EXPECT_EQ(trained.exit_code, 2);
  EXPECT_THAT(trained.err, HasSubstr("kernels of the kind 'product' compute something else than "
                                     "the CPU on this device and driver"));
  const Outcome doctor = run_pantala({"doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("refused kernels: product"));
  EXPECT_THAT(doctor.out, testing::Not(HasSubstr("product, ")));  // what only stands beside it
  // It is remembered, also when the fault is gone.
  ::unsetenv("PANTALA_VULKAN_FAULT");
  EXPECT_EQ(run_pantala(train("run", {"--device", test_device()})).exit_code, 2);
  EXPECT_EQ(run_pantala(train("cpu")).exit_code, 0);
}

// Integers give the bits that a device gives which rounds as it should.
TEST_F(VulkanCommand, a_device_that_does_not_round_correctly_is_helped) {
  if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  device::vulkan::note_arithmetic_of(test_device(), {});  // not what helps it
  const device::vulkan::Arithmetic own =
      device::vulkan::test_arithmetic(*device::make_device(test_device()));
  ASSERT_EQ(run_pantala(train("run", {"--device", test_device()})).exit_code, 0);
  forget_plans();
  ::setenv("PANTALA_VULKAN_FAULT", "inexact", 1);
  ASSERT_EQ(run_pantala(train("helped", {"--device", test_device()})).exit_code, 0);
  ::unsetenv("PANTALA_VULKAN_FAULT");
  EXPECT_THAT(run_pantala({"devices"}).out,
              HasSubstr(std::string("14 steps agree with the CPU, with division and square root ") +
                        (own.fuses ? "" : "and fma ") + "in more instructions"));
  if (own.divides && own.takes_roots) {
    EXPECT_EQ(bytes("run/model.safetensors"), bytes("helped/model.safetensors"));
  }
}

TEST_F(VulkanCommand, devices_and_doctor_say_what_was_tested) {
  forget_plans();
  EXPECT_THAT(run_pantala({"devices"}).out, testing::Not(HasSubstr("agree with the CPU")));
  EXPECT_THAT(run_pantala({"doctor"}).out, HasSubstr("not compared with the CPU yet"));
  ASSERT_EQ(run_pantala(train("run", {"--device", test_device()})).exit_code, 0);
  for (const char* verb : {"devices", "doctor"})
    EXPECT_THAT(run_pantala({verb}).out, HasSubstr("14 steps agree with the CPU")) << verb;
}

TEST_F(VulkanCommand, shows_the_code_of_a_kernel) {
  const Outcome kernels =
      run_pantala({"inspect", "mlp", "--kernels", "--json", "--device", test_device()});
  ASSERT_EQ(kernels.exit_code, 0) << kernels.err;
  const Outcome code = run_pantala(
      {"inspect", "mlp", "--kernel", "product_0", "--spirv", "--device", test_device()});
  EXPECT_EQ(code.exit_code, 0) << code.err << kernels.out;
  EXPECT_THAT(code.out, HasSubstr("OpEntryPoint GLCompute"));
}

// A run that is timed has the bits of any other.
TEST_F(VulkanCommand, traces_and_profiles_the_kernels_of_a_run) {
  ASSERT_EQ(run_pantala(train("plain", {"--device", test_device()})).exit_code, 0);
  const Outcome timed = run_pantala(train(
      "timed", {"--device", test_device(), "--profile", "--trace", file("trace.json"), "--json"}));
  ASSERT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_EQ(bytes("plain/model.safetensors"), bytes("timed/model.safetensors"));
  double microseconds = 0;
  std::set<std::string> layers;
  const json result = json::parse(timed.out);
  for (const json& kernel : result.at("profile").at("kernels")) {
    microseconds += kernel.at("us").get<double>();
    layers.insert(kernel.at("layers"));
  }
  EXPECT_GT(microseconds, 0);
  EXPECT_TRUE(layers.contains("fc1"));
  const tests::TraceFile trace(bytes("trace.json"));
  trace.expect_nesting();
  const auto steps = trace.named("steps", "step");
  ASSERT_GE(steps.size(), 4U);
  std::size_t kernels = 0;
  for (const std::string& row : trace.rows())
    if (row != "steps" && row != "compiler") kernels += trace.row(row).size();
  EXPECT_GT(kernels, steps.size());
}

TEST_F(VulkanCommand, profiles_a_model) {
  const Outcome outcome = run_pantala(
      {"inspect", "mlp", "--batch", "8", "--profile", "--json", "--device", test_device()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  double microseconds = 0;
  const json profile = json::parse(outcome.out);
  for (const json& kernel : profile.at("kernels")) microseconds += kernel.at("us").get<double>();
  EXPECT_GT(microseconds, 0);
}

// By the cost table of that device, whose kernels are others than the processor's.
TEST_F(VulkanCommand, explains_what_was_chosen_for_a_device) {
  const auto step = [](const std::string& device) {
    const Outcome outcome =
        run_pantala({"explain", "lenet", "--batch", "16", "--json", "--device", device});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("steps").at(0);
  };
  const json gpu = step(test_device()), cpu = step("cpu");
  EXPECT_GT(gpu.at("candidates").size(), 1U);
  const auto predicted = [](const json& all) {
    for (const json& one : all.at("candidates"))
      if (one.at("chosen")) return one.at("predicted_us").get<double>();
    return 0.0;
  };
  EXPECT_GT(predicted(gpu), 0);
  EXPECT_NE(predicted(gpu), predicted(cpu));
}

TEST_F(VulkanCommand, times_kernels) {
  const Outcome outcome = run_pantala(
      {"bench", "mlp32", "--seconds", "0.2", "--kernels", "--json", "--device", test_device()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json line = last_json(outcome);
  EXPECT_EQ(line.at("device"), test_device());
  double total = 0;
  for (const json& launch : line.at("launches")) total += launch.at("best_us").get<double>();
  EXPECT_GT(total, 0);
}

// What a user with a GPU sends back: a workload that fails is no reason to leave the others out.
TEST_F(VulkanCommand, reports_all_there_is_to_know_of_a_device) {
  if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  const Outcome outcome = run_pantala({"bench", "none.onnx", "lenet64:batch=2", "--seconds", "0.1",
                                       "--report", file("report.json"), "--device", test_device()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("none.onnx: "));
  const json report = json::parse(bytes("report.json"));
  for (const char* fact : {"driver", "vulkan", "shared_bytes", "max_invocations", "subgroup"})
    EXPECT_TRUE(report.at("device").contains(fact)) << fact;
  EXPECT_THAT(report.at("qualification").at("text").get<std::string>(),
              HasSubstr("agree with the CPU"));
  EXPECT_GT(report.at("product").at("gflops_per_second"), 0);
  const json& workloads = report.at("workloads");
  ASSERT_EQ(workloads.size(), 2);
  EXPECT_THAT(workloads[0].at("error").get<std::string>(), HasSubstr("none.onnx"));
  EXPECT_GT(workloads[1].at("ms_min"), 0);
  std::set<std::string> kinds;
  for (const json& kind : workloads[1].at("launch_times").at("kinds")) {
    EXPECT_GT(kind.at("us"), 0);
    kinds.insert(kind.at("kind"));
  }
  EXPECT_TRUE(kinds.contains("contract") && kinds.contains("convolution"));
  EXPECT_EQ(run_pantala({"bench", "mlp32", "--all"}).exit_code, 2);
}

TEST_F(VulkanCommand, fits_a_cost_table_for_a_device) {
  if (!wants_all()) GTEST_SKIP() << "PANTALA_VULKAN_TESTS is not all";
  const Outcome outcome = run_pantala(
      {"tune", "--seconds", "0", "--device", test_device(), "--out", file("table.txt"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(last_json(outcome).at("tuned").at("rank_correlation"), 0.3);
  EXPECT_THAT(bytes("table.txt"), HasSubstr("group_threads = "));
  const Outcome bench = run_pantala({"bench", "mlp32", "--seconds", "0", "--json", "--device",
                                     test_device(), "--cost-table", file("table.txt")});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

TEST_F(VulkanCommand, a_cost_table_of_a_processor_is_refused) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const auto bench = [&](const std::string& device, const std::string& table) {
    return run_pantala(
        {"bench", "mlp32", "--seconds", "0", "--device", device, "--cost-table", table});
  };
  const Outcome refused = bench(test_device(), file("run/cost-table.txt"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("is of a processor, the device " +
                                                    test_device() + " is a GPU"),
                                          HasSubstr("pantala tune --device ")));
  ASSERT_EQ(run_pantala(train("gpu", {"--device", test_device()})).exit_code, 0);
  EXPECT_THAT(bench("cpu", file("gpu/cost-table.txt")).err,
              HasSubstr("is of a GPU, the device cpu is a processor"));
}

// Where the loader finds no driver the CPU computes, and a GPU that is asked for is an error.
TEST_F(VulkanCommand, without_a_driver_automatic_is_the_cpu_and_vulkan_an_error) {
  ::setenv("VK_ICD_FILENAMES", file("none.json").c_str(), 1);
  ::setenv("VK_DRIVER_FILES", file("none.json").c_str(), 1);
  const Outcome automatic = run_pantala(train("auto", {"--device", "auto"})),
                asked = run_pantala(train("asked", {"--device", "vulkan"})),
                devices = run_pantala({"devices"});
  ::unsetenv("VK_ICD_FILENAMES");
  ::unsetenv("VK_DRIVER_FILES");
  EXPECT_EQ(automatic.exit_code, 0) << automatic.err;
  EXPECT_THAT(automatic.err, HasSubstr("the CPU computes: there is no Vulkan device: "));
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, HasSubstr("there is no Vulkan device: "));
  EXPECT_THAT(devices.out, HasSubstr("vulkan    there is no Vulkan device: "));
}

TEST_F(VulkanCommand, software_is_only_taken_if_it_is_named) {
  const std::string text = run_pantala({"devices"}).out;
  if (text.find("(software)") == text.npos) GTEST_SKIP() << "the device is no software";
  const Outcome unnamed = run_pantala(train("run", {"--device", "vulkan"}));
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("a software device is only taken if it is named"));
}

}  // namespace
}  // namespace pantala::vulkan_tests
