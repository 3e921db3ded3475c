// Runs the ONNX project's operator tests in parts, side by side. Prints what passed, failed and is
// unsupported; fails on every failure, and on what is unsupported without standing in the table of
// exemptions in docs/onnx.md.
//
// PANTALA_ONNX_TESTS (at run time, or when the build is configured) is the folder that holds node/
// and the other suites; by default that of Debian's libonnx-testdata. The PyPI package writes newer
// ones: python -m onnx.backend.test.cmd_tools generate-data -o FOLDER.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"
#include "onnx/adapters.h"
#include "onnx/operator_case.h"

namespace pantala::tests::operators_test {
namespace {

constexpr int kParts = 8;

std::filesystem::path data_folder() {
  const char* given = std::getenv("PANTALA_ONNX_TESTS");
  return given != nullptr ? given : PANTALA_ONNX_TESTS;
}

// What exporters write for the models of the zoo and torchvision's classifiers: these operators may
// only be exempt in single tests, by name.
constexpr std::string_view kRequired[] = {"Conv",
                                          "BatchNormalization",
                                          "Gemm",
                                          "MatMul",
                                          "MaxPool",
                                          "AveragePool",
                                          "GlobalAveragePool",
                                          "GlobalMaxPool",
                                          "Relu",
                                          "Sigmoid",
                                          "Tanh",
                                          "LeakyRelu",
                                          "Elu",
                                          "HardSwish",
                                          "HardSigmoid",
                                          "Gelu",
                                          "Softmax",
                                          "LogSoftmax",
                                          "LayerNormalization",
                                          "Reshape",
                                          "Transpose",
                                          "Slice",
                                          "Concat",
                                          "Split",
                                          "Gather",
                                          "Expand",
                                          "Where",
                                          "Cast",
                                          "Shape",
                                          "ConstantOfShape",
                                          "Constant",
                                          "Flatten",
                                          "Squeeze",
                                          "Unsqueeze",
                                          "Range",
                                          "ReduceSum",
                                          "ReduceMean",
                                          "ReduceMax",
                                          "ReduceMin",
                                          "ReduceProd",
                                          "ReduceL2",
                                          "Erf",
                                          "Resize",
                                          "Upsample",
                                          "Pad",
                                          "Clip",
                                          "Add",
                                          "Sub",
                                          "Mul",
                                          "Div",
                                          "Pow",
                                          "Sqrt",
                                          "Exp",
                                          "Log",
                                          "Neg",
                                          "Equal",
                                          "Less",
                                          "Greater",
                                          "Not",
                                          "And",
                                          "Or",
                                          "Identity",
                                          "Dropout",
                                          "Tile",
                                          "Trilu",
                                          "CumSum",
                                          "ConvTranspose",
                                          "InstanceNormalization",
                                          "GatherElements",
                                          "ArgMax"};

bool is_required(const std::string& reason) {
  const std::string op = reason.substr(0, reason.find(':'));
  return std::find(std::begin(kRequired), std::end(kRequired), op) != std::end(kRequired);
}

// The row for this reason, or nullptr.
const Exemption* exemption_of(const std::vector<Exemption>& all, const std::string& test,
                              const std::string& reason) {
  for (const Exemption& exemption : all)
    if (glob_match(exemption.pattern, test + " " + reason) &&
        !(is_required(reason) && exemption.pattern.starts_with("*")))
      return &exemption;
  return nullptr;
}

class OnnxOperators : public testing::TestWithParam<int> {};

TEST_P(OnnxOperators, agree) {
  const std::vector<std::filesystem::path> cases = operator_cases(data_folder());
  ASSERT_FALSE(cases.empty()) << "no tests in " << data_folder() << ": install libonnx-testdata";
  const std::vector<Exemption> exemptions = read_exemptions(PANTALA_SOURCE_DIR "/docs/onnx.md");
  ASSERT_FALSE(exemptions.empty());
  int passed = 0, failed = 0, unsupported = 0;
  std::map<std::string, int> why;
  for (std::size_t k = static_cast<std::size_t>(GetParam()); k < cases.size(); k += kParts) {
    const std::string name = cases[k].filename().string();
    const Outcome outcome = run_operator_case(cases[k]);
    if (outcome.kind == Outcome::Kind::passed) {
      ++passed;
      continue;
    }
    bool exempt = true;
    for (const std::string& reason : outcome.reasons) {
      const Exemption* exemption = exemption_of(exemptions, name, reason);
      if (exemption != nullptr)
        ++why[exemption->pattern];
      else
        ADD_FAILURE() << name << ": " << reason;
      exempt = exempt && exemption != nullptr;
    }
    ++(exempt || outcome.kind == Outcome::Kind::unsupported ? unsupported : failed);
  }
  fmt::print("{} passed, {} failed, {} unsupported\n", passed, failed, unsupported);
  for (const auto& [pattern, count] : why) fmt::print("  {:4} times {}\n", count, pattern);
}

TEST(OnnxDocument, lists_the_operators) {
  std::vector<std::string> listed;
  for (const std::string& line : section(PANTALA_SOURCE_DIR "/docs/onnx.md", "Operators"))
    for (const std::string& word : quoted_words(line)) listed.push_back(word);
  EXPECT_EQ(listed, onnx::supported_operators());
}

INSTANTIATE_TEST_SUITE_P(Parts, OnnxOperators, testing::Range(0, kParts));

}  // namespace
}  // namespace pantala::tests::operators_test
