// Section 3 of the checklist: the Whisper encoder. What the layers compute is compared with plain
// loops in double.
#include "pantala/zoo/whisper.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "io/safetensors_write.h"
#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/fill.h"
#include "support/numbers.h"
#include "support/temporary.h"

namespace pantala::tests::whisper_test {
namespace {

using ::testing::HasSubstr;
using zoo::WhisperConfig;

WhisperConfig small_config() {
  return {.d_model = 8,
          .n_heads = 2,
          .n_layers = 2,
          .ffn_dim = 12,
          .n_mels = 5,
          .max_source_positions = 7,
          .layer_norm_eps = 1e-3};
}

WhisperConfig one_layer() {
  WhisperConfig config = small_config();
  config.n_layers = 1;
  return config;
}

std::string encoder(std::string_view rest) { return fmt::format("model.encoder.{}", rest); }

// Values of all leaves but the labels, large enough that no part of the encoder is negligible.
ref::Bindings filled(const Graph& graph) {
  ref::Bindings values;
  for (const Leaf& leaf : graph.leaves())
    if (is_float(leaf.value.dtype()) && leaf.name != "labels")
      values[leaf.name] = fill(leaf.name, leaf.value.shape(), 0.7);
  return values;
}

// The n-th node of an op.
Tensor nth(const Graph& graph, std::string_view op, int n) {
  const auto& nodes = graph.data()->nodes();
  for (std::uint32_t id = 0; id < nodes.size(); ++id)
    if (nodes[id].op->name == op && n-- == 0) return graph.value({id, 0});
  ADD_FAILURE() << "too few nodes of " << op;
  return {};
}

Literal evaluate(const Graph& graph, const Tensor& value, const ref::Bindings& values) {
  return ref::evaluate(graph, {value}, values)[0];
}

// --- the layers, plainly: a matrix has rows of columns
using Matrix = std::vector<std::vector<double>>;

Matrix matrix(const Literal& values, std::int64_t item = 0) {
  const int rank = values.shape().rank();
  const auto columns = static_cast<std::size_t>(values.shape()[rank - 1]);
  const auto rows = static_cast<std::size_t>(values.shape()[rank - 2]);
  Matrix result(rows, std::vector<double>(columns));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      result[r][c] = values.f()[(static_cast<std::size_t>(item) * rows + r) * columns + c];
  return result;
}

std::vector<double> flat(const Matrix& m) {
  std::vector<double> result;
  for (const auto& row : m) result.insert(result.end(), row.begin(), row.end());
  return result;
}

Matrix plus(Matrix a, const Matrix& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t c = 0; c < a[r].size(); ++c) a[r][c] += b[r][c];
  return a;
}

Matrix exact_gelu(Matrix x) {
  for (auto& row : x)
    for (double& v : row) v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
  return x;
}

class Plain {
 public:
  Plain(const WhisperConfig& config, const ref::Bindings& values)
      : config_(config), values_(values) {}

  // [channels, length] to [channels, length]; kernel 3, one zero at each end.
  Matrix conv(const std::string& name, const Matrix& x, std::size_t stride) const {
    const Literal &weight = values_.at(encoder(name + ".weight")),
                  &bias = values_.at(encoder(name + ".bias"));
    const std::size_t out = static_cast<std::size_t>(weight.shape()[0]), length = x[0].size();
    Matrix y(out, std::vector<double>((length - 1) / stride + 1));
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t t = 0; t < y[o].size(); ++t) {
        double sum = bias.f()[o];
        for (std::size_t c = 0; c < x.size(); ++c)
          for (std::size_t k = 0; k < 3; ++k) {
            const std::size_t at = t * stride + k;  // one to the right of the element
            if (at >= 1 && at <= length)
              sum += weight.f()[(o * x.size() + c) * 3 + k] * x[c][at - 1];
          }
        y[o][t] = sum;
      }
    return exact_gelu(std::move(y));
  }

  Matrix norm(const std::string& name, Matrix x) const {
    const Literal &weight = values_.at(encoder(name + ".weight")),
                  &bias = values_.at(encoder(name + ".bias"));
    for (auto& row : x) {
      const double n = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / n;
      for (const double v : row) variance += (v - mean) * (v - mean) / n;
      for (std::size_t c = 0; c < row.size(); ++c)
        row[c] = (row[c] - mean) / std::sqrt(variance + config_.layer_norm_eps) * weight.f()[c] +
                 bias.f()[c];
    }
    return x;
  }

  // weight [out, in]; the bias where there is one.
  Matrix linear(const std::string& name, const Matrix& x) const {
    const Matrix weight = matrix(values_.at(encoder(name + ".weight")));
    const auto bias = values_.find(encoder(name + ".bias"));
    Matrix y(x.size(), std::vector<double>(weight.size()));
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t o = 0; o < weight.size(); ++o) {
        y[r][o] = bias == values_.end() ? 0 : bias->second.f()[o];
        for (std::size_t i = 0; i < x[r].size(); ++i) y[r][o] += x[r][i] * weight[o][i];
      }
    return y;
  }

  // Every position sees every other one; the heads are parts of the columns.
  Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v) const {
    const auto size = static_cast<std::size_t>(config_.d_model / config_.n_heads);
    Matrix y(q.size(), std::vector<double>(q[0].size()));
    for (std::size_t first = 0; first < q[0].size(); first += size)
      for (std::size_t r = 0; r < q.size(); ++r) {
        std::vector<double> weights(k.size());
        double total = 0;
        for (std::size_t s = 0; s < k.size(); ++s) {
          double score = 0;
          for (std::size_t c = first; c < first + size; ++c) score += q[r][c] * k[s][c];
          total += weights[s] = std::exp(score / std::sqrt(static_cast<double>(size)));
        }
        for (std::size_t s = 0; s < k.size(); ++s)
          for (std::size_t c = first; c < first + size; ++c)
            y[r][c] += weights[s] / total * v[s][c];
      }
    return y;
  }

  Matrix layer(const std::string& name, const Matrix& x) const {
    const Matrix n = norm(name + ".self_attn_layer_norm", x);
    const auto project = [&](const std::string& which) {
      return linear(name + ".self_attn." + which, n);
    };
    const Matrix mixed = attention(project("q_proj"), project("k_proj"), project("v_proj"));
    const Matrix h = plus(x, linear(name + ".self_attn.out_proj", mixed));
    return plus(h, feed_forward(name, norm(name + ".final_layer_norm", h)));
  }

  Matrix feed_forward(const std::string& name, const Matrix& x) const {
    return linear(name + ".fc2", exact_gelu(linear(name + ".fc1", x)));
  }

 private:
  const WhisperConfig& config_;
  const ref::Bindings& values_;
};

// An encoder with values for all that it needs.
struct Case {
  WhisperConfig config;
  Graph graph;
  ref::Bindings values;
  Plain plain;
  explicit Case(const zoo::WhisperSizes& sizes, const WhisperConfig& how = small_config())
      : config(how),
        graph(zoo::whisper_encoder(config, sizes)),
        values(filled(graph)),
        plain(config, values) {}
  Literal value(const Tensor& t) const { return evaluate(graph, t, values); }
  Literal output() const { return value(graph.output("last_hidden_state")); }
};

std::int64_t elements_of(const Graph& graph) {
  std::int64_t count = 0;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) count += leaf.value.numel();
  return count;
}

TEST(Whisper, W01_the_configurations) {
  const auto sizes = [](const WhisperConfig& c) {
    return std::vector<std::int64_t>{c.d_model, c.n_heads, c.n_layers,
                                     c.ffn_dim, c.n_mels,  c.max_source_positions};
  };
  EXPECT_EQ(sizes(WhisperConfig::tiny()), (std::vector<std::int64_t>{384, 6, 4, 1536, 80, 1500}));
  EXPECT_EQ(sizes(WhisperConfig::base()), (std::vector<std::int64_t>{512, 8, 6, 2048, 80, 1500}));
  EXPECT_EQ(sizes(WhisperConfig::small()),
            (std::vector<std::int64_t>{768, 12, 12, 3072, 80, 1500}));
  EXPECT_EQ(WhisperConfig::tiny().layer_norm_eps, 1e-5);
}

TEST(Whisper, W02_heads_share_the_width_evenly) {
  EXPECT_EQ(WhisperConfig::tiny().head_dim(), 64);
  EXPECT_EQ(WhisperConfig::base().head_dim(), 64);
  EXPECT_EQ(WhisperConfig::small().head_dim(), 64);
  WhisperConfig uneven = small_config();
  uneven.n_heads = 3;
  EXPECT_THAT(message_of<TypeError>([&] { uneven.head_dim(); }),
              HasSubstr("d_model 8 does not divide into 3 heads"));
  EXPECT_THAT(message_of<TypeError>([&] { zoo::whisper_encoder(uneven, {.frames = 4}); }),
              HasSubstr("whisper_test.cpp"));
  uneven.n_heads = 0;
  EXPECT_THAT(message_of<TypeError>([&] { uneven.head_dim(); }),
              HasSubstr("n_heads must be positive, got 0"));
}

TEST(Whisper, W03_the_input_is_batch_mels_frames) {
  for (const std::int64_t batch : {1, 2, 5}) {
    const Graph graph = zoo::whisper_encoder(small_config(), {.batch = batch, .frames = 9});
    EXPECT_EQ(graph.leaf("mel").type().str(), fmt::format("f32[{},5,9]", batch));
    EXPECT_EQ(graph.leaves(LeafKind::input).size(), 1u);
  }
  EXPECT_THAT(message_of<TypeError>([] { zoo::whisper_encoder(small_config(), {.batch = 0}); }),
              HasSubstr("batch must be positive, got 0"));
  // The layers alone take any such value of any graph, and nothing else.
  Graph graph;
  const Tensor quiet = graph.input("sound", {1, 5, 9}) * 0.5;
  EXPECT_EQ(zoo::whisper_layers(quiet, small_config()).type().str(), "f32[1,5,8]");
  EXPECT_THAT(message_of<TypeError>(
                  [&] { zoo::whisper_layers(graph.input("flat", {5, 9}), small_config()); }),
              HasSubstr("the spectrogram must be f32[batch,5,frames], got f32[5,9]"));
}

TEST(Whisper, W04_the_first_convolution_keeps_the_length) {
  const Case c({.batch = 2, .frames = 9});
  const Tensor first = nth(c.graph, "gelu", 0);
  EXPECT_EQ(first.shape(), Shape({2, 8, 9}));
  const Literal got = c.value(first);
  for (const std::int64_t item : {0, 1})
    expect_close(flat(matrix(got, item)),
                 flat(c.plain.conv("conv1", matrix(c.values.at("mel"), item), 1)));
}

TEST(Whisper, W05_the_second_convolution_halves_the_length) {
  const Case c({.batch = 2, .frames = 8});
  const Tensor second = nth(c.graph, "gelu", 1);
  EXPECT_EQ(second.shape(), Shape({2, 8, 4}));
  const Literal before = c.value(nth(c.graph, "gelu", 0)), got = c.value(second);
  for (const std::int64_t item : {0, 1})
    expect_close(flat(matrix(got, item)), flat(c.plain.conv("conv2", matrix(before, item), 2)));
}

TEST(Whisper, W06_lengths_of_even_and_odd_numbers_of_frames) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> known = {
      {3000, 1500}, {200, 100}, {201, 101}, {1, 1}};
  for (const auto& [frames, length] : known) {
    WhisperConfig config = small_config();
    config.max_source_positions = 1500;
    EXPECT_EQ(config.length(frames), length);
    const zoo::Model model = zoo::whisper_training(config, {.batch = 2, .frames = frames});
    EXPECT_EQ(model.labels.shape(), Shape({2 * length}));
    EXPECT_EQ(zoo::whisper_encoder(config, {.batch = 2, .frames = frames})
                  .output("last_hidden_state")
                  .shape(),
              Shape({2, length, 8}));
  }
}

TEST(Whisper, W07_no_frames_and_too_many_are_errors) {
  const auto complaint = [](std::int64_t frames) {
    const std::string text =
        message_of<TypeError>([&] { zoo::whisper_encoder(small_config(), {.frames = frames}); });
    EXPECT_EQ(message_of<TypeError>([&] {
                zoo::whisper_training(small_config(), {.frames = frames});
              }).substr(text.find("):")),
              text.substr(text.find("):")));
    return text;
  };
  EXPECT_THAT(complaint(0), HasSubstr("frames must be positive, got 0; the table of positions is "
                                      "for sequences of up to 7"));
  EXPECT_THAT(complaint(-4), HasSubstr("got -4"));
  EXPECT_THAT(complaint(15),
              HasSubstr("15 frames make a sequence of 8, but max_source_positions is 7"));
  EXPECT_EQ(small_config().length(14), 7);
}

TEST(Whisper, W08_names_and_shapes_of_the_convolutions) {
  const Graph graph = zoo::whisper_encoder(WhisperConfig::tiny(), {.frames = 4});
  const auto shape = [&](std::string_view name) { return graph.leaf(encoder(name)).shape(); };
  EXPECT_EQ(shape("conv1.weight"), Shape({384, 80, 3}));
  EXPECT_EQ(shape("conv1.bias"), Shape({384}));
  EXPECT_EQ(shape("conv2.weight"), Shape({384, 384, 3}));
  EXPECT_EQ(shape("conv2.bias"), Shape({384}));
}

TEST(Whisper, W09_the_first_rows_of_the_table_are_added_to_every_sequence) {
  EXPECT_EQ(zoo::whisper_encoder(WhisperConfig::tiny(), {.frames = 4})
                .leaf("model.encoder.embed_positions.weight")
                .shape(),
            Shape({1500, 384}));
  const Case c({.batch = 2, .frames = 9});
  const Tensor table = c.graph.leaf("model.encoder.embed_positions.weight");
  EXPECT_EQ(table.shape(), Shape({7, 8}));
  const Literal before = c.value(nth(c.graph, "gelu", 1)),
                normed = c.value(nth(c.graph, "layer_norm", 0));
  const Matrix rows = matrix(c.values.at("model.encoder.embed_positions.weight"));
  for (const std::int64_t item : {0, 1}) {
    const Matrix channels = matrix(before, item);
    Matrix sequence(5, std::vector<double>(8));
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t d = 0; d < 8; ++d) sequence[t][d] = channels[d][t] + rows[t][d];
    expect_close(flat(matrix(normed, item)),
                 flat(c.plain.norm("layers.0.self_attn_layer_norm", sequence)));
  }
}

TEST(Whisper, W10_the_table_is_trained_and_rows_beyond_the_length_get_no_gradient) {
  const zoo::Model model = zoo::whisper_training(one_layer(), {.batch = 2, .frames = 9});
  Session session = build_session(model.graph, model.loss, {.observe_gradients = true});
  session.set_input("mel", fill("mel", {2, 5, 9}));
  session.set_input("labels", fill_int("labels", {10}, 0, 64));
  session.step();
  const Literal gradient = session.gradient("model.encoder.embed_positions.weight");
  for (std::int64_t k = 0; k < 7 * 8; ++k)
    if (k < 5 * 8)
      EXPECT_NE(gradient.at(k), 0) << k;
    else
      EXPECT_EQ(gradient.at(k), 0) << k;
}

TEST(Whisper, W11_norms_stand_before_and_sums_outside) {
  const Case c({.batch = 2, .frames = 9});
  const Literal output = c.output(), mel = c.values.at("mel");
  const Matrix rows = matrix(c.values.at("model.encoder.embed_positions.weight"));
  for (const std::int64_t item : {0, 1}) {
    const Matrix channels = c.plain.conv("conv2", c.plain.conv("conv1", matrix(mel, item), 1), 2);
    Matrix h(5, std::vector<double>(8));
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t d = 0; d < 8; ++d) h[t][d] = channels[d][t] + rows[t][d];
    for (const char* layer : {"layers.0", "layers.1"}) h = c.plain.layer(layer, h);
    expect_close(flat(matrix(output, item)), flat(c.plain.norm("layer_norm", h)));
  }
}

TEST(Whisper, W12_a_layer_has_15_parameters) {
  std::vector<std::string> found;
  for (const std::string& name : zoo::whisper_weight_names(WhisperConfig::tiny()))
    if (name.starts_with(encoder("layers.3."))) found.push_back(name.substr(23));
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAre(
                  "self_attn_layer_norm.weight", "self_attn_layer_norm.bias",
                  "final_layer_norm.weight", "final_layer_norm.bias", "fc1.weight", "fc1.bias",
                  "fc2.weight", "fc2.bias", "self_attn.q_proj.weight", "self_attn.q_proj.bias",
                  "self_attn.v_proj.weight", "self_attn.v_proj.bias", "self_attn.out_proj.weight",
                  "self_attn.out_proj.bias", "self_attn.k_proj.weight"));
}

TEST(Whisper, W13_attention_is_unmasked_with_equal_heads) {
  const Case c({.batch = 2, .frames = 9});
  const Tensor attention = nth(c.graph, "attention", 0);
  const ir::Node& node = c.graph.data()->node(attention.id().node);
  ASSERT_EQ(node.inputs.size(), 3u);  // no mask
  for (const ValueId input : node.inputs)
    EXPECT_EQ(c.graph.value(input).shape(), Shape({2, 2, 5, 4}));
  const Literal normed = c.value(nth(c.graph, "layer_norm", 0)), got = c.value(attention);
  for (const std::int64_t item : {0, 1}) {
    const Matrix n = matrix(normed, item);
    const auto project = [&](const char* which) {
      return c.plain.linear(fmt::format("layers.0.self_attn.{}_proj", which), n);
    };
    const Matrix mixed = c.plain.attention(project("q"), project("k"), project("v"));
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t t = 0; t < 5; ++t)
        for (std::size_t d = 0; d < 4; ++d)
          EXPECT_NEAR(got.f()[((static_cast<std::size_t>(item) * 2 + head) * 5 + t) * 4 + d],
                      mixed[t][head * 4 + d], 1e-9);
  }
}

TEST(Whisper, W14_items_of_a_batch_never_mix) {
  const auto run = [](std::int64_t batch, const Literal& mel) {
    const Case c({.batch = batch, .frames = 9}, one_layer());
    Session session = build_inference_session(c.graph);
    for (const Leaf& leaf : c.graph.leaves(LeafKind::parameter))
      session.set_parameter(leaf.name, c.values.at(leaf.name));
    session.set_input("mel", mel);
    session.step();
    return session.output("last_hidden_state").to_doubles();
  };
  const Literal both = fill("two", {2, 5, 9});
  std::vector<double> separate;
  for (const std::int64_t item : {0, 1})
    for (const double value : run(1, Literal::floats({1, 5, 9}, flat(matrix(both, item)))))
      separate.push_back(value);
  expect_close(run(2, both), separate, 1e-6);
}

TEST(Whisper, W15_the_feed_forward_network) {
  const Graph tiny = zoo::whisper_encoder(WhisperConfig::tiny(), {.frames = 4});
  EXPECT_EQ(tiny.leaf(encoder("layers.0.fc1.weight")).shape(), Shape({1536, 384}));
  EXPECT_EQ(tiny.leaf(encoder("layers.0.fc1.bias")).shape(), Shape({1536}));
  EXPECT_EQ(tiny.leaf(encoder("layers.0.fc2.weight")).shape(), Shape({384, 1536}));
  EXPECT_EQ(tiny.leaf(encoder("layers.0.fc2.bias")).shape(), Shape({384}));
  const Case c({.frames = 9});
  const Literal normed = c.value(nth(c.graph, "layer_norm", 1)),
                hidden = c.value(nth(c.graph, "gelu", 2));
  EXPECT_EQ(hidden.shape(), Shape({1, 5, 12}));
  expect_close(flat(matrix(hidden)),
               flat(exact_gelu(c.plain.linear("layers.0.fc1", matrix(normed)))));
}

TEST(Whisper, W16_every_norm_uses_the_configured_epsilon_and_one_closes_the_encoder) {
  const Case c({.frames = 9});
  const std::vector<std::string> norms = {
      "layers.0.self_attn_layer_norm", "layers.0.final_layer_norm", "layers.1.self_attn_layer_norm",
      "layers.1.final_layer_norm", "layer_norm"};
  for (int k = 0; k < 5; ++k) {
    const Tensor norm = nth(c.graph, "layer_norm", k);
    const ir::Node& node = c.graph.data()->node(norm.id().node);
    const std::string& name = norms[static_cast<std::size_t>(k)];
    EXPECT_EQ(c.graph.value(node.inputs[1]), c.graph.leaf(encoder(name + ".weight")));
    EXPECT_EQ(c.graph.value(node.inputs[2]), c.graph.leaf(encoder(name + ".bias")));
    const Literal x = c.value(c.graph.value(node.inputs[0]));
    expect_close(flat(matrix(c.value(norm))), flat(c.plain.norm(name, matrix(x))));
  }
  EXPECT_EQ(c.graph.output("last_hidden_state"), nth(c.graph, "layer_norm", 4));
  // The epsilon is not negligible in these numbers.
  WhisperConfig other = small_config();
  other.layer_norm_eps = 1;
  const Case d({.frames = 9}, other);
  EXPECT_GT(std::fabs(d.output().at(0) - c.output().at(0)), 1e-3);
}

TEST(Whisper, W17_the_output_is_batch_length_width) {
  const Graph graph = zoo::whisper_encoder(small_config(), {.batch = 3, .frames = 9});
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.output("last_hidden_state").type().str(), "f32[3,5,8]");
}

TEST(Whisper, W18_counts_of_tiny) {
  const Graph encoder = zoo::whisper_encoder(WhisperConfig::tiny());
  EXPECT_EQ(encoder.leaves(LeafKind::parameter).size(), 67u);
  EXPECT_EQ(elements_of(encoder), 8208384);
  const zoo::Model training = zoo::whisper_training(WhisperConfig::tiny());
  EXPECT_EQ(training.graph.leaves(LeafKind::parameter).size(), 68u);
  EXPECT_EQ(elements_of(training.graph), 8232960);
}

TEST(Whisper, W19_the_training_graph) {
  const zoo::Model model = zoo::whisper_training(small_config(), {.batch = 2, .frames = 9});
  EXPECT_EQ(model.graph.leaf("train_proj.weight").shape(), Shape({64, 8}));
  EXPECT_FALSE(model.graph.find("train_proj.bias"));
  ASSERT_EQ(model.graph.outputs().size(), 1u);
  EXPECT_EQ(model.graph.output("loss"), model.loss);
  EXPECT_EQ(model.loss.type().str(), "f32[]");
  // The mean over batch and length of -log softmax.
  ref::Bindings values = filled(model.graph);
  const Literal labels = fill_int("labels", {10}, 0, 64);
  values["labels"] = labels;
  const Case c({.batch = 2, .frames = 9});
  const Literal states = c.output();
  const Matrix weight = matrix(values.at("train_proj.weight"));
  double total = 0;
  for (std::size_t row = 0; row < 10; ++row) {
    std::vector<double> logits(64);
    double sum = 0;
    for (std::size_t k = 0; k < 64; ++k) {
      for (std::size_t d = 0; d < 8; ++d) logits[k] += weight[k][d] * states.f()[row * 8 + d];
      sum += std::exp(logits[k]);
    }
    total += std::log(sum) - logits[static_cast<std::size_t>(labels.i()[row])];
  }
  EXPECT_NEAR(evaluate(model.graph, model.loss, values).at(0), total / 10, 1e-9);
}

TEST(Whisper, W20_classes_and_their_one_hot_form_give_the_same_loss) {
  const Literal classes = fill_int("labels", {10}, 0, 64);
  std::vector<double> one_hot(640);
  for (std::size_t row = 0; row < 10; ++row)
    one_hot[row * 64 + static_cast<std::size_t>(classes.i()[row])] = 1;
  const auto loss = [](zoo::Labels form, const Literal& labels) {
    const zoo::Model model =
        zoo::whisper_training(small_config(), {.batch = 2, .frames = 9}, {.labels = form});
    EXPECT_EQ(model.labels.type(), labels.type());
    ref::Bindings values = filled(model.graph);
    values["labels"] = labels;
    return evaluate(model.graph, model.loss, values).at(0);
  };
  EXPECT_NEAR(loss(zoo::Labels::classes, classes),
              loss(zoo::Labels::probabilities, Literal::floats({10, 64}, one_hot)), 1e-12);
}

// [out, in] and [out, in, kernel], as in the state of transformers' WhisperEncoder.
const std::map<std::string, Shape>& hugging_face_tensors() {
  static const std::map<std::string, Shape> all = {
      {"model.encoder.conv1.weight", {8, 5, 3}},
      {"model.encoder.conv1.bias", {8}},
      {"model.encoder.conv2.weight", {8, 8, 3}},
      {"model.encoder.conv2.bias", {8}},
      {"model.encoder.embed_positions.weight", {7, 8}},
      {"model.encoder.layers.0.self_attn.k_proj.weight", {8, 8}},
      {"model.encoder.layers.0.self_attn.v_proj.weight", {8, 8}},
      {"model.encoder.layers.0.self_attn.v_proj.bias", {8}},
      {"model.encoder.layers.0.self_attn.q_proj.weight", {8, 8}},
      {"model.encoder.layers.0.self_attn.q_proj.bias", {8}},
      {"model.encoder.layers.0.self_attn.out_proj.weight", {8, 8}},
      {"model.encoder.layers.0.self_attn.out_proj.bias", {8}},
      {"model.encoder.layers.0.self_attn_layer_norm.weight", {8}},
      {"model.encoder.layers.0.self_attn_layer_norm.bias", {8}},
      {"model.encoder.layers.0.fc1.weight", {12, 8}},
      {"model.encoder.layers.0.fc1.bias", {12}},
      {"model.encoder.layers.0.fc2.weight", {8, 12}},
      {"model.encoder.layers.0.fc2.bias", {8}},
      {"model.encoder.layers.0.final_layer_norm.weight", {8}},
      {"model.encoder.layers.0.final_layer_norm.bias", {8}},
      {"model.encoder.layer_norm.weight", {8}},
      {"model.encoder.layer_norm.bias", {8}}};
  return all;
}

TEST(Whisper, W21_tensors_load_as_hugging_face_stores_them) {
  const Graph graph = zoo::whisper_encoder(one_layer(), {.frames = 9});
  std::map<std::string, Shape> shapes;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) shapes[leaf.name] = leaf.value.shape();
  EXPECT_EQ(shapes, hugging_face_tensors());

  const tests::TemporaryFolder folder;
  std::map<std::string, std::vector<float>> stored;
  std::vector<io::TensorBytes> tensors;
  for (const auto& [name, shape] : hugging_face_tensors()) {
    const Literal filled = fill(name, shape);
    for (const double value : filled.f()) stored[name].push_back(static_cast<float>(value));
    tensors.push_back({name, {f32, shape}, std::as_bytes(std::span(stored[name]))});
  }
  io::write_safetensors(folder.file("model.safetensors"), tensors);
  Session session = build_inference_session(graph);
  session.load(folder.file("model.safetensors"));
  for (const auto& [name, values] : stored)
    EXPECT_EQ(session.parameter(name).to_doubles(),
              std::vector<double>(values.begin(), values.end()))
        << name;
}

}  // namespace
}  // namespace pantala::tests::whisper_test
