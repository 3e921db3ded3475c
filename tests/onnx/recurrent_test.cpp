// Recurrent networks, random numbers, the largest elements, grids and positions of elements that
// are not 0, beside the ONNX project's own tests: what is refused and why, and what those do not
// cover.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/model_maker.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/nn.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = ::onnx::TensorProto;

onnx::Model import(const ::onnx::ModelProto& model, const onnx::ImportOptions& options = {}) {
  const std::string file = model.SerializeAsString();
  return onnx::import_model(std::as_bytes(std::span(file)), "m.onnx", options);
}

// A recurrent node on x [3, 2, 4] with 5 hidden units; all its weights are inputs of the model.
ModelMaker recurrent(const std::string& op, std::int64_t gates, std::int64_t directions = 1) {
  ModelMaker maker("recurrent", 17);
  maker.input("x", {3, 2, 4})
      .input("w", {directions, gates * 5, 4})
      .input("r", {directions, gates * 5, 5})
      .input("b", {directions, 2 * gates * 5});
  maker.node(op, {"x", "w", "r", "b"}, {"y", "h"});
  return maker.with("hidden_size", std::int64_t{5});
}

std::string refusal(ModelMaker& maker) {
  return message_of<UnsupportedError>([&] { import(maker.made({"y"})); });
}

TEST(OnnxRecurrent, refuses_what_the_ops_cannot_do_with_the_reason) {
  ModelMaker peepholes("p", 17);
  peepholes.input("x", {3, 2, 4}).input("w", {1, 20, 4}).input("r", {1, 20, 5}).input("p", {1, 15});
  peepholes.node("LSTM", {"x", "w", "r", "", "", "", "", "p"}, {"y"})
      .with("hidden_size", std::int64_t{5});
  EXPECT_THAT(refusal(peepholes), HasSubstr("peepholes"));
  ModelMaker coupled = recurrent("LSTM", 4).with("input_forget", std::int64_t{1});
  EXPECT_THAT(refusal(coupled), HasSubstr("coupled input and forget gates"));
  ModelMaker lengths("l", 17);
  lengths.input("x", {3, 2, 4}).input("w", {1, 15, 4}).input("r", {1, 15, 5});
  lengths.integers("n", {3, 2});
  lengths.node("GRU", {"x", "w", "r", "", "n"}, {"y"}).with("hidden_size", std::int64_t{5});
  EXPECT_THAT(refusal(lengths), HasSubstr("sequences of different lengths"));
}

TEST(OnnxRecurrent, a_hidden_size_that_contradicts_the_weights_is_said) {
  ModelMaker maker("sizes", 17);
  maker.input("x", {3, 2, 4}).input("w", {1, 20, 4}).input("r", {1, 20, 5});
  maker.node("LSTM", {"x", "w", "r"}, {"y"}).with("hidden_size", INT64_MAX);
  EXPECT_THAT(message_of<TypeError>([&] { import(maker.made({"y"})); }),
              HasSubstr("hidden_size 9223372036854775807 is not that of R [1,20,5]"));
}

TEST(OnnxRecurrent, a_weight_that_does_not_fit_is_said_with_the_shapes) {
  ModelMaker wrong = recurrent("GRU", 4);
  EXPECT_THAT(message_of<TypeError>([&] { import(wrong.made({"y"})); }),
              HasSubstr("W [1,20,4] and R [1,20,5] do not fit X [3,2,4] with 5 hidden units"));
}

// One op per direction, however many steps there are.
TEST(OnnxRecurrent, time_is_not_unrolled) {
  const auto nodes = [](std::int64_t steps, std::int64_t before_reset) {
    ModelMaker maker("g", 17);
    maker.input("x", {steps, 2, 4}).input("w", {2, 15, 4}).input("r", {2, 15, 5});
    maker.node("GRU", {"x", "w", "r"}, {"y"})
        .with("hidden_size", std::int64_t{5})
        .with("linear_before_reset", before_reset)
        .with("direction", "bidirectional");
    return import(maker.made({"y"})).graph.size();
  };
  EXPECT_EQ(nodes(3, 1), nodes(1 << 20, 1));
  EXPECT_EQ(nodes(3, 0), nodes(1 << 20, 0));
}

// The official cases give linear_before_reset one direction only, without a state.
TEST(OnnxRecurrent, both_forms_of_a_gru_agree_where_the_reset_gate_is_open) {
  std::vector<std::vector<double>> results;
  for (const std::int64_t after : {0, 1}) {
    ModelMaker maker = recurrent("GRU", 3, 2);
    maker.with("linear_before_reset", after).with("direction", "bidirectional");
    const onnx::Model model = import(maker.made({"y", "h"}));
    ref::Bindings values{{"x", fill("x", {3, 2, 4})},
                         {"w", fill("w", {2, 15, 4})},
                         {"r", fill("r", {2, 15, 5})},
                         {"b", fill("b", {2, 30})}};
    for (std::int64_t d = 0; d < 2; ++d)
      for (std::int64_t k = 5; k < 10; ++k) values["b"].f()[d * 30 + k] = 100;  // reset: 1
    results.push_back(value_of(model.graph, model.graph.output("y"), values));
  }
  expect_close(results[0], results[1], 1e-9);
}

// --- states at the beginning

// Zeros that PyTorch writes for a layer without a state of its own; `zeros` is used twice.
onnx::Model model_with_states() {
  ModelMaker maker("states", 17);
  maker.input("x", {3, 2, 4}).weight("w", {1, 20, 4}).weight("r", {1, 20, 5});
  maker.weight("zeros", {1, 2, 5}, std::vector<float>(10)).weight("h0", {1, 2, 5});
  maker.weight("gru.w", {1, 15, 5}).weight("gru.r", {1, 15, 5});
  maker.node("LSTM", {"x", "w", "r", "", "", "zeros", "zeros"}, {"all"})
      .with("hidden_size", std::int64_t{5});
  maker.integers("axis", {1}).node("Squeeze", {"all", "axis"}, {"seen"});
  maker.node("GRU", {"seen", "gru.w", "gru.r", "", "", "h0"}, {"", "h"})
      .with("hidden_size", std::int64_t{5});
  maker.node("Add", {"h", "zeros"}, {"y"});  // here it is a weight
  return import(maker.made({"y"}), {.training = true});
}

TEST(OnnxRecurrent, initial_states_are_not_trained) {
  onnx::Model model = model_with_states();
  const Tensor loss = sum(model.graph.output("y"));
  Session session = build_session(model.graph, loss, {.threads = 1, .optimizer = optim::sgd(0.5)});
  session.load_weights(model.weights);
  session.set_input("x", fill("x", {3, 2, 4}));
  session.step();
  std::vector<std::string> names;
  for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
  EXPECT_THAT(names, UnorderedElementsAre("w", "r", "gru.w", "gru.r", "zeros"));
  for (const std::string& name : names)
    EXPECT_NE(session.parameter(name).to_doubles(), model.weights.read(name).to_doubles()) << name;
  EXPECT_EQ(session.state("h0").to_doubles(), model.weights.read("h0").to_doubles());
}

TEST(OnnxSampling, random_numbers_come_from_the_counters_of_the_graph) {
  ModelMaker maker("random", 17);
  maker.input("x", {50, 40});
  maker.node("RandomNormalLike", {"x"}, {"a"});
  maker.node("RandomUniformLike", {"x"}, {"b"});
  maker.node("RandomNormal", {}, {"c"}).with("shape", Sizes{7, 3});
  maker.node("RandomUniform", {}, {"d"}).with("shape", Sizes{2}).with("dtype", std::int64_t{11});
  const onnx::Model model = import(maker.made({"a", "b", "c", "d"}));
  EXPECT_EQ(model.graph.output("c").type().str(), "f32[7,3]");
  EXPECT_EQ(model.graph.output("d").type().str(), "f64[2]");
  ref::Session session(model.graph, 1);
  session.set_input("x", fill("x", {50, 40}));
  session.step();
  const std::vector<double> normal = session.output("a").to_doubles(),
                            uniform = session.output("b").to_doubles();
  double sum = 0, squares = 0;
  for (const double v : normal) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 2000, 0, 0.1);
  EXPECT_NEAR(squares / 2000, 1, 0.1);
  for (const double v : uniform) EXPECT_TRUE(v >= 0 && v < 1) << v;
}

TEST(OnnxSampling, random_integers_are_refused) {
  ModelMaker maker("random", 17);
  maker.input("x", {4}, Kind::INT64);
  maker.node("RandomNormalLike", {"x"}, {"y"}).with("dtype", std::int64_t{7});
  EXPECT_THAT(refusal(maker), HasSubstr("elements of type int64 are not drawn"));
}

TEST(OnnxSampling, non_zero_of_what_is_known_is_a_constant) {
  ModelMaker maker("known", 17);
  maker.integers("mask", {0, 3, 0, 1}).integers("sizes", {2, 2});
  maker.node("Reshape", {"mask", "sizes"}, {"square"}).node("NonZero", {"square"}, {"y"});
  const onnx::Model model = import(maker.made({"y"}));
  EXPECT_EQ(model.graph.output("y").type().str(), "i64[2,2]");
  EXPECT_THAT(value_of(model.graph, model.graph.output("y")), ElementsAre(0, 1, 1, 1));
}

TEST(OnnxSampling, non_zero_of_an_input_says_why_it_cannot_be) {
  ModelMaker maker("unknown", 17);
  maker.input("x", {4}).node("NonZero", {"x"}, {"y"});
  EXPECT_THAT(refusal(maker), HasSubstr("decides a shape or an option: bind 'x' to its value"));
}

TEST(OnnxSampling, top_k_of_old_files_has_its_number_as_an_attribute) {
  ModelMaker maker("old", 9);
  maker.input("x", {1, 4}).node("TopK", {"x"}, {"y", "at"}).with("k", std::int64_t{2});
  const onnx::Model model = import(maker.made({"y", "at"}));
  const ref::Bindings values{{"x", floats({1, 4}, {1, 7, 3, 7})}};
  EXPECT_THAT(value_of(model.graph, model.graph.output("y"), values), ElementsAre(7, 7));
  EXPECT_THAT(value_of(model.graph, model.graph.output("at"), values), ElementsAre(1, 3));
}

TEST(OnnxSampling, a_grid_over_volumes_is_refused) {
  ModelMaker maker("volume", 20);
  maker.input("x", {1, 1, 2, 2, 2}).input("g", {1, 1, 1, 1, 3});
  maker.node("GridSample", {"x", "g"}, {"y"});
  EXPECT_THAT(refusal(maker), HasSubstr("3 spatial axes; two can be sampled"));
}

}  // namespace
}  // namespace pantala::tests
