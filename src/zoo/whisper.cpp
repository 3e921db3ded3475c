#include "pantala/zoo/whisper.h"

#include <fmt/format.h>

#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {

constexpr std::string_view kModel = "whisper";

[[noreturn]] void fail(const Where& where, const std::string& message) {
  ir::throw_type_error(kModel, ir::provenance(where), message);
}

void check(const WhisperConfig& config, const Where& where) {
  require_positive(kModel, config.d_model, "d_model", where);
  require_positive(kModel, config.n_layers, "n_layers", where);
  require_positive(kModel, config.ffn_dim, "ffn_dim", where);
  require_positive(kModel, config.n_mels, "n_mels", where);
  require_positive(kModel, config.max_source_positions, "max_source_positions", where);
  config.head_dim(where);  // its errors
}

// Makes the layers of one encoder; every node is reported at the user's line.
class Encoder {
 public:
  Encoder(const WhisperConfig& config, const Where& where)
      : config_(config), head_dim_(config.head_dim(where)), where_(where) {}

  // [batch, n_mels, frames] to [batch, length, d_model].
  Tensor operator()(const Tensor& mel) const {
    Tensor h = positioned(stem(mel));
    for (std::int64_t i = 0; i < config_.n_layers; ++i)
      h = layer(fmt::format("model.encoder.layers.{}", i), h);
    return norm("model.encoder.layer_norm", h);
  }

 private:
  Operand at(const Tensor& x) const { return {x, where_}; }
  Tensor norm(const std::string& name, const Tensor& x) const {
    return nn::layer_norm(name, at(x), {.eps = config_.layer_norm_eps});
  }
  Tensor linear(const std::string& name, const Tensor& x, std::int64_t out,
                bool bias = true) const {
    return nn::linear(name, at(x), out, {.bias = bias});
  }

  // [batch, d_model, length].
  Tensor stem(const Tensor& mel) const {
    const auto conv = [&](std::string_view name, const Tensor& x, std::int64_t stride) {
      return gelu(
          at(nn::conv1d(name, at(x), config_.d_model, {3}, {.stride = {stride}, .padding = {1}})));
    };
    return conv("model.encoder.conv2", conv("model.encoder.conv1", mel, 1), 2);
  }

  // With the length before the channels, and the first rows of the table added.
  Tensor positioned(const Tensor& x) const {
    Graph graph(x.graph());
    const Tensor table = graph.parameter("model.encoder.embed_positions.weight",
                                         {config_.max_source_positions, config_.d_model},
                                         init::normal(0, 0.02), f32, where_);
    return add(at(permute(at(x), {0, 2, 1})), at(slice_axis(at(table), 0, 0, x.dim(2))));
  }

  Tensor attend(const std::string& name, const Tensor& x) const {
    const std::int64_t batch = x.dim(0), length = x.dim(1), size = config_.d_model;
    const auto heads = [&](std::string_view projection, bool bias) {
      const Tensor projected = linear(fmt::format("{}.{}", name, projection), x, size, bias);
      return permute(at(reshape(at(projected), {batch, length, config_.n_heads, head_dim_})),
                     {0, 2, 1, 3});
    };
    const Tensor q = heads("q_proj", true), k = heads("k_proj", false), v = heads("v_proj", true);
    const Tensor mixed = permute(at(attention(at(q), at(k), at(v))), {0, 2, 1, 3});
    return linear(name + ".out_proj", reshape(at(mixed), {batch, length, size}), size);
  }

  Tensor layer(const std::string& name, const Tensor& x) const {
    const Tensor h =
        add(at(x), at(attend(name + ".self_attn", norm(name + ".self_attn_layer_norm", x))));
    const Tensor hidden =
        gelu(at(linear(name + ".fc1", norm(name + ".final_layer_norm", h), config_.ffn_dim)));
    return add(at(h), at(linear(name + ".fc2", hidden, config_.d_model)));
  }

  const WhisperConfig& config_;
  std::int64_t head_dim_;
  Where where_;
};

Tensor mel_input(Graph& graph, const WhisperConfig& config, const WhisperSizes& sizes,
                 const Where& where) {
  check(config, where);
  require_positive(kModel, sizes.batch, "batch", where);
  config.length(sizes.frames, where);  // its errors, before the graph has the input
  return graph.input("mel", {sizes.batch, config.n_mels, sizes.frames}, f32, where);
}

}  // namespace

WhisperConfig WhisperConfig::tiny() { return {}; }

WhisperConfig WhisperConfig::base() {
  return {.d_model = 512, .n_heads = 8, .n_layers = 6, .ffn_dim = 2048};
}

WhisperConfig WhisperConfig::small() {
  return {.d_model = 768, .n_heads = 12, .n_layers = 12, .ffn_dim = 3072};
}

std::int64_t WhisperConfig::head_dim(Where where) const {
  require_positive(kModel, n_heads, "n_heads", where);
  if (d_model % n_heads != 0)
    fail(where, fmt::format("d_model {} does not divide into {} heads", d_model, n_heads));
  return d_model / n_heads;
}

std::int64_t WhisperConfig::length(std::int64_t frames, Where where) const {
  if (frames < 1)
    fail(where, fmt::format("frames must be positive, got {}; the table of positions is for "
                            "sequences of up to {}",
                            frames, max_source_positions));
  const std::int64_t result = (frames - 1) / 2 + 1;
  if (result > max_source_positions)
    fail(where, fmt::format("{} frames make a sequence of {}, but max_source_positions is {}",
                            frames, result, max_source_positions));
  return result;
}

Tensor whisper_layers(Operand mel, const WhisperConfig& config) {
  const Where where = mel.where();
  check(config, where);
  const Tensor& x = mel.tensor();
  if (x.dtype() != f32 || x.rank() != 3 || x.dim(1) != config.n_mels)
    fail(where, fmt::format("the spectrogram must be f32[batch,{},frames], got {}", config.n_mels,
                            x.type().str()));
  config.length(x.dim(2), where);
  return Encoder(config, where)(x);
}

Graph whisper_encoder(const WhisperConfig& config, const WhisperSizes& sizes, Where where) {
  Graph graph;
  const Tensor mel = mel_input(graph, config, sizes, where);
  graph.output("last_hidden_state", whisper_layers({mel, where}, config), where);
  return graph;
}

Model whisper_training(const WhisperConfig& config, const WhisperSizes& sizes,
                       const WhisperTraining& training, Where where) {
  require_positive(kModel, training.classes, "classes", where);
  Model model;
  model.input = mel_input(model.graph, config, sizes, where);
  const Tensor states = whisper_layers({model.input, where}, config);
  const std::int64_t rows = states.dim(0) * states.dim(1);
  const Tensor flat = reshape({states, where}, {rows, config.d_model});
  model.logits = nn::linear("train_proj", {flat, where}, training.classes, {.bias = false});
  model.labels = training.labels == Labels::classes
                     ? model.graph.input("labels", {rows}, i64, where)
                     : model.graph.input("labels", {rows, training.classes}, f32, where);
  model.loss = cross_entropy({model.logits, where}, model.labels);
  model.graph.output("loss", model.loss, where);
  return model;
}

std::vector<std::string> whisper_weight_names(const WhisperConfig& config, Where where) {
  std::vector<std::string> names;
  const Graph graph = whisper_encoder(config, {.batch = 1, .frames = 1}, where);
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
  return names;
}

std::vector<Preset> whisper_presets() {
  const Type item{f32, {80, 3000}};
  constexpr std::int64_t kClasses = 64;
  const auto preset = [&](std::string name, std::string about, const WhisperConfig& base) {
    const auto make = [name, item, base](const Request& request) {
      const Resolved asked = resolve(request, item, kClasses, name);
      WhisperConfig config = base;
      config.n_mels = asked.item[0];
      Model model = whisper_training(config, {.batch = asked.batch, .frames = asked.item[1]},
                                     {.classes = asked.classes});
      const std::int64_t length = config.length(asked.item[1]);
      model.logits = reshape(model.logits, {asked.batch, length, asked.classes});
      model.graph.output("logits", model.logits);
      return model;
    };
    return Preset{
        .name = name,
        .about = std::move(about),
        .item = item,
        .classes = kClasses,
        .make = make,
        // Said once, for all sizes.
        .in_help = name == "whisper-tiny" ? "whisper, the encoder of Hugging Face's" : "",
        .positions = [base](const Shape& spectrogram) { return base.length(spectrogram[1]); }};
  };
  return {
      preset("whisper-tiny", "Whisper's encoder, 4 layers of 384", WhisperConfig::tiny()),
      preset("whisper-base", "Whisper's encoder, 6 layers of 512", WhisperConfig::base()),
      preset("whisper-small", "Whisper's encoder, 12 layers of 768", WhisperConfig::small()),
  };
}

}  // namespace pantala::zoo
