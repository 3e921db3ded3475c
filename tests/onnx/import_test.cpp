// What becomes what when a file is read, and what is said about files that are not right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onnx/model_maker.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::tests::import_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::Model import(const ::onnx::ModelProto& model, const onnx::ImportOptions& options = {},
                   const std::filesystem::path& folder = {}) {
  const std::string file = model.SerializeAsString();
  return onnx::import_model(std::as_bytes(std::span(file)), "m.onnx", options, folder);
}

template <class Error = TypeError>
std::string message(const ::onnx::ModelProto& model, const onnx::ImportOptions& options = {},
                    const std::filesystem::path& folder = {}) {
  return message_of<Error>([&] { import(model, options, folder); });
}

std::vector<std::string> names(const Graph& graph, LeafKind kind) {
  std::vector<std::string> all;
  for (const Leaf& leaf : graph.leaves(kind)) all.push_back(leaf.name);
  return all;
}

ModelMaker linear_model() {
  return ModelMaker("linear")
      .input("x", {2, 3})
      .weight("fc.weight", {4, 3})
      .weight("fc.bias", {4})
      .node("Gemm", {"x", "fc.weight", "fc.bias"}, {"y"})
      .with("transB", 1);
}

TEST(OnnxImport, floating_initialisers_become_parameters) {
  const onnx::Model model = import(linear_model().weight("unused", {7}).made({"y"}));
  EXPECT_EQ(model.name, "linear");
  EXPECT_EQ(model.opset, 17);
  EXPECT_THAT(names(model.graph, LeafKind::parameter),
              testing::UnorderedElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(names(model.graph, LeafKind::input), ElementsAre("x"));
  EXPECT_THAT(model.weights.names(), ElementsAre("fc.bias", "fc.weight"));
  EXPECT_EQ(model.weights.type("fc.weight"), (Type{f32, {4, 3}}));
  EXPECT_EQ(model.graph.output("y").type(), (Type{f32, {2, 4}}));
}

TEST(OnnxImport, nothing_is_trainable_on_request) {
  const onnx::Model model = import(linear_model().made({"y"}), {.trainable = false});
  EXPECT_TRUE(model.graph.leaves(LeafKind::parameter).empty());
  EXPECT_TRUE(model.weights.names().empty());
}

TEST(OnnxImport, nodes_stand_in_any_order) {
  const onnx::Model model = import(ModelMaker("order")
                                       .input("x", {3})
                                       .node("Exp", {"b"}, {"y"})
                                       .node("Neg", {"a"}, {"b"})
                                       .node("Abs", {"x"}, {"a"})
                                       .made({"y"}));
  const auto y = ref::evaluate(model.graph, {model.graph.output("y")},
                               {{"x", Literal::floats({3}, {-1, 0, 2})}});
  EXPECT_DOUBLE_EQ(y[0].f()[0], std::exp(-1.0));
  EXPECT_DOUBLE_EQ(y[0].f()[2], std::exp(-2.0));
}

TEST(OnnxImport, sizes_come_from_the_options) {
  const ::onnx::ModelProto model = ModelMaker("sizes")
                                       .input("x", {0, 0, 3})
                                       .symbolic(0, "batch")
                                       .symbolic(1, "length")
                                       .input("z", {0})
                                       .symbolic(0, "width")
                                       .node("Relu", {"x"}, {"y"})
                                       .made({"y"});
  EXPECT_EQ(
      message(model),
      "m.onnx: input 'x' [batch,length,3]: the size 'batch' must be given; input 'x' "
      "[batch,length,3]: the size 'length' must be given; input 'z' [width]: the size 'width' "
      "must be given");
  EXPECT_EQ(message(model, {.sizes = {{"batsh", 2}}}),
            "m.onnx: it has no symbolic size 'batsh'; did you mean 'batch'?");
  const onnx::Model given =
      import(model, {.sizes = {{"batch", 2}, {"length", 5}}, .shapes = {{"z", {4}}}});
  EXPECT_EQ(given.graph.output("y").type(), (Type{f32, {2, 5, 3}}));
  EXPECT_EQ(message(model, {.shapes = {{"x", {2, 5, 4}}, {"z", {4}}}}),
            "m.onnx: input 'x' has the shape [batch,length,3], not [2,5,4]");
}

TEST(OnnxImport, a_size_and_a_shape_that_contradict_each_other_are_refused) {
  const ::onnx::ModelProto model = ModelMaker("sizes")
                                       .input("x", {0, 3})
                                       .symbolic(0, "batch")
                                       .node("Relu", {"x"}, {"y"})
                                       .made({"y"});
  EXPECT_EQ(message(model, {.sizes = {{"batch", 8}}, .shapes = {{"x", {2, 3}}}}),
            "m.onnx: the size 'batch' is given as 8, but input 'x' [batch,3] is given as [2,3]");
  EXPECT_EQ(
      import(model, {.sizes = {{"batch", 2}}, .shapes = {{"x", {2, 3}}}}).graph.output("y").shape(),
      (Shape{2, 3}));
}

TEST(OnnxImport, inputs_that_decide_shapes_are_bound) {
  const ::onnx::ModelProto model = ModelMaker("bind")
                                       .input("x", {2, 3})
                                       .input("shape", {2}, ::onnx::TensorProto::INT64)
                                       .node("Abs", {"shape"}, {"sizes"})
                                       .node("Reshape", {"x", "sizes"}, {"y"})
                                       .made({"y"});
  EXPECT_EQ(message<UnsupportedError>(model),
            "m.onnx: 1 node cannot be read:\n  Reshape 'Reshape_y': its input 2 decides a shape or "
            "an option: bind 'shape' to its value");
  const onnx::Model bound = import(model, {.bind = {{"shape", Literal::ints({2}, {-3, -2})}}});
  EXPECT_EQ(bound.graph.output("y").shape(), (Shape{3, 2}));
  EXPECT_THAT(names(bound.graph, LeafKind::input), ElementsAre("x"));
  EXPECT_THAT(
      message(model, {.bind = {{"shape", Literal::ints({2}, {3, 2}, i32)}}}),
      HasSubstr("input 'shape' has elements of i64, it is bound to i32[2]: convert the array "
                "to i64 first"));
}

TEST(OnnxImport, lists_everything_that_is_unsupported) {
  ::onnx::ModelProto model = ModelMaker("unsupported")
                                 .input("x", {2, 3})
                                 .node("Unique", {"x"}, {"a"})
                                 .node("Abs", {"a"}, {"after"})
                                 .node("FusedThing", {"x"}, {"b"})
                                 .node("Relu", {"x"}, {"y"})
                                 .made({"y"});
  model.mutable_graph()->mutable_node(2)->set_domain("com.microsoft");
  EXPECT_EQ(message<UnsupportedError>(model),
            "m.onnx: 2 nodes cannot be read:\n  Unique 'Unique_a': there is no such operator "
            "here\n  FusedThing 'FusedThing_b': operators of 'com.microsoft' are not read");
}

// With the shapes of what is refused known, so is what follows.
TEST(OnnxImport, what_follows_a_refused_node_is_listed_too) {
  ::onnx::ModelProto model = ModelMaker("chain")
                                 .input("x", {2, 3})
                                 .node("Frobnicate", {"x"}, {"a"})
                                 .node("Relu", {"a"}, {"b"})
                                 .node("Cast", {"b"}, {"y"})
                                 .with("to", ::onnx::TensorProto::STRING)
                                 .made({"y"});
  EXPECT_THAT(message<UnsupportedError>(model),
              testing::AllOf(HasSubstr("1 node "), HasSubstr("Frobnicate")));
  ::onnx::ValueInfoProto& info = *model.mutable_graph()->add_value_info();
  info.set_name("a");
  ::onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(::onnx::TensorProto::FLOAT);
  for (const int size : {2, 3}) type.mutable_shape()->add_dim()->set_dim_value(size);
  EXPECT_THAT(message<UnsupportedError>(model),
              testing::AllOf(HasSubstr("2 nodes"), HasSubstr("Frobnicate"), HasSubstr("Cast")));
}

TEST(OnnxImport, graphs_that_are_not_right) {
  const auto one = [](const std::string& op, const Names& inputs, const Names& outputs) {
    return ModelMaker("wrong").input("data", {2, 3}).node(op, inputs, outputs);
  };
  EXPECT_EQ(message(one("Relu", {"dato"}, {"y"}).made({"y"})),
            "m.onnx: Relu 'Relu_y': nothing makes its input 'dato'; did you mean 'data'?");
  EXPECT_EQ(message(one("Relu", {"y"}, {"y"}).made({"y"})),
            "m.onnx: Relu 'Relu_y': its inputs depend on its own result");
  EXPECT_EQ(message(one("Relu", {"data"}, {"data"}).made({"data"})),
            "m.onnx: Relu 'Relu_data': 'data' is made twice");
  EXPECT_EQ(message(one("Relu", {"data"}, {"y"}).made({"z"})),
            "m.onnx: nothing makes the output 'z'");
  EXPECT_THAT(message(one("MatMul", {"data", "data"}, {"y"}).made({"y"})),
              HasSubstr("m.onnx: MatMul 'MatMul_y': matmul \"MatMul_y\" (m.onnx:1): "));
  EXPECT_EQ(message(one("Softmax", {"data"}, {"y"}).with("axis", 2).made({"y"})),
            "m.onnx: Softmax 'Softmax_y': axis 2 is out of range for 2 axes");
}

TEST(OnnxImport, damaged_files) {
  const std::string file = linear_model().made({"y"}).SerializeAsString();
  const auto bytes = std::as_bytes(std::span(file)).first(file.size() - 5);
  EXPECT_THROW(onnx::import_model(bytes, "cut.onnx"), ParseError);
  EXPECT_THROW(onnx::import_model({}, "empty.onnx"), ParseError);
  EXPECT_THROW(onnx::import_model(std::filesystem::path("no such file.onnx")), IoError);
  ::onnx::ModelProto model = linear_model().made({"y"});
  model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back();
  EXPECT_EQ(message<ParseError>(model),
            "m.onnx: tensor 'fc.weight': 47 bytes of data, f32[4,3] needs 48");
}

ModelMaker batch_norm_model() {
  return ModelMaker("norm")
      .input("x", {4, 3})
      .weight("bn.weight", {3})
      .weight("bn.bias", {3})
      .weight("bn.running_mean", {3})
      .weight("bn.running_var", {3})
      .node("BatchNormalization",
            {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"n"})
      .node("Dropout", {"n"}, {"y"});
}

TEST(OnnxImport, running_statistics_are_states) {
  const onnx::Model evaluation = import(batch_norm_model().made({"y"}));
  EXPECT_THAT(names(evaluation.graph, LeafKind::parameter),
              testing::UnorderedElementsAre("bn.weight", "bn.bias"));
  EXPECT_THAT(names(evaluation.graph, LeafKind::state),
              testing::UnorderedElementsAre("bn.running_mean", "bn.running_var"));
  EXPECT_TRUE(evaluation.graph.updates().empty());
  const onnx::Model training = import(batch_norm_model().made({"y"}), {.training = true});
  const auto states = names(training.graph, LeafKind::state);
  EXPECT_THAT(states, testing::IsSupersetOf({"bn.running_mean", "bn.running_var", "rng.seed"}));
  EXPECT_GE(training.graph.updates().size(), 2u);
  EXPECT_THAT(training.weights.names(), testing::SizeIs(4));
}

// Norms a to d, of which the file has two in training mode, and dropout in evaluation mode.
ModelMaker partly_frozen_model() {
  ModelMaker maker("frozen", 15);
  maker.input("x", {4, 3});
  const auto norm = [&](const std::string& name, const std::string& from) -> ModelMaker& {
    Names inputs{from};
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
      maker.weight(name + part, {3});
      inputs.push_back(name + part);
    }
    return maker.node("BatchNormalization", inputs, {name});
  };
  norm("a", "x").with("training_mode", 1);
  norm("b", "a");
  norm("c", "b").of_call("torch.ops.aten._native_batch_norm_legit_functional.default");
  norm("d", "c").of_call("torch.ops.aten._native_batch_norm_legit_no_training.default");
  return maker.node("Constant", {}, {"off"})
      .with("value_int", 0)
      .node("Cast", {"off"}, {"mode"})
      .with("to", ::onnx::TensorProto::BOOL)
      .node("Dropout", {"d", "", "mode"}, {"y"});
}

TEST(OnnxImport, layers_may_stay_as_they_were_exported) {
  const auto updated = [](const onnx::ImportOptions& options) {
    const onnx::Model model = import(partly_frozen_model().made({"y"}), options);
    Names found;
    for (const Leaf& leaf : model.graph.leaves(LeafKind::state))
      for (const auto& [moved, value] : model.graph.updates())
        if (moved == leaf.value) found.push_back(leaf.name);
    return found;
  };
  EXPECT_THAT(updated({.training = true, .as_exported = true}),
              testing::UnorderedElementsAre("a.running_mean", "a.running_var", "c.running_mean",
                                            "c.running_var"));
  EXPECT_THAT(updated({.training = true}),
              testing::IsSupersetOf({"b.running_mean", "d.running_var"}));
  EXPECT_THROW(import(partly_frozen_model().made({"y"}), {.as_exported = true}), TypeError);
}

TEST(OnnxImport, optional_inputs_and_shared_weights) {
  const onnx::Model model = import(ModelMaker("shared")
                                       .input("x", {2, 2})
                                       .weight("w", {2, 2})
                                       .number("limit", 1)
                                       .node("Identity", {"w"}, {"same"})
                                       .node("MatMul", {"x", "w"}, {"a"})
                                       .node("MatMul", {"a", "same"}, {"b"})
                                       .node("Cast", {"limit"}, {"high"})
                                       .with("to", 1)
                                       .node("Clip", {"b", "", "high"}, {"y"})
                                       .made({"y"}));
  EXPECT_THAT(names(model.graph, LeafKind::parameter), ElementsAre("w"));
  EXPECT_THAT(model.weights.names(), ElementsAre("w"));
}

TEST(OnnxImport, large_constants_stay_in_the_graph) {
  const onnx::Model model = import(ModelMaker("large")
                                       .input("x", {1 << 15, 1 << 15})
                                       .integers("sizes", {1 << 15, 1 << 15})
                                       .node("ConstantOfShape", {"sizes"}, {"zeros"})
                                       .node("Exp", {"zeros"}, {"ones"})
                                       .node("Add", {"x", "ones"}, {"y"})
                                       .made({"y"}));
  EXPECT_EQ(model.graph.output("y").shape(), (Shape{1 << 15, 1 << 15}));
}

class ExternalData : public testing::Test {
 protected:
  // The weights of the linear model beside the file.
  ::onnx::ModelProto model(const std::string& location, const std::string& offset = "4",
                           const std::string& length = "48") {
    ::onnx::ModelProto made = linear_model().made({"y"});
    ::onnx::TensorProto& tensor = *made.mutable_graph()->mutable_initializer(0);
    tensor.clear_raw_data();
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      tensor.add_external_data()->set_key(key);
      tensor.mutable_external_data(tensor.external_data_size() - 1)->set_value(value);
    }
    return made;
  }
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() / "inner");
    std::ofstream file(folder_.path() / "inner" / "weights.data", std::ios::binary);
    std::ofstream secret(folder_.path() / "secret.data", std::ios::binary);
    for (int k = -1; k < 12; ++k) {
      const auto value = static_cast<float>(k);
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
      secret.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  std::string refused(const ::onnx::ModelProto& made) {
    return message<ParseError>(made, {}, folder_.path() / "inner");
  }

  TemporaryFolder folder_;
};

TEST_F(ExternalData, is_read_from_the_folder) {
  const onnx::Model read = import(model("weights.data"), {}, folder_.path() / "inner");
  const Literal weight = read.weights.read("fc.weight");
  for (int k = 0; k < 12; ++k) EXPECT_EQ(weight.f()[static_cast<std::size_t>(k)], k);
}

TEST_F(ExternalData, stays_in_the_folder) {
  EXPECT_THAT(refused(model("../secret.data")), HasSubstr("its path leads out of it"));
  EXPECT_THAT(refused(model((folder_.path() / "secret.data").string())),
              HasSubstr("its path is absolute"));
  std::filesystem::create_symlink(folder_.path() / "secret.data",
                                  folder_.path() / "inner" / "link.data");
  EXPECT_THAT(refused(model("link.data")), HasSubstr("a link leads out of it"));
  EXPECT_THAT(refused(model("missing.data")), HasSubstr("is no file in the model's folder"));
  EXPECT_THAT(message<ParseError>(model("weights.data")),
              HasSubstr("the model did not come from a folder"));
}

TEST_F(ExternalData, has_the_right_size) {
  EXPECT_THAT(refused(model("weights.data", "8")), HasSubstr("external data end at byte 8 + 48"));
  EXPECT_THAT(refused(model("weights.data", "18446744073709551615")),
              HasSubstr("external data end at byte"));
  EXPECT_THAT(refused(model("weights.data", "4", "44")),
              HasSubstr("external data have 44 bytes, its shape needs 48"));
  EXPECT_THAT(refused(model("weights.data", "-4")), HasSubstr("external offset is no number"));
}

TEST(OnnxImport, a_model_learns) {
  onnx::Model model = import(ModelMaker("mlp")
                                 .input("x", {4, 3})
                                 .weight("fc1.weight", {8, 3})
                                 .weight("fc1.bias", {8})
                                 .weight("fc2.weight", {1, 8})
                                 .node("Gemm", {"x", "fc1.weight", "fc1.bias"}, {"h"})
                                 .with("transB", 1)
                                 .node("Tanh", {"h"}, {"t"})
                                 .node("Gemm", {"t", "fc2.weight"}, {"y"})
                                 .with("transB", 1)
                                 .made({"y"}));
  const Tensor target = model.graph.input("target", {4, 1});
  const Tensor loss = mse_loss(model.graph.output("y"), target);
  Session session = build_session(model.graph, loss,
                                  {.device = "cpu", .threads = 1, .optimizer = optim::sgd(0.05)});
  session.load_weights(model.weights);
  session.set_input("x", Literal::floats({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}));
  session.set_input("target", Literal::floats({4, 1}, {1, -1, 1, 0}));
  session.step();
  const double first = session.loss();
  for (int step = 0; step < 20; ++step) session.step();
  EXPECT_LT(session.loss(), 0.9 * first);
}

}  // namespace
}  // namespace pantala::tests::import_test
