// pantala inspect: every picture of a model and of a graph in a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "io/file.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/temporary.h"

namespace pantala::tests::inspect_test {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

std::string shown(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "inspect");
  const Outcome outcome = run_pantala(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

// A file that goes with the test.
class GraphFile {
 public:
  explicit GraphFile(const std::string& text) { io::write_file(path_, text); }
  const std::string& path() const { return path_; }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("graph.txt");
};

std::string regression() {
  Graph g;
  g.output("loss", mean(g.input("x", {4, 3}) * g.parameter("w", {3})));
  return to_text(g);
}

TEST(Inspect, the_step_of_a_model_as_a_graph) {
  const std::string text = shown({"mlp", "--batch", "4", "--graph"});
  EXPECT_THAT(text, HasSubstr("adam_update"));
  EXPECT_THAT(text, HasSubstr("output \"finite\""));
  EXPECT_EQ(to_text(parse_graph(text)), text);
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--graph", "--optimizer", "sgd"}),
              HasSubstr("sgd_update"));
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--graph", "--optimizer", "none"}),
              HasSubstr("output \"grad.fc1.weight\""));
}

TEST(Inspect, the_lowered_graph_holds_no_composite) {
  const std::string text = shown({"mlp", "--batch", "4", "--lowered"});
  EXPECT_THAT(text, testing::Not(HasSubstr("adam_update")));
  EXPECT_THAT(text, HasSubstr("contract"));
}

TEST(Inspect, the_schedule_lists_launches_with_kernels_and_buffers) {
  const std::string text = shown({"mlp", "--batch", "4", "--schedule"});
  EXPECT_THAT(text, StartsWith("0 "));
  EXPECT_THAT(text, ContainsRegex("kernel [^ ]+, [0-9]+ items?"));
  EXPECT_THAT(text, HasSubstr("store 'fc1.weight' f32[100352]"));
  const Json json = Json::parse(shown({"mlp", "--batch", "4", "--schedule", "--json"}));
  EXPECT_GT(json.at("step").size(), 3u);
  EXPECT_GT(json.at("step").at(0).at("items"), 0);
}

TEST(Inspect, every_kernel_can_be_shown_in_every_form) {
  const Json kernels =
      Json::parse(shown({"mlp", "--batch", "4", "--kernels", "--json"})).at("step");
  ASSERT_FALSE(kernels.empty());
  const std::string name = kernels.at(0).at("name");
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--kernels"}), HasSubstr(name));
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--kernel", name}),
              StartsWith("kernel \"" + name + "\" {"));
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--kernel", name, "--llvm"}), HasSubstr("define "));
  EXPECT_THAT(shown({"mlp", "--batch", "4", "--kernel", name, "--asm"}), HasSubstr("ret"));
  EXPECT_THAT(Json::parse(shown({"mlp", "--batch", "4", "--kernel", name, "--json"})).at(name),
              StartsWith("kernel "));
}

TEST(Inspect, the_memory_map_has_regions_and_the_arena) {
  const std::string text = shown({"lenet", "--batch", "2", "--memory"});
  EXPECT_THAT(text, HasSubstr("conv1.weight"));
  EXPECT_THAT(text, HasSubstr("bytes in all"));
  const Json step = Json::parse(shown({"lenet", "--batch", "2", "--memory", "--json"})).at("step");
  for (const Json& buffer : step.at("arena"))
    EXPECT_LE(buffer.at("offset").get<std::int64_t>() + buffer.at("bytes").get<std::int64_t>(),
              step.at("arena_bytes").get<std::int64_t>());
}

TEST(Inspect, the_report_is_the_default) {
  const std::string text = shown({"mlp", "--batch", "4"});
  EXPECT_THAT(text, StartsWith("stage"));
  EXPECT_THAT(text, HasSubstr("differentiate"));
  const Json json = Json::parse(shown({"mlp", "--batch", "4", "--report", "--json"}));
  EXPECT_EQ(json.at("stages").at(0).at("name"), "canonicalise");
  EXPECT_GT(json.at("units").size(), 0u);
}

TEST(Inspect, accumulation_has_two_steps) {
  const std::string text = shown({"mlp", "--batch", "4", "--accumulate", "4", "--schedule"});
  EXPECT_THAT(text, StartsWith("== accumulate\n"));
  EXPECT_THAT(text, HasSubstr("== apply\n"));
}

TEST(Inspect, a_graph_in_a_file_is_taken_as_it_is_or_trained) {
  const GraphFile file(regression());
  EXPECT_EQ(shown({file.path(), "--graph"}), to_text(parse_graph(regression())));
  EXPECT_THAT(shown({file.path(), "--graph", "--loss", "loss", "--optimizer", "sgd"}),
              HasSubstr("sgd_update"));
  EXPECT_THAT(shown({file.path(), "--kernels", "--unfused"}), HasSubstr("launches"));
}

TEST(Inspect, mistakes_get_the_nearest_name) {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    const Outcome outcome = run_pantala(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"lent"}),
              StartsWith("pantala: there is no model and no file 'lent'; did you mean 'lenet'?; "
                         "the models are mlp, lenet"));
  EXPECT_THAT(error({"mlp", "--optimizer", "adm"}), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(error({"mlp", "--batch", "4", "--kernel", "no such kernel"}),
              HasSubstr("there is no kernel 'no such kernel'"));
  EXPECT_THAT(error({"mlp", "--batch", "100000000000"}),
              HasSubstr("f32[100000000000,784] takes more than 1024 GiB"));
  EXPECT_THAT(error({"mlp", "--asm"}),
              HasSubstr("--kir, --llvm, --asm and --spirv need --kernel NAME"));
  EXPECT_THAT(error({"mlp", "--graph", "--memory"}), HasSubstr("one at a time: --graph"));
  EXPECT_THAT(error({"mlp", "--kernel", "k", "--kir", "--asm"}), HasSubstr("one at a time: --kir"));
  EXPECT_THAT(error({"mlp", "--grph"}), HasSubstr("did you mean '--graph'?"));
  EXPECT_THAT(error({"mlp", "--batch", "0"}), HasSubstr("batch"));
  EXPECT_THAT(error({"mlp", "--loss", "loss"}), HasSubstr("--loss is for files"));
  const GraphFile file("graph { %0 = nothing }");
  EXPECT_THAT(error({file.path()}), HasSubstr(file.path()));
  const GraphFile good(regression());
  EXPECT_THAT(error({good.path(), "--loss", "los"}), HasSubstr("did you mean 'loss'?"));
}

}  // namespace
}  // namespace pantala::tests::inspect_test
