// pantala ops: the reference, and the page that is made from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "io/file.h"
#include "ops/table.h"

namespace pantala::tests::ops_test {
namespace {

using testing::HasSubstr;

TEST(Ops, docs_page_is_the_markdown_output) {
  const Outcome outcome = run_pantala({"ops", "--markdown"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out == io::read_file(PANTALA_SOURCE_DIR "/docs/ops.md"))
      << "docs/ops.md is out of date; regenerate it: build/release/bin/pantala ops --markdown > "
         "docs/ops.md";
}

TEST(Ops, json_lists_every_op_of_the_table) {
  const Outcome outcome = run_pantala({"ops", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  std::vector<std::string> names;
  for (const auto& op : nlohmann::json::parse(outcome.out)) {
    names.push_back(op.at("name"));
    for (const char* key : {"signature", "doc", "family", "kind", "differentiable", "onnx",
                            "inputs", "results", "attributes"})
      EXPECT_TRUE(op.contains(key)) << names.back() << " has no " << key;
    for (const auto& attribute : op.at("attributes"))
      EXPECT_EQ(attribute.contains("default"), !attribute.at("required").get<bool>())
          << names.back();
  }
  EXPECT_EQ(names, ops::table().names());
}

TEST(Ops, kinds_and_derivatives_are_told) {
  const auto one = [](const char* name) {
    return nlohmann::json::parse(run_pantala({"ops", name, "--json"}).out).at(0);
  };
  EXPECT_EQ(one("input").at("kind"), "leaf");
  EXPECT_EQ(one("relu").at("kind"), "composite");
  EXPECT_EQ(one("add").at("kind"), "primitive");
  EXPECT_EQ(one("matmul").at("kind"), "sugar");
  EXPECT_EQ(one("relu").at("differentiable"), true);
  EXPECT_EQ(one("argmax").at("differentiable"), false);
  EXPECT_EQ(one("gt").at("differentiable"), false);
}

TEST(Ops, one_op_as_text) {
  const Outcome outcome = run_pantala({"ops", "leaky_relu"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out,
            "leaky_relu(x) -> y\n    x above 0, slope * x below.\n    activation (composite, "
            "differentiable, ONNX LeakyRelu)\n    slope: float = 0.01  slope below 0\n");
}

TEST(Ops, unknown_op_gets_the_nearest_one) {
  const Outcome outcome = run_pantala({"ops", "softmx"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: there is no op 'softmx'; did you mean 'softmax'?\n");
}

TEST(Ops, formats_exclude_each_other) {
  EXPECT_EQ(run_pantala({"ops", "--json", "--markdown"}).exit_code, 2);
}

}  // namespace
}  // namespace pantala::tests::ops_test
