// Recurrent networks, random numbers, the largest elements, grids and positions of elements that
// are not 0, beside the ONNX project's own tests: what is refused and why, and what those do not
// cover.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

namespace pantala::tests::recurrent_test {
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

// --- against the formulas

struct Layer {
  std::string op, direction;
  std::int64_t gates, before_reset = 0;

  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  bool is_lstm() const { return op == "LSTM"; }
};
constexpr std::int64_t kSteps = 3, kBatch = 2, kInputs = 4, kHidden = 5;

ModelMaker layer_model(const Layer& layer) {
  const std::int64_t d = layer.directions(), rows = layer.gates * kHidden;
  ModelMaker maker("layer", 17);
  maker.input("x", {kSteps, kBatch, kInputs})
      .input("w", {d, rows, kInputs})
      .input("r", {d, rows, kHidden})
      .input("b", {d, 2 * rows})
      .input("h0", {d, kBatch, kHidden});
  if (layer.is_lstm()) maker.input("c0", {d, kBatch, kHidden});
  maker.node(layer.op,
             layer.is_lstm() ? Names{"x", "w", "r", "b", "", "h0", "c0"}
                             : Names{"x", "w", "r", "b", "", "h0"},
             layer.is_lstm() ? Names{"y", "h", "c"} : Names{"y", "h"});
  maker.with("hidden_size", kHidden).with("direction", layer.direction);
  if (layer.op == "GRU") maker.with("linear_before_reset", layer.before_reset);
  return maker;
}

ref::Bindings layer_values(const Layer& layer) {
  const std::int64_t d = layer.directions(), rows = layer.gates * kHidden;
  ref::Bindings values{{"x", fill("x", {kSteps, kBatch, kInputs})},
                       {"w", fill("w", {d, rows, kInputs})},
                       {"r", fill("r", {d, rows, kHidden})},
                       {"b", fill("b", {d, 2 * rows})},
                       {"h0", fill("h0", {d, kBatch, kHidden})}};
  if (layer.is_lstm()) values.emplace("c0", fill("c0", {d, kBatch, kHidden}));
  return values;
}

// A layer in a plain loop, as ONNX's specification writes it, with its order of gates.
class PlainLayer {
 public:
  PlainLayer(Layer layer, const ref::Bindings& values) : layer_(std::move(layer)), values_(values) {
    const auto size = static_cast<std::size_t>(layer_.directions() * kBatch * kHidden);
    y.resize(kSteps * size), h.resize(size), c.resize(size);
    for (std::int64_t d = 0; d < layer_.directions(); ++d)
      for (std::int64_t n = 0; n < kBatch; ++n) walk(d, n);
  }

  std::vector<double> y, h, c;

 private:
  using Row = std::vector<double>;  // a number for each hidden unit

  double at(const std::string& name, std::int64_t i, std::int64_t j, std::int64_t k = 0) const {
    const Literal& value = values_.at(name);
    const std::vector<std::int64_t> sizes = value.shape().vec();
    return value.at((i * sizes[1] + j) * (sizes.size() > 2 ? sizes[2] : 1) + k);
  }
  double from_input(std::int64_t d, std::int64_t t, std::int64_t n, std::int64_t row) const {
    double sum = at("b", d, row);
    for (std::int64_t k = 0; k < kInputs; ++k) sum += at("x", t, n, k) * at("w", d, row, k);
    return sum;
  }
  double recurrent_bias(std::int64_t d, std::int64_t row) const {
    return at("b", d, layer_.gates * kHidden + row);
  }
  double from_state(std::int64_t d, std::int64_t row, const Row& state) const {
    double sum = 0;
    for (std::int64_t k = 0; k < kHidden; ++k)
      sum += at("r", d, row, k) * state[static_cast<std::size_t>(k)];
    return sum;
  }

  void walk(std::int64_t d, std::int64_t n) {
    Row state(kHidden), cell(kHidden);
    for (std::int64_t j = 0; j < kHidden; ++j) {
      state[static_cast<std::size_t>(j)] = at("h0", d, n, j);
      if (layer_.is_lstm()) cell[static_cast<std::size_t>(j)] = at("c0", d, n, j);
    }
    const bool reverse = layer_.direction == "reverse" || d == 1;
    for (std::int64_t k = 0; k < kSteps; ++k) {
      const std::int64_t t = reverse ? kSteps - 1 - k : k;
      state = step(d, t, n, state, cell);
      put(y, t * layer_.directions() + d, n, state);
    }
    put(h, d, n, state);
    put(c, d, n, cell);
  }

  Row step(std::int64_t d, std::int64_t t, std::int64_t n, const Row& state, Row& cell) const {
    const auto sum = [&](std::int64_t gate, std::int64_t j) {
      const std::int64_t row = gate * kHidden + j;
      return from_input(d, t, n, row) + from_state(d, row, state) + recurrent_bias(d, row);
    };
    Row next(kHidden), reset_state(kHidden);
    for (std::size_t j = 0; layer_.op == "GRU" && j < kHidden; ++j)
      reset_state[j] = logistic(sum(1, static_cast<std::int64_t>(j))) * state[j];
    for (std::int64_t j = 0; j < kHidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (layer_.is_lstm()) {  // input, output, forget, cell
        cell[at] = logistic(sum(2, j)) * cell[at] + logistic(sum(0, j)) * std::tanh(sum(3, j));
        next[at] = logistic(sum(1, j)) * std::tanh(cell[at]);
      } else if (layer_.op == "GRU") {  // update, reset, hidden
        const std::int64_t row = 2 * kHidden + j;
        const double recurrent =
            layer_.before_reset != 0
                ? logistic(sum(1, j)) * (from_state(d, row, state) + recurrent_bias(d, row))
                : from_state(d, row, reset_state) + recurrent_bias(d, row);
        const double update = logistic(sum(0, j));
        next[at] =
            (1 - update) * std::tanh(from_input(d, t, n, row) + recurrent) + update * state[at];
      } else {
        next[at] = std::tanh(sum(0, j));
      }
    }
    return next;
  }

  static double logistic(double x) { return 1 / (1 + std::exp(-x)); }
  static void put(std::vector<double>& all, std::int64_t first, std::int64_t n, const Row& row) {
    std::copy(row.begin(), row.end(), all.begin() + (first * kBatch + n) * kHidden);
  }

  const Layer layer_;
  const ref::Bindings& values_;
};

TEST(OnnxRecurrent, layers_compute_the_formulas_of_the_specification) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const Layer& layer : {Layer{"LSTM", direction, 4}, Layer{"GRU", direction, 3, 0},
                               Layer{"GRU", direction, 3, 1}, Layer{"RNN", direction, 1}}) {
      SCOPED_TRACE(layer.op + " " + direction + " " + std::to_string(layer.before_reset));
      const onnx::Model model =
          import(layer_model(layer).made(layer.is_lstm() ? Names{"y", "h", "c"} : Names{"y", "h"}));
      const ref::Bindings values = layer_values(layer);
      const PlainLayer plain(layer, values);
      const auto value = [&](const char* name) {
        return value_of(model.graph, model.graph.output(name), values);
      };
      expect_close(value("y"), plain.y, 1e-9);
      expect_close(value("h"), plain.h, 1e-9);
      if (layer.is_lstm()) expect_close(value("c"), plain.c, 1e-9);
    }
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

TEST(OnnxSampling, random_numbers_have_the_mean_and_the_range_that_the_file_says) {
  ModelMaker maker("random", 17);
  maker.input("x", {50, 40});
  maker.node("RandomNormalLike", {"x"}, {"a"}).with_float("mean", 3).with_float("scale", 0.5F);
  maker.node("RandomUniformLike", {"x"}, {"b"}).with_float("low", -2).with_float("high", 6);
  maker.node("RandomNormal", {}, {"c"}).with("shape", Sizes{50, 40});
  maker.with_float("mean", 3).with_float("scale", 0.5F);
  maker.node("RandomUniform", {}, {"d"}).with("shape", Sizes{50, 40});
  maker.with_float("low", -2).with_float("high", 6);
  const onnx::Model model = import(maker.made({"a", "b", "c", "d"}));
  ref::Session session(model.graph, 1);
  session.set_input("x", fill("x", {50, 40}));
  session.step();
  for (const char* name : {"a", "c"}) {
    double sum = 0, squares = 0;
    for (const double v : session.output(name).to_doubles()) sum += v, squares += (v - 3) * (v - 3);
    EXPECT_NEAR(sum / 2000, 3, 0.05) << name;
    EXPECT_NEAR(std::sqrt(squares / 2000), 0.5, 0.03) << name;
  }
  for (const char* name : {"b", "d"}) {
    const std::vector<double> drawn = session.output(name).to_doubles();
    const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
    EXPECT_GE(*least, -2);
    EXPECT_LT(*least, -1.9);
    EXPECT_LT(*most, 6);
    EXPECT_GT(*most, 5.9);
  }
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
}  // namespace pantala::tests::recurrent_test
