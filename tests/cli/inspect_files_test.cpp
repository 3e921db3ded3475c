// pantala inspect of files that are shown as they are: weights and plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "io/file.h"
#include "pantala/compile.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/weights.h"
#include "support/temporary.h"

namespace pantala::tests::inspect_files_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

class InspectFiles : public testing::Test {
 protected:
  std::string shown(const std::vector<std::string>& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  std::string refused(const std::vector<std::string>& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
  static Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    return run_pantala(arguments);
  }
  static Weights weights() {
    Weights weights;
    weights.set("fc.weight", Literal::floats({10, 3}, std::vector<double>(30), bf16));
    weights.set("fc.bias", Literal::floats({10}, std::vector<double>(10)));
    weights.set("steps", Literal::integer(3));
    weights.set_metadata("format", "pt");
    return weights;
  }

  const TemporaryFolder folder_;
};

TEST_F(InspectFiles, weights_are_a_table_of_tensors) {
  const std::string path = folder_.file("m.safetensors");
  weights().save(path);
  EXPECT_EQ(shown({path}), path +
                               ": 3 tensors, 41 elements, 108 bytes\n"
                               "metadata \"format\": \"pt\"\n"
                               "tensor     dtype  shape   bytes\n"
                               "fc.bias    f32    [10]       40\n"
                               "fc.weight  bf16   [10,3]     60\n"
                               "steps      i64    []          8\n");
  const Json document = Json::parse(shown({path, "--json"}));
  EXPECT_EQ(document.at("kind"), "safetensors");
  EXPECT_EQ(document.at("elements"), 41);
  EXPECT_EQ(document.at("bytes"), 108);
  EXPECT_EQ(document.at("metadata").at("format"), "pt");
  EXPECT_EQ(document.at("tensors").at(1),
            Json::parse(R"({"name":"fc.weight","dtype":"bf16","shape":[10,3],"bytes":60,)"
                        R"("file":"m.safetensors"})"));
}

TEST_F(InspectFiles, parts_are_one_model_by_index_and_by_folder) {
  weights().save(folder_.path(), {.max_shard_bytes = 64});
  const std::string index = folder_.file("model.safetensors.index.json");
  const std::string text = shown({index});
  EXPECT_EQ(text, shown({folder_.path().string()}));
  EXPECT_EQ(text, shown({folder_.file("model.safetensors")}));
  EXPECT_THAT(text, HasSubstr(": 3 tensors, 41 elements, 108 bytes in 3 files\n"));
  EXPECT_THAT(text, HasSubstr("fc.weight  bf16   [10,3]     60  model-00002-of-00003.safetensors"));
  EXPECT_EQ(Json::parse(shown({index, "--json"})).at("files").size(), 3U);
}

TEST_F(InspectFiles, element_types_that_cannot_be_loaded_are_listed_too) {
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})";
  const std::uint64_t length = header.size();
  const std::string path = folder_.file("weights");  // known by its content
  io::write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + header + "xy");
  EXPECT_THAT(shown({path}), HasSubstr("a       F8_E4M3  [2]        2\n"));
}

TEST_F(InspectFiles, plans_show_what_goes_in_and_out_and_their_sizes) {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  graph.output("y", relu(x * graph.parameter("w", {3})));
  const std::string path = folder_.file("plan");
  compile(graph, {.threads = 2}).plan.save(path);
  const std::string text = shown({path});
  EXPECT_THAT(text, HasSubstr(path + ": plan, "));
  EXPECT_THAT(text, HasSubstr("\ndevice cpu, 2 threads, no optimizer, without a loss\n"));
  EXPECT_THAT(text, HasSubstr("\nparameters and states: 12 bytes\n"));
  EXPECT_THAT(text, HasSubstr("\ninput      x     f32[4,3]     48\n"));
  EXPECT_THAT(text, HasSubstr("\nparameter  w     f32[3]       12\n"));
  EXPECT_THAT(text, HasSubstr("\noutput     y     f32[4,3]     48\n"));
  EXPECT_THAT(text, ContainsRegex("\nkernel +launches +code bytes\n"));
  const Json document = Json::parse(shown({path, "--json"}));
  EXPECT_EQ(document.at("kind"), "plan");
  const Json& step = document.at("steps").begin().value();
  EXPECT_EQ(step.at("leaves").size(), 3U);
  EXPECT_GT(step.at("kernels").at(0).at("code_bytes"), 0);
}

TEST_F(InspectFiles, onnx_files_show_operators_and_initialisers) {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  graph.output("y", relu(x * graph.parameter("w", {3})));
  Weights weights;
  weights.set("w", Literal::floats({3}, {1, 2, 3}));
  const std::string path = folder_.file("model.onnx");
  onnx::export_model(graph, weights, path);
  const std::string text = shown({path});
  EXPECT_THAT(text, testing::StartsWith(path + ": ONNX, opset 17"));
  EXPECT_THAT(text, HasSubstr("\n2 nodes, 1 initialiser, 12 bytes\n"));
  EXPECT_THAT(text, HasSubstr("\ninput   x     f32[4,3]\n"));
  EXPECT_THAT(text, HasSubstr("\noutput  y     f32[4,3]\n"));
  EXPECT_THAT(text, ContainsRegex("\nRelu +1\n"));
  EXPECT_THAT(text, ContainsRegex("\nw +f32 +\\[3\\] +12"));
  const Json document = Json::parse(shown({path, "--json"}));
  EXPECT_EQ(document.at("kind"), "onnx");
  EXPECT_EQ(document.at("operators").at("Relu"), 1);
  EXPECT_EQ(document.at("initialisers").at(0).at("bytes"), 12);
}

TEST_F(InspectFiles, mistakes_are_answered) {
  const std::string path = folder_.file("m.safetensors");
  weights().save(path);
  EXPECT_EQ(
      refused({path, "--graph"}),
      "pantala: " + path + ": a safetensors file is shown as it is: only --json goes with it\n");
  std::string content = io::read_file(path);
  content.resize(content.size() - 1);
  io::write_file(path, content);
  EXPECT_THAT(refused({path}), HasSubstr("are not within the 107 bytes of data"));
  io::write_file(folder_.file("plan"), "PANTSTEP....");
  EXPECT_THAT(refused({folder_.file("plan")}), HasSubstr("plan, byte "));
  const TemporaryFolder empty;
  EXPECT_THAT(refused({empty.path().string()}), HasSubstr("expected model.safetensors"));
}

}  // namespace
}  // namespace pantala::tests::inspect_files_test
