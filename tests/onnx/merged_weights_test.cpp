// Weights that an exporter merged because they were equal are separate again; tied ones stay tied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/model_maker.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "support/errors.h"

namespace pantala::tests::merged_weights_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

onnx::Model import(const ::onnx::ModelProto& model, const onnx::ImportOptions& options = {}) {
  const std::string file = model.SerializeAsString();
  return onnx::import_model(std::as_bytes(std::span(file)), "m.onnx", options);
}

std::vector<std::string> names(const Graph& graph, LeafKind kind) {
  std::vector<std::string> all;
  for (const Leaf& leaf : graph.leaves(kind))
    if (!leaf.name.starts_with("rng.")) all.push_back(leaf.name);
  return all;
}

std::vector<float> counted_weights(int step) {
  std::vector<float> values;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      values.push_back(0.1F * static_cast<float>((i * step + j * 5) % 7) - 0.3F);
  return values;
}

// What the two norms of a network read, and the layers that their nodes tell, if they do.
struct Norms {
  Names first, second;
  std::string first_layer = {}, second_layer = {};
};
const Names kOwnFirst{"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"};
const Names kOwnSecond{"bn2.weight", "bn2.bias", "bn2.running_mean", "bn2.running_var"};
// All ones are one tensor, and all zeros.
const Names kMerged{"bn1.weight", "bn1.bias", "bn1.bias", "bn1.weight"};

// Linear, batch norm, ReLU, linear, batch norm, as they are before the first step.
ModelMaker begin() {
  ModelMaker maker("norms");
  return maker.input("x", {4, 3})
      .weight("fc1.weight", {3, 3}, counted_weights(3))
      .weight("fc2.weight", {3, 3}, counted_weights(4))
      .weight("bn1.weight", {3}, {1, 1, 1})
      .weight("bn1.bias", {3}, {0, 0, 0});
}
::onnx::ModelProto finished(ModelMaker& maker, const Norms& norms) {
  const auto norm = [&](const std::string& layer, const std::string& x, Names weights,
                        const std::string& y) {
    weights.insert(weights.begin(), x);
    maker.node("BatchNormalization", weights, {y});
    if (layer.starts_with('/'))
      maker.named(layer + "/BatchNormalization");
    else if (!layer.empty())
      maker.in_layer(layer);
  };
  maker.node("Gemm", {"x", "fc1.weight"}, {"f"}).with("transB", 1);
  norm(norms.first_layer, "f", norms.first, "n");
  maker.node("Relu", {"n"}, {"r"}).node("Gemm", {"r", "fc2.weight"}, {"g"}).with("transB", 1);
  norm(norms.second_layer, "g", norms.second, "logits");
  return maker.made({"logits"});
}

// As PyTorch's older exporter writes it: an Identity for each name but the first.
::onnx::ModelProto merged_by_identity() {
  ModelMaker maker = begin();
  for (const char* name : {"bn2.running_var", "bn2.weight", "bn1.running_var"})
    maker.node("Identity", {"bn1.weight"}, {name});
  for (const char* name : {"bn2.running_mean", "bn2.bias", "bn1.running_mean"})
    maker.node("Identity", {"bn1.bias"}, {name});
  return finished(maker, {kOwnFirst, kOwnSecond});
}
// As the newer one does: the nodes read the merged tensors, and tell their layers.
::onnx::ModelProto merged_in_place() {
  ModelMaker maker = begin();
  return finished(maker, {kMerged, kMerged, "bn1", "bn2"});
}

Session session_of(const onnx::Model& model,
                   const std::vector<optim::ParameterGroup>& groups = {}) {
  Graph graph = model.graph;
  const Tensor loss = cross_entropy(graph.output("logits"), graph.input("labels", {4}, i64));
  CompileOptions options{.threads = 1, .optimizer = optim::sgd(0.1)};
  options.training.groups = groups;
  Session session = build_session(graph, loss, options);
  session.load_weights(model.weights);
  std::vector<double> x;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) x.push_back((i * 7 + j * 3) % 5 - 2);
  session.set_input("x", Literal::floats({4, 3}, x));
  session.set_input("labels", Literal::ints({4}, {0, 1, 2, 0}));
  return session;
}

void expect_near(const Literal& got, const std::vector<double>& expected) {
  for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(got.f()[k], expected[k], 2e-5) << k;
}

// Losses, parameters and statistics of PyTorch 2.15: the same network in train(), SGD at a rate of
// 0.1, three steps.
void expect_trained_as_in_pytorch(const onnx::Model& model) {
  Session session = session_of(model);
  for (const double loss : {1.836079117, 1.277734637, 0.952872446}) {
    session.step();
    EXPECT_NEAR(session.loss(), loss, 2e-5);
  }
  expect_near(session.parameter("bn1.weight"), {0.967873894, 0.983373694, 1.047459556});
  expect_near(session.parameter("bn2.weight"), {0.858825844, 0.984743116, 1.006168711});
  expect_near(session.parameter("bn2.bias"), {0.061172537, -0.039882589, -0.021289948});
  expect_near(session.state("bn1.running_mean"), {0.033737839, -0.05399532, 0.000157496});
  expect_near(session.state("bn1.running_var"), {0.87200192, 0.827698286, 0.812172259});
  expect_near(session.state("bn2.running_var"), {0.756974181, 0.764074805, 0.761478802});
}

TEST(MergedWeights, a_fresh_network_is_trained_as_in_pytorch) {
  for (const ::onnx::ModelProto& file : {merged_by_identity(), merged_in_place()}) {
    const onnx::Model model = import(file, {.training = true});
    EXPECT_THAT(names(model.graph, LeafKind::parameter),
                UnorderedElementsAre("fc1.weight", "fc2.weight", "bn1.weight", "bn1.bias",
                                     "bn2.weight", "bn2.bias"));
    EXPECT_THAT(model.warnings, IsEmpty());
    expect_trained_as_in_pytorch(model);
    // Evaluation has the same leaves.
    const onnx::Model evaluation = import(file, {.evaluation = true});
    EXPECT_EQ(evaluation.weights.names(), model.weights.names());
  }
}

TEST(MergedWeights, without_layers_every_norm_has_its_own) {
  ModelMaker maker = begin();
  const onnx::Model model = import(finished(maker, {kMerged, kMerged}), {.training = true});
  EXPECT_EQ(names(model.graph, LeafKind::parameter).size(), 6U);
  EXPECT_EQ(names(model.graph, LeafKind::state).size(), 4U);
  EXPECT_THAT(model.warnings,
              ElementsAre(HasSubstr("'bn1.bias', 'bn1.weight': read by several nodes, and the file "
                                    "does not say whether that is one weight")));
  Session session = session_of(model);
  session.step();
  EXPECT_NEAR(session.loss(), 1.836079117, 2e-5);
  session.step();
  EXPECT_NEAR(session.loss(), 1.277734637, 2e-5);
}

TEST(MergedWeights, statistics_are_found_through_identity) {
  ModelMaker maker = begin();
  maker.weight("bn1.running_mean", {3}, {0, 0, 0}).weight("bn1.running_var", {3}, {1, 1, 1});
  maker.node("Identity", {"bn1.running_mean"}, {"/bn1/Identity_output_0"});
  maker.node("Identity", {"/bn1/Identity_output_0"}, {"/bn1/Identity_1_output_0"});
  const Names through{"bn1.weight", "bn1.bias", "/bn1/Identity_1_output_0", "bn1.running_var"};
  const onnx::Model model =
      import(finished(maker, {through, kMerged, "bn1", "bn2"}), {.training = true});
  EXPECT_THAT(names(model.graph, LeafKind::state),
              UnorderedElementsAre("bn1.running_mean", "bn1.running_var", "bn2.running_mean",
                                   "bn2.running_var"));
  expect_trained_as_in_pytorch(model);
}

TEST(MergedWeights, copied_layers_are_separate_whatever_their_values) {
  const onnx::Model model = import(ModelMaker("clones")
                                       .input("x", {2, 3})
                                       .weight("layers.0.weight", {3, 3}, counted_weights(3))
                                       .node("Identity", {"layers.0.weight"}, {"layers.1.weight"})
                                       .node("MatMul", {"x", "layers.0.weight"}, {"a"})
                                       .node("MatMul", {"a", "layers.1.weight"}, {"y"})
                                       .made({"y"}));
  EXPECT_THAT(names(model.graph, LeafKind::parameter),
              UnorderedElementsAre("layers.0.weight", "layers.1.weight"));
  EXPECT_EQ(model.weights.read("layers.0.weight"), model.weights.read("layers.1.weight"));
}

TEST(MergedWeights, tied_weights_stay_tied) {
  ModelMaker maker("tied");
  maker.input("t", {2}, ::onnx::TensorProto::INT64)
      .weight("emb.weight", {3, 3}, counted_weights(3))
      .weight("norm.weight", {3}, {1, 2, 3})
      .weight("norm.bias", {3}, {0, 1, 0})
      .node("Gather", {"emb.weight", "t"}, {"h"})
      .node("LayerNormalization", {"h", "norm.weight", "norm.bias"}, {"n"})
      .in_layer("norm")
      .node("LayerNormalization", {"n", "norm.weight", "norm.bias"}, {"m"})
      .in_layer("other")
      .node("Identity", {"emb.weight"}, {"/head/Identity_output_0"})
      .node("Gemm", {"m", "/head/Identity_output_0"}, {"y"})
      .with("transB", 1)
      .in_layer("head");
  const onnx::Model model = import(maker.made({"y"}));
  EXPECT_THAT(names(model.graph, LeafKind::parameter),
              UnorderedElementsAre("emb.weight", "norm.weight", "norm.bias"));
}

// A norm that is called twice tells the same layer both times.
TEST(MergedWeights, a_layer_that_is_used_twice_has_one_set_of_weights) {
  ModelMaker maker("twice");
  maker.input("x", {4, 3}).weight("n.weight", {3}, {1, 1, 1}).weight("n.bias", {3}, {0, 0, 0});
  maker.node("LayerNormalization", {"x", "n.weight", "n.bias"}, {"a"}).in_layer("n");
  maker.node("LayerNormalization", {"a", "n.weight", "n.bias"}, {"b"}).in_layer("n");
  maker.node("LayerNormalization", {"b", "n.weight", "n.bias"}, {"y"}).in_layer("m");
  EXPECT_THAT(names(import(maker.made({"y"})).graph, LeafKind::parameter),
              UnorderedElementsAre("n.weight", "n.bias", "m.weight", "m.bias"));
}

// --- one batch norm for both places

const Names kShared{"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"};

ModelMaker begin_shared(bool with_statistics = true) {
  ModelMaker maker("shared");
  maker.input("x", {4, 3})
      .weight("fc1.weight", {3, 3}, counted_weights(3))
      .weight("fc2.weight", {3, 3}, counted_weights(4));
  for (const std::string& name : kShared) {
    if (name.find("running") != std::string::npos && !with_statistics) continue;
    const bool is_one = name.ends_with("weight") || name.ends_with("var");
    maker.weight(name, {3}, std::vector<float>(3, is_one ? 1.0F : 0.0F));
  }
  return maker;
}
// The second use reads what the first left, which the newer exporter writes as an Identity.
::onnx::ModelProto shared_norm(bool of_training) {
  ModelMaker maker = begin_shared();
  Names second = kShared;
  if (of_training) {
    maker.node("Identity", {"bn.running_mean"}, {"getitem_3"}).in_layer("bn");
    maker.node("Identity", {"bn.running_var"}, {"getitem_4"}).in_layer("bn");
    second = {"bn.weight", "bn.bias", "getitem_3", "getitem_4"};
  }
  ::onnx::ModelProto model = finished(maker, {kShared, second, "bn", "bn"});
  model.set_producer_name("pytorch");
  return model;
}

// As the older one writes it: the layer is in the nodes' names.
::onnx::ModelProto shared_norm_of_older_exporter(bool of_training) {
  ModelMaker maker = begin_shared(of_training);
  if (!of_training) {
    maker.node("Identity", {"bn.weight"}, {"bn.running_var"}).named("Identity_0");
    maker.node("Identity", {"bn.bias"}, {"bn.running_mean"}).named("Identity_1");
  }
  return finished(maker, {kShared, kShared, "/bn", "/bn_1"});
}

// Of PyTorch 2.15, as above.
void expect_shared_norm_trained(const onnx::Model& model) {
  EXPECT_THAT(model.warnings, IsEmpty());
  EXPECT_THAT(names(model.graph, LeafKind::state),
              UnorderedElementsAre("bn.running_mean", "bn.running_var"));
  Session session = session_of(model);
  session.step();
  EXPECT_NEAR(session.loss(), 1.836079116, 2e-5);
  expect_near(session.state("bn.running_mean"), {0.004949774, -0.029978923, 0.007166965});
  expect_near(session.state("bn.running_var"), {0.866966053, 0.851261829, 0.848740682});
  session.step();
  session.step();
  EXPECT_NEAR(session.loss(), 0.952178249, 2e-5);
  expect_near(session.parameter("bn.weight"), {0.826983573, 0.964863000, 1.054578224});
  expect_near(session.state("bn.running_var"), {0.672457581, 0.643722365, 0.627630522});
}

TEST(MergedWeights, statistics_of_a_norm_that_is_used_twice_follow_both_uses) {
  for (const bool of_training : {false, true})
    expect_shared_norm_trained(import(shared_norm(of_training), {.training = true}));
}

TEST(MergedWeights, the_older_exporter_tells_by_names_that_a_norm_is_used_twice) {
  for (const bool of_training : {false, true})
    expect_shared_norm_trained(
        import(shared_norm_of_older_exporter(of_training), {.training = true}));
}

// "/block/seq/seq.0_1/..." is the second use of "block.seq.0".
TEST(MergedWeights, layers_of_the_older_exporter_may_be_nested) {
  ModelMaker maker("nested");
  maker.input("x", {4, 3}).weight("block.seq.0.weight", {3}, {1, 1, 1});
  maker.weight("block.seq.0.bias", {3}, {0, 0, 0});
  std::string x = "x";
  for (const char* layer : {"/block/seq/seq.0", "/block/seq/seq.0_1", "/block/seq/seq.1"}) {
    maker.node("LayerNormalization", {x, "block.seq.0.weight", "block.seq.0.bias"}, {layer});
    maker.named(std::string(layer) + "/LayerNormalization");
    x = layer;
  }
  // Some other tool merged them in place: equal weights do not stand side by side.
  EXPECT_THAT(import(maker.made({x})).weights.names(),
              ElementsAre("block.seq.0.bias", "block.seq.0.weight", "block.seq.1.bias",
                          "block.seq.1.weight"));
}

// The older exporter gives merged weights names of their own: these two layers are tied.
TEST(MergedWeights, what_two_layers_read_is_tied_where_equal_weights_stand_side_by_side) {
  for (const char* layer : {"/n", "/m"}) {
    ModelMaker maker("tied");
    maker.input("x", {4, 3}).weight("n.weight", {3}, {1, 1, 1}).weight("n.bias", {3}, {0, 0, 0});
    maker.weight("fc.weight", {3, 3}, counted_weights(3));
    maker.node("Identity", {"n.bias"}, {"fc.bias"}).named("Identity_0");
    maker.node("LayerNormalization", {"x", "n.weight", "n.bias"}, {"a"}).named("/n/Layer");
    maker.node("Gemm", {"a", "fc.weight", "fc.bias"}, {"b"}).named("/fc/Gemm");
    maker.node("LayerNormalization", {"b", "n.weight", "n.bias"}, {"y"});
    maker.named(layer + std::string("/LayerNormalization"));
    EXPECT_THAT(import(maker.made({"y"})).weights.names(),
                ElementsAre("fc.bias", "fc.weight", "n.bias", "n.weight"));
  }
}

// What the network itself computes twice with one parameter.
TEST(MergedWeights, functions_of_the_network_share_their_parameter) {
  for (const bool older : {false, true}) {
    ModelMaker maker("functions");
    maker.input("x", {4, 3}).weight("g", {3}, {1, 1, 1});
    maker.node("RMSNormalization", {"x", "g"}, {"a"}).named("/RMSNormalization");
    if (!older) maker.named("n").in_network("rms_norm");
    maker.node("RMSNormalization", {"a", "g"}, {"y"}).named("/RMSNormalization_1");
    if (!older) maker.named("m").in_network("rms_norm_1");
    EXPECT_THAT(import(maker.made({"y"})).weights.names(), ElementsAre("g"));
  }
}

// --- calls

// Both forms in which PyTorch has written it.
const char* const kSignatures[] = {
    "\n# inputs\np_a_weight: PARAMETER target='a.weight'\np_a_bias: PARAMETER target='a.bias'\n"
    "p_b_weight: PARAMETER target='b.weight'\np_b_bias: PARAMETER target='b.bias'\nx: USER_INPUT\n",
    "ExportGraphSignature(input_specs=[InputSpec(kind=<InputKind.PARAMETER: 2>, "
    "arg=TensorArgument(name='p_a_weight'), target='a.weight', persistent=None), "
    "InputSpec(arg=TensorArgument(name='p_a_bias'), target='a.bias'), "
    "InputSpec(arg=TensorArgument(name='p_b_weight'), target='b.weight'), "
    "InputSpec(arg=TensorArgument(name='p_b_bias'), target='b.bias')])",
};

// Two linear layers, the second as a product and a sum; all that is equal is one tensor.
::onnx::ModelProto called(const std::string& first, const std::string& second,
                          const char* signature) {
  ModelMaker maker("called");
  maker.input("x", {4, 3}).signature(signature);
  maker.weight("a.weight", {3, 3}, counted_weights(3)).weight("a.bias", {3}, {1, 2, 3});
  maker.node("Gemm", {"x", "a.weight", "a.bias"}, {"h"}).in_layer("a").called_with(first);
  maker.node("MatMul", {"h", "a.weight"}, {"p"}).in_layer("b").called_with(second);
  maker.node("Add", {"p", "a.bias"}, {"y"}).in_layer("b").called_with(second);
  return maker.made({"y"});
}

TEST(MergedWeights, calls_tell_the_parameters_whatever_their_values) {
  for (const char* signature : kSignatures) {
    const onnx::Model model =
        import(called("%x, %p_a_weight, %p_a_bias", "%h, %p_b_weight, %p_b_bias", signature),
               {.training = true});
    EXPECT_THAT(model.weights.names(), ElementsAre("a.bias", "a.weight", "b.bias", "b.weight"));
    EXPECT_EQ(model.weights.read("b.bias"), model.weights.read("a.bias"));
    EXPECT_THAT(model.warnings, IsEmpty());
  }
}

TEST(MergedWeights, calls_tell_what_is_tied) {
  const onnx::Model model =
      import(called("%x, %p_a_weight, %p_a_bias", "%h, %p_a_weight, %p_b_bias", kSignatures[0]),
             {.training = true});
  EXPECT_THAT(model.weights.names(), ElementsAre("a.bias", "a.weight", "b.bias"));
  EXPECT_THAT(model.warnings, IsEmpty());
}

TEST(TrainingNotes, a_bias_that_the_exporter_left_out_is_named) {
  ModelMaker maker("dropped");
  maker.input("x", {4, 3}).weight("a.weight", {3, 3}, counted_weights(3)).signature(kSignatures[0]);
  maker.node("Gemm", {"x", "a.weight"}, {"y"}).in_layer("a");
  maker.called_with("%x, %p_a_weight, %p_a_bias");
  EXPECT_THAT(import(maker.made({"y"}), {.training = true}).warnings,
              ElementsAre(HasSubstr("left out 'a.bias', zeros so far")));
}

// --- without calls

TEST(MergedWeights, scales_of_layers_are_separate) {
  ModelMaker maker("scales");
  maker.input("x", {4, 3, 2, 2}).weight("a.act.weight", {3, 1, 1}, {1, 1, 1});
  maker.node("PRelu", {"x", "a.act.weight"}, {"h"}).in_layer("a.act");
  maker.node("Mul", {"a.act.weight", "h"}, {"i"}).in_layer("a");
  maker.node("PRelu", {"i", "a.act.weight"}, {"j"}).in_layer("b.act");
  maker.node("Mul", {"a.act.weight", "j"}, {"y"}).in_layer("b");
  EXPECT_THAT(import(maker.made({"y"})).weights.names(),
              ElementsAre("a.act.weight", "b.act.weight", "b.weight"));
}

TEST(MergedWeights, entries_of_a_list_are_parameters) {
  ModelMaker maker("list");
  maker.input("x", {4, 3}).weight("gammas.0", {3}, {1, 1, 1});
  maker.node("Identity", {"gammas.0"}, {"gammas.1"}).named("Identity_0");
  maker.node("Mul", {"x", "gammas.0"}, {"h"}).named("/Mul");
  maker.node("Mul", {"h", "gammas.1"}, {"y"}).named("/Mul_1");
  EXPECT_THAT(import(maker.made({"y"})).weights.names(), ElementsAre("gammas.0", "gammas.1"));
  // A value of some name is no entry.
  ModelMaker value("value");
  value.input("x", {4, 3}).weight("gamma", {3}, {1, 2, 1});
  value.node("Identity", {"gamma"}, {"input.4"}).node("Mul", {"x", "gamma"}, {"h"});
  value.node("Mul", {"h", "input.4"}, {"y"});
  EXPECT_THAT(import(value.made({"y"})).weights.names(), ElementsAre("gamma"));
}

TEST(TrainingNotes, weights_that_several_layers_read_are_named) {
  ModelMaker maker("shared");
  maker.input("x", {4, 3}).weight("emb.weight", {3, 3}, counted_weights(3));
  maker.weight("a.bias", {3}, {1, 2, 3});
  maker.node("MatMul", {"x", "emb.weight"}, {"h"}).in_layer("emb");
  maker.node("Identity", {"emb.weight"}, {"/head/Identity_output_0"}).named("/head/Identity");
  maker.node("Gemm", {"h", "/head/Identity_output_0", "a.bias"}, {"i"}).named("/head/Gemm");
  maker.node("Add", {"i", "a.bias"}, {"j"}).in_layer("a").node("Add", {"j", "a.bias"}, {"k"});
  maker.in_layer("b").node("Add", {"k", "a.bias"}, {"y"}).in_layer("c");
  EXPECT_THAT(
      import(maker.made({"y"}), {.training = true}).warnings,
      ElementsAre("'a.bias' is read by the layers 'a', 'b', 'c' and 1 more: it is trained as one "
                  "weight",
                  "'emb.weight' is read by the layers 'emb', 'head': it is trained as one weight"));
}

TEST(MergedWeights, own_exports_have_nothing_merged) {
  ModelMaker maker("own");
  maker.input("x", {4, 3}).weight("n.weight", {3}, {1, 1, 1}).weight("n.bias", {3}, {0, 0, 0});
  maker.node("LayerNormalization", {"x", "n.weight", "n.bias"}, {"a"});
  maker.node("LayerNormalization", {"a", "n.weight", "n.bias"}, {"y"});
  ::onnx::ModelProto file = maker.made({"y"});
  file.set_producer_name("pantala");
  const onnx::Model model = import(file, {.training = true});
  EXPECT_THAT(model.weights.names(), ElementsAre("n.bias", "n.weight"));
  EXPECT_THAT(model.warnings, IsEmpty());
}

// Frozen, it normalises with the same statistics in both places.
TEST(MergedWeights, a_frozen_norm_that_is_used_twice_keeps_its_statistics) {
  Session session = session_of(import(shared_norm(false), {.training = true}),
                               {{.pattern = "bn.*", .frozen = true}});
  for (const double loss : {1.176755645, 1.154911772}) {
    session.step();
    EXPECT_NEAR(session.loss(), loss, 2e-5);
  }
  expect_near(session.state("bn.running_var"), {1, 1, 1});
}

TEST(MergedWeights, a_small_file_does_not_become_a_huge_one) {
  ModelMaker maker("hostile");
  maker.input("x", {2, 1 << 14}).weight("w.weight", {1 << 14});
  std::string x = "x";
  for (int k = 0; k < 200; ++k) {
    const std::string name = "layer" + std::to_string(k);
    maker.node("Identity", {"w.weight"}, {name + ".weight"});
    maker.node("Mul", {x, name + ".weight"}, {name});
    x = name;
  }
  EXPECT_THAT(message_of<UnsupportedError>([&] { import(maker.made({x})); }),
              HasSubstr("so many layers share 'w.weight'"));
}

// --- training forms

::onnx::ModelProto training_export(std::int64_t opset) {
  ModelMaker maker("training", opset);
  maker.input("x", {4, 3});
  for (const std::string& name : kOwnFirst) maker.weight(name, {3}, {1, 1, 1});
  Names inputs = kOwnFirst, outputs = {"n", "mean", "var"};
  if (opset < 14) outputs.insert(outputs.end(), {"saved_mean", "saved_var"});
  inputs.insert(inputs.begin(), "x");
  maker.node("BatchNormalization", inputs, outputs);
  if (opset >= 14) maker.with("training_mode", 1);
  maker.node("Dropout", {"n"}, {"logits", "mask"});
  return maker.made({"logits"});
}

TEST(MergedWeights, exports_in_training_mode_have_running_statistics) {
  for (const std::int64_t opset : {12, 17}) {
    const onnx::Model training = import(training_export(opset), {.training = true});
    EXPECT_THAT(names(training.graph, LeafKind::state),
                UnorderedElementsAre("bn1.running_mean", "bn1.running_var"));
    EXPECT_THAT(training.warnings, IsEmpty());
    Session session = session_of(training);
    session.step();
    // 0.9 * 1 + 0.1 * (the mean of the batch).
    expect_near(session.state("bn1.running_mean"), {0.875, 0.925, 0.85});
    // Evaluation of the same file takes what was learnt.
    const onnx::Model evaluation = import(training_export(opset), {.evaluation = true});
    Session tried = build_inference_session(evaluation.graph);
    tried.load_weights(training.weights);
    tried.set_input("x", Literal::floats({4, 3}, std::vector<double>(12, 1.0)));
    tried.step();
    expect_near(tried.output("logits"), {1, 1, 1});
  }
  EXPECT_THAT(message_of<TypeError>(
                  [] { import(training_export(17), {.training = true, .evaluation = true}); }),
              HasSubstr("for training or for evaluation, not for both"));
}

// --- what is said before the first step

std::vector<std::string> warnings(const ::onnx::ModelProto& model) {
  return import(model, {.training = true}).warnings;
}

TEST(TrainingNotes, folded_batch_norm_is_named) {
  const auto conv = [](const std::string& weight) {
    ModelMaker maker("folded");
    maker.input("x", {1, 1, 2, 2}).weight(weight, {1, 1, 1, 1});
    maker.node("Conv", {"x", weight}, {"y"});
    return maker;
  };
  EXPECT_THAT(warnings(conv("onnx::Conv_26").made({"y"})),
              ElementsAre(HasSubstr("folded batch norm into 'Conv_y'")));
  EXPECT_THAT(
      warnings(
          conv("conv1.weight").in_layer("bn1", "_native_batch_norm_legit_no_training").made({"y"})),
      ElementsAre(HasSubstr("folded batch norm into 'Conv_y'")));
  EXPECT_THAT(warnings(conv("conv1.weight").in_layer("conv1", "conv2d").made({"y"})), IsEmpty());
}

TEST(TrainingNotes, what_is_not_trained_is_named) {
  ModelMaker maker("notes");
  maker.input("x", {2, 3})
      .weight("head.scale", {})
      .weight("head.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  maker.weight("val_7", {3, 2}, {1, 4, 2, 5, 3, 6});
  maker.node("MatMul", {"x", "val_7"}, {"a"}).node("MatMul", {"a", "head.weight"}, {"b"});
  maker.node("Mul", {"b", "head.scale"}, {"c"});
  for (const std::string& name : kOwnFirst) maker.weight(name, {3});
  maker.node("Exp", {"bn1.running_var"}, {"var"});
  maker.node("BatchNormalization", {"c", "bn1.weight", "bn1.bias", "bn1.running_mean", "var"},
             {"y"});
  EXPECT_THAT(
      warnings(maker.made({"y"})),
      ElementsAre(HasSubstr("'head.scale': single numbers are not trained"),
                  HasSubstr("'val_7' is 'head.weight', transposed by the exporter"),
                  HasSubstr("BatchNormalization 'BatchNormalization_y': its running mean "
                            "and variance are no f32 or f64 weights of the file: they do not "
                            "follow the training, and are used instead of the batch's")));
}

TEST(TrainingNotes, merged_weights_that_cannot_be_told_from_tied_ones_are_named) {
  ModelMaker maker("computed");
  maker.input("x", {2, 3}).weight("onnx::MatMul_5", {3, 3}, counted_weights(3));
  maker.node("Identity", {"onnx::MatMul_5"}, {"onnx::MatMul_6"});
  maker.node("MatMul", {"x", "onnx::MatMul_5"}, {"a"});
  maker.node("MatMul", {"a", "onnx::MatMul_6"}, {"y"});
  EXPECT_THAT(warnings(maker.made({"y"})),
              ElementsAre(HasSubstr("'onnx::MatMul_6' were equal to other weights")));
  // Zeros that are biases belong to one layer each.
  ModelMaker biased("biased");
  biased.input("x", {2, 3}).weight("fc.weight", {3, 3}, counted_weights(3));
  biased.weight("fc.bias", {3}, {0, 0, 0}).node("Identity", {"fc.bias"}, {"onnx::Gemm_6"});
  biased.node("Gemm", {"x", "fc.weight", "fc.bias"}, {"a"});
  biased.node("Gemm", {"a", "fc.weight", "onnx::Gemm_6"}, {"y"});
  const onnx::Model model = import(biased.made({"y"}), {.training = true});
  EXPECT_THAT(model.warnings, IsEmpty());
  EXPECT_THAT(model.weights.names(), ElementsAre("fc.bias", "fc.bias.2", "fc.weight"));
}

TEST(TrainingNotes, values_that_the_exporter_computed_are_named) {
  ModelMaker maker("computed");
  maker.input("x", {2, 3}).weight("val_3", {3}).node("Mul", {"x", "val_3"}, {"y"});
  ::onnx::ModelProto model = maker.made({"y"});
  EXPECT_THAT(warnings(model), IsEmpty());
  model.set_producer_name("pytorch");
  EXPECT_THAT(warnings(model), ElementsAre(HasSubstr("'val_3': computed by the exporter")));
}

TEST(MergedWeights, norms_of_one_channel_are_separate_too) {
  ModelMaker maker("single");
  maker.input("x", {4, 1}).weight("a.weight", {1}, {1}).weight("a.bias", {1}, {0});
  maker.node("BatchNormalization", {"x", "a.weight", "a.bias", "a.bias", "a.weight"}, {"h"});
  maker.in_layer("a");
  maker.node("BatchNormalization", {"h", "a.weight", "a.bias", "a.bias", "a.weight"}, {"y"});
  maker.in_layer("b");
  EXPECT_THAT(import(maker.made({"y"})).weights.names(),
              ElementsAre("a.bias", "a.running_mean", "a.running_var", "a.weight", "b.bias",
                          "b.running_mean", "b.running_var", "b.weight"));
}

TEST(TrainingNotes, weights_in_constant_nodes_are_named) {
  ModelMaker maker("constant");
  maker.input("x", {2, 3}).node("Constant", {}, {"w"});
  ::onnx::ModelProto model = maker.node("MatMul", {"x", "w"}, {"y"}).made({"y"});
  ::onnx::AttributeProto& value = *model.mutable_graph()->mutable_node(0)->add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  value.mutable_t()->add_dims(3);
  value.mutable_t()->add_dims(1);
  for (int k = 0; k < 3; ++k) value.mutable_t()->add_float_data(1);
  EXPECT_THAT(warnings(model), ElementsAre(HasSubstr("the weights of 'MatMul_y' are constants")));
}

}  // namespace
}  // namespace pantala::tests::merged_weights_test
