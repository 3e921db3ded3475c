// What a file may not say: each is refused with what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/adapters.h"
#include "onnx/model_maker.h"
#include "onnx/signatures.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "support/errors.h"

namespace pantala::tests::refusals_test {
namespace {

using ::testing::HasSubstr;

template <class Error = TypeError>
std::string message(const ::onnx::ModelProto& model) {
  const std::string file = model.SerializeAsString();
  return message_of<Error>([&] { onnx::import_model(std::as_bytes(std::span(file)), "m.onnx"); });
}

ModelMaker one(const std::string& op, const Names& inputs) {
  return ModelMaker("one").input("x", {2, 3}).node(op, inputs, {"y"});
}

TEST(OnnxRefusals, versions_of_operators_that_are_not_known) {
  const auto of_version = [](std::int64_t opset) {
    return ModelMaker("version", opset).input("x", {2}).node("Relu", {"x"}, {"y"}).made({"y"});
  };
  EXPECT_EQ(message<UnsupportedError>(of_version(99)),
            "m.onnx: its operators are of version 99; versions 1 to 28 are read");
  EXPECT_EQ(message<UnsupportedError>(of_version(28)), "no error");
}

TEST(OnnxRefusals, inputs_and_results_that_the_operator_does_not_have) {
  EXPECT_EQ(message(one("Relu", Names(50, "x")).made({"y"})),
            "m.onnx: Relu 'Relu_y': it has 50 inputs; the operator takes 1 input");
  EXPECT_EQ(message(one("Add", {"x"}).made({"y"})),
            "m.onnx: Add 'Add_y': it has 1 input; the operator takes 2 inputs");
  EXPECT_EQ(message(one("Clip", {"x", "x", "x", "x"}).made({"y"})),
            "m.onnx: Clip 'Clip_y': it has 4 inputs; the operator takes 1 to 3 inputs");
  EXPECT_EQ(message(one("Concat", {}).with("axis", 0).made({"y"})),
            "m.onnx: Concat 'Concat_y': it has 0 inputs; the operator takes 1 or more inputs");
  EXPECT_EQ(message(ModelMaker("two").input("x", {2}).node("Relu", {"x"}, {"y", "z"}).made({"y"})),
            "m.onnx: Relu 'Relu_y': it has 2 results; the operator takes 1 result");
  // What is left out at the end is not there.
  EXPECT_EQ(message(one("Clip", {"x", "", "", ""}).made({"y"})), "no error");
}

TEST(OnnxRefusals, attributes_that_the_operator_does_not_have) {
  EXPECT_EQ(
      message(one("Softmax", {"x"}).with("axes", 1).made({"y"})),
      "m.onnx: Softmax 'Softmax_y': there is no attribute 'axes'; did you mean 'axis'?; it has "
      "axis");
  EXPECT_EQ(message(one("Tanh", {"x"}).with("strength", 1).made({"y"})),
            "m.onnx: Tanh 'Tanh_y': there is no attribute 'strength'; the operator has none");
  EXPECT_THAT(message(one("Erf", {"x"}).with("strength", 1).made({"y"})),
              HasSubstr("there is no attribute 'strength'; the operator has none"));
}

TEST(OnnxRefusals, attributes_and_inputs_of_another_version) {
  const auto of_version = [](std::int64_t opset, const std::string& op, const Names& inputs,
                             const std::string& attribute) {
    ModelMaker made("version", opset);
    made.input("x", {2, 3}).integers("pads", {0, 1, 0, 1}).node(op, inputs, {"y"});
    if (attribute == "pads" || attribute == "axes")
      made.with(attribute, Sizes{0, 1, 0, 1});
    else if (!attribute.empty())
      made.with_number(attribute, 0.25F);
    return message(made.made({"y"}));
  };
  for (const char* bound : {"min", "max"}) {
    EXPECT_EQ(of_version(10, "Clip", {"x"}, bound), "no error");
    EXPECT_EQ(of_version(13, "Clip", {"x"}, bound),
              "m.onnx: Clip 'Clip_y': there is no attribute '" + std::string(bound) +
                  "' in version 13 of the operators; the operator has none");
  }
  EXPECT_EQ(
      of_version(6, "Clip", {"x", "x", "x"}, ""),
      "m.onnx: Clip 'Clip_y': it has 3 inputs; the operator takes 1 input in version 6 of the "
      "operators");
  EXPECT_EQ(of_version(11, "Dropout", {"x"}, "ratio"), "no error");
  EXPECT_EQ(of_version(13, "Dropout", {"x"}, "ratio"),
            "m.onnx: Dropout 'Dropout_y': there is no attribute 'ratio' in version 13 of the "
            "operators; it has seed");
  EXPECT_EQ(of_version(10, "Pad", {"x"}, "pads"), "no error");
  EXPECT_EQ(of_version(13, "Pad", {"x", "pads"}, "value"),
            "m.onnx: Pad 'Pad_y': there is no attribute 'value' in version 13 of the operators; it "
            "has mode");
  EXPECT_EQ(
      of_version(13, "Pad", {"x"}, "pads"),
      "m.onnx: Pad 'Pad_y': it has 1 input; the operator takes 2 to 3 inputs in version 13 of "
      "the operators");
  EXPECT_EQ(of_version(13, "ReduceSum", {"x"}, "axes").substr(0, 70),
            "m.onnx: ReduceSum 'ReduceSum_y': there is no attribute 'axes' in versi");
}

TEST(OnnxRefusals, integers_divided_by_a_constant_zero) {
  for (const char* op : {"Div", "Mod"}) {
    const auto divided = [&](const std::string& dividend) {
      return message(ModelMaker("zero")
                         .input("x", {3}, ::onnx::TensorProto::INT64)
                         .integers("a", {4, 5, 6})
                         .integers("b", {1, 0, 2})
                         .node(op, {dividend, "b"}, {"y"})
                         .made({"y"}));
    };
    for (const char* dividend : {"a", "x"})
      EXPECT_THAT(divided(dividend), HasSubstr("element 1 of its divisor i64[3] is 0; integers are "
                                               "divided by other numbers only"))
          << op << " " << dividend;
  }
}

TEST(OnnxRefusals, every_operator_that_is_read_has_a_signature) {
  for (const std::string& op : onnx::supported_operators())
    EXPECT_NE(onnx::find_signature(op, onnx::kNewestOpset), nullptr) << op;
}

}  // namespace
}  // namespace pantala::tests::refusals_test
