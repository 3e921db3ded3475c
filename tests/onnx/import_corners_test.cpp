// Corners of operators that real files meet: large numbers, f16, shapes, indices, sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/model_maker.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"
#include "pantala/session.h"

namespace pantala::tests::import_corners_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = ::onnx::TensorProto;

onnx::Model import(const ::onnx::ModelProto& model, const onnx::ImportOptions& options = {}) {
  const std::string file = model.SerializeAsString();
  return onnx::import_model(std::as_bytes(std::span(file)), "m.onnx", options);
}

// The output "y" on the CPU, for the input "x".
std::vector<double> computed(const onnx::Model& model, const Literal& x) {
  Session session = build_inference_session(model.graph);
  session.load_weights(model.weights, {.strict = false});
  session.set_input("x", x);
  session.step();
  return session.output("y").to_doubles();
}

// op(x), or op(x) in f16 between two casts.
::onnx::ModelProto one_node(const std::string& op, const Sizes& sizes, bool half) {
  ModelMaker maker("one", 17);
  maker.input("x", sizes);
  if (!half) return maker.node(op, {"x"}, {"y"}).made({"y"});
  maker.node("Cast", {"x"}, {"h"}).with("to", std::int64_t{Kind::FLOAT16});
  maker.node(op, {"h"}, {"r"});
  return maker.node("Cast", {"r"}, {"y"}).with("to", std::int64_t{Kind::FLOAT}).made({"y"});
}

// What is trained of y = softmax(x * scale + mask).
std::vector<std::string> trained(const std::string& scale, const std::string& mask,
                                 const std::vector<float>& values) {
  ModelMaker maker("masked");
  maker.input("x", {1, 2, 2}).weight(scale, {1}).weight(mask, {1, 2, 2}, values);
  maker.node("Mul", {"x", scale}, {"scaled"}).node("Add", {"scaled", mask}, {"sum"});
  return import(maker.node("Softmax", {"sum"}, {"y"}).made({"y"})).weights.names();
}

TEST(OnnxCorners, masks_and_numbers_are_no_weights) {
  const float hidden = -3.4e38F;
  EXPECT_THAT(trained("val_3", "where", {0, hidden, 0, 0}), ElementsAre());
  EXPECT_THAT(trained("val_3", "layer.mask", {0, -INFINITY, 0, 0}), ElementsAre());
  EXPECT_THAT(trained("val_3", "where", {0, 0, 0, 0}), ElementsAre());
  EXPECT_THAT(trained("scale", "where", {0, hidden, 0, 1}), ElementsAre("scale", "where"));
  EXPECT_THAT(trained("layer.scale", "layer.bias", {0, 0, 0, 0}),
              ElementsAre("layer.bias", "layer.scale"));
}

// Zeros that are used otherwise are a weight.
TEST(OnnxCorners, zeros_are_a_mask_only_before_a_softmax) {
  ModelMaker maker("zeros");
  maker.input("x", {1, 2}).weight("bias", {1, 2}, {0, 0});
  EXPECT_THAT(import(maker.node("Add", {"x", "bias"}, {"y"}).made({"y"})).weights.names(),
              ElementsAre("bias"));
}

TEST(OnnxCorners, sums_of_halves_do_not_overflow) {
  const Shape shape{1, 1, 112, 112};
  const Literal x = Literal::floats(shape, std::vector<double>(112 * 112, 6.0));
  EXPECT_THAT(computed(import(one_node("GlobalAveragePool", {1, 1, 112, 112}, true)), x),
              ElementsAre(6));
  EXPECT_THAT(computed(import(one_node("ReduceMean", {1, 1, 112, 112}, true)), x), ElementsAre(6));
  const std::vector<double> logs =
      computed(import(one_node("LogSoftmax", {1, 70000}, true)),
               Literal::floats({1, 70000}, std::vector<double>(70000, 0.0)));
  EXPECT_NEAR(logs[0], -std::log(70000.0), 0.01);
}

TEST(OnnxCorners, hyperbolic_functions_of_large_numbers) {
  const double inf = INFINITY;
  const Literal x = Literal::floats({5}, {89, -89, inf, 1e20, 0.001});
  const auto near = [&](const std::string& op, auto function, std::size_t count) {
    const std::vector<double> y = computed(import(one_node(op, {5}, false)), x);
    for (const std::size_t k :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
      if (k >= count) break;
      const double expected = static_cast<float>(function(x.at(static_cast<std::int64_t>(k))));
      if (std::isfinite(expected))
        EXPECT_NEAR(y[k], expected, 2e-6 * std::fabs(expected)) << op << " " << k;
      else
        EXPECT_EQ(y[k], expected) << op << " " << k;
    }
  };
  near("Sinh", [](double v) { return std::sinh(v); }, 5);
  near("Cosh", [](double v) { return std::cosh(v); }, 5);
  near("Asinh", [](double v) { return std::asinh(v); }, 5);
  const std::vector<double> acosh = computed(import(one_node("Acosh", {5}, false)), x);
  EXPECT_NEAR(acosh[3], std::acosh(1e20), 1e-4);
  EXPECT_EQ(acosh[2], inf);
}

// Two norms over one running statistic, as exporters write them that keep equal tensors once.
TEST(OnnxCorners, norms_may_share_their_statistics) {
  ModelMaker maker("shared");
  maker.input("x", {4, 3});
  for (const char* name : {"scale", "bias", "mean", "var"}) maker.weight(name, {3});
  maker.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"h"});
  maker.node("BatchNormalization", {"h", "scale", "bias", "mean", "var"}, {"y"});
  const onnx::Model model = import(maker.made({"y"}), {.training = true});
  EXPECT_EQ(model.graph.leaves(LeafKind::state).size(), 4U);
  EXPECT_EQ(model.weights.read("mean"), model.weights.read("mean.2"));
  EXPECT_EQ(model.weights.read("var"), model.weights.read("var.2"));
}

TEST(OnnxCorners, scales_of_layer_norm_may_have_the_rank_of_the_input) {
  ModelMaker maker("norm");
  maker.input("x", {2, 3, 8}).weight("scale", {1, 1, 8}).weight("bias", {1, 8});
  maker.node("LayerNormalization", {"x", "scale", "bias"}, {"y"});
  EXPECT_EQ(import(maker.made({"y"})).graph.output("y").shape(), (Shape{2, 3, 8}));
}

TEST(OnnxCorners, sizes_of_minus_one_are_unknown) {
  const ::onnx::ModelProto model =
      ModelMaker("unknown").input("x", {-1, 3}).node("Relu", {"x"}, {"y"}).made({"y"});
  EXPECT_EQ(import(model, {.shapes = {{"x", {2, 3}}}}).graph.output("y").shape(), (Shape{2, 3}));
  EXPECT_THROW(import(model), TypeError);
}

TEST(OnnxCorners, an_index_beyond_its_axis_names_no_other_element) {
  const auto model = [](const Sizes& index) {
    ModelMaker maker("gather");
    maker.input("x", {3, 4}).integers("flat", index).integers("shape", {1, 2});
    maker.node("Reshape", {"flat", "shape"}, {"index"});
    return maker.node("GatherND", {"x", "index"}, {"y"}).made({"y"});
  };
  std::vector<double> values;
  for (int k = 0; k < 12; ++k) values.push_back(k);
  const Literal x = Literal::floats({3, 4}, values);
  EXPECT_THAT(computed(import(model({1, -1})), x), ElementsAre(7));
  EXPECT_THROW(computed(import(model({0, 9})), x), ValueError);
  EXPECT_THROW(computed(import(model({-4, 0})), x), ValueError);
}

TEST(OnnxCorners, scales_are_f32_and_so_are_the_lengths_they_make) {
  const auto length = [](std::int64_t in, float scale) {
    ModelMaker maker("resize");
    maker.input("x", {in});
    ::onnx::ModelProto model = maker.node("Resize", {"x", "", "scales"}, {"y"}).made({"y"});
    ::onnx::TensorProto& scales = *model.mutable_graph()->add_initializer();
    scales.set_name("scales");
    scales.set_data_type(Kind::FLOAT);
    scales.add_dims(1);
    scales.add_float_data(scale);
    return import(model).graph.output("y").shape()[0];
  };
  EXPECT_EQ(length(5, 1.4F), 7);
  EXPECT_EQ(length(10, 0.7F), 7);
  EXPECT_EQ(length(10, 1.3F), 13);
  EXPECT_EQ(length(3, 1.5F), 4);
}

TEST(OnnxCorners, constants_keep_every_integer) {
  ModelMaker maker("fill");
  maker.input("x", {1}, Kind::INT64).integers("sizes", {2});
  maker.node("ConstantOfShape", {"sizes"}, {"c"});
  ::onnx::ModelProto model = maker.node("Add", {"x", "c"}, {"y"}).made({"y"});
  ::onnx::AttributeProto& value = *model.mutable_graph()->mutable_node(0)->add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(Kind::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data((std::int64_t{1} << 60) + 1);
  const onnx::Model read = import(model);
  Session session = build_inference_session(read.graph);
  session.set_input("x", Literal::ints({1}, {0}));
  session.step();
  EXPECT_EQ(session.output("y").i()[1], (std::int64_t{1} << 60) + 1);
}

// The gradient of the sum of "y" by the weight "w", for the input "x".
std::vector<double> gradient(const ::onnx::ModelProto& file, const Literal& x) {
  onnx::Model read = import(file, {.training = true});
  const Tensor loss = sum(read.graph.output("y"));
  Session session = build_session(read.graph, loss, {.observe_gradients = true});
  session.load_weights(read.weights, {.strict = false});
  session.set_input("x", x);
  session.step();
  return session.gradient("w").to_doubles();
}

TEST(OnnxCorners, gradients_end_where_pytorch_detached) {
  const auto file = [](const std::string& target) {
    ModelMaker maker("cut");
    maker.input("x", {2}).weight("w", {2}, {3, 4});
    maker.node("Mul", {"x", "w"}, {"a"}).node("Identity", {"a"}, {"b"}).of_call(target);
    return maker.node("Mul", {"a", "b"}, {"y"}).made({"y"});
  };
  const Literal x = Literal::floats({2}, {1, 2});
  EXPECT_THAT(gradient(file("torch.ops.aten.alias.default"), x), ElementsAre(6, 32));
  EXPECT_THAT(gradient(file("torch.ops.aten.detach.default"), x), ElementsAre(3, 16));
}

TEST(OnnxCorners, rows_of_padding_get_no_gradient) {
  const auto file = [](const std::string& arguments) {
    ModelMaker maker("table");
    maker.input("x", {4}, Kind::INT64).weight("w", {3, 1}, {3, 4, 5});
    maker.node("Gather", {"w", "x"}, {"y"}).of_call("torch.ops.aten.embedding.default", arguments);
    return maker.made({"y"});
  };
  const Literal x = Literal::ints({4}, {0, 1, 1, 2});
  EXPECT_THAT(gradient(file("%w, %x"), x), ElementsAre(1, 2, 1));
  EXPECT_THAT(gradient(file("%w, %x, -1"), x), ElementsAre(1, 2, 1));
  EXPECT_THAT(gradient(file("%w, %x, 1"), x), ElementsAre(1, 0, 1));
  EXPECT_THAT(gradient(file("%w, %x, 2, False"), x), ElementsAre(1, 2, 0));
  EXPECT_THROW(gradient(file("%w, %x, 2, True"), x), UnsupportedError);
}

}  // namespace
}  // namespace pantala::tests::import_corners_test
