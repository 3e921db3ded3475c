#include "pantala/zoo/llama.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "zoo/llama_config.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {

void check(const LlamaConfig& config, std::string_view function, const Where& where) {
  const std::vector<std::string> problems = problems_of(config);
  if (!problems.empty())
    ir::throw_type_error(function, ir::provenance(where),
                         fmt::format("{}", fmt::join(problems, "; ")));
}

void require_at_most(std::string_view function, std::int64_t value, std::int64_t most,
                     std::string_view what, const Where& where) {
  if (value > most)
    ir::throw_type_error(function, ir::provenance(where),
                         fmt::format("{} must be at most {}, got {}", what, most, value));
}

// How the heads of one layer look at each other: q [batch, heads, tokens, size], k and v [batch,
// kv_heads, tokens, size], before rotation.
using Attend =
    std::function<Tensor(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v)>;

// The layers, which all graphs share; they differ in how they attend.
class Decoder {
 public:
  Decoder(Graph& graph, const LlamaConfig& config, const Where& where)
      : graph_(graph), config_(config), where_(where) {
    table_ = matrix("model.embed_tokens", config.vocabulary, config.hidden);
  }

  // tokens [batch, sequence] to [batch, sequence, hidden], behind the last norm.
  Tensor hidden(const Tensor& tokens, const Attend& attend) {
    Tensor x = embedding({table_, where_}, tokens);
    for (std::int64_t k = 0; k < config_.layers; ++k) {
      const std::string layer = fmt::format("model.layers.{}", k);
      x = add({x, where_},
              attention_part(k, layer + ".self_attn", norm(layer + ".input_layernorm", x), attend));
      x = add({x, where_},
              feed_forward(layer + ".mlp", norm(layer + ".post_attention_layernorm", x)));
    }
    return norm("model.norm", x);
  }

  Tensor logits(const Tensor& hidden) {
    return linear({hidden, where_}, config_.tied_embeddings
                                        ? table_
                                        : matrix("lm_head", config_.vocabulary, config_.hidden));
  }

 private:
  // Ops that are made while it lives are those of the layer, in messages and profiles.
  ir::GraphData::Scope within(const std::string& layer) {
    ir::Provenance place = ir::provenance(where_);
    place.label = layer;
    return {*graph_.data(), std::move(place)};
  }

  Tensor matrix(const std::string& layer, std::int64_t out, std::int64_t in) {
    const Initializer first =
        config_.init_deviation > 0 ? init::normal(0, config_.init_deviation) : init::zeros();
    return graph_.parameter(layer + ".weight", {out, in}, first, f32, where_);
  }
  Tensor project(const std::string& layer, const Tensor& x, std::int64_t out) {
    const auto scope = within(layer);
    return linear({x, where_}, matrix(layer, out, x.shape().back()));
  }
  Tensor norm(const std::string& layer, const Tensor& x) {
    const auto scope = within(layer);
    const Tensor weight =
        graph_.parameter(layer + ".weight", {config_.hidden}, init::ones(), f32, where_);
    return rms_norm({x, where_}, weight, {.eps = config_.rms_eps});
  }

  // [batch, sequence, heads * size] to [batch, heads, sequence, size] and back.
  Tensor split_heads(const Tensor& x, std::int64_t heads) {
    return permute(
        {reshape({x, where_}, {x.dim(0), x.dim(1), heads, config_.size_of_head()}), where_},
        {0, 2, 1, 3});
  }
  Tensor join_heads(const Tensor& x) {
    return reshape({permute({x, where_}, {0, 2, 1, 3}), where_},
                   {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
  }

  Tensor attention_part(std::int64_t number, const std::string& name, const Tensor& x,
                        const Attend& attend) {
    const auto scope = within(name);
    const auto heads = [&](std::string_view part, std::int64_t count) {
      return split_heads(
          project(fmt::format("{}.{}", name, part), x, count * config_.size_of_head()), count);
    };
    const Tensor q = heads("q_proj", config_.heads), k = heads("k_proj", config_.kv_heads),
                 v = heads("v_proj", config_.kv_heads);
    return project(name + ".o_proj", join_heads(attend(number, q, k, v)), config_.hidden);
  }

  Tensor feed_forward(const std::string& name, const Tensor& x) {
    const auto scope = within(name);
    const Tensor gate = project(name + ".gate_proj", x, config_.intermediate),
                 up = project(name + ".up_proj", x, config_.intermediate);
    return project(name + ".down_proj", mul({silu({gate, where_}), where_}, up), config_.hidden);
  }

  Graph& graph_;
  const LlamaConfig& config_;
  const Where where_;
  Tensor table_;
};

}  // namespace

Model llama(const LlamaConfig& config, const LlamaSize& size, Where where) {
  check(config, "llama", where);
  require_positive("llama", size.batch, "batch", where);
  require_positive("llama", size.sequence, "sequence", where);
  require_at_most("llama", size.sequence, config.max_positions, "sequence", where);
  Model model;
  const Shape shape{size.batch, size.sequence};
  model.input = model.graph.input("tokens", shape, i64, where);
  model.labels = model.graph.input("labels", shape, i64, where);
  const RopeOptions turn{.theta = config.rope_theta};
  const Attend attend = [&](std::int64_t, const Tensor& q, const Tensor& k, const Tensor& v) {
    return attention({rope({q, where}, turn), where}, rope({k, where}, turn), v, {.causal = true});
  };
  Decoder decoder(model.graph, config, where);
  model.logits = decoder.logits(decoder.hidden(model.input, attend));
  const std::int64_t rows = size.batch * size.sequence;
  model.loss = cross_entropy({reshape({model.logits, where}, {rows, config.vocabulary}), where},
                             reshape({model.labels, where}, {rows}));
  model.graph.output("logits", model.logits, where);
  model.graph.output("loss", model.loss, where);
  return model;
}

Graph llama_cached(const LlamaConfig& config, const LlamaCacheSize& size, Where where) {
  check(config, "llama_cached", where);
  require_positive("llama_cached", size.batch, "batch", where);
  require_positive("llama_cached", size.tokens, "tokens", where);
  require_positive("llama_cached", size.cache, "cache", where);
  require_at_most("llama_cached", size.cache, config.max_positions, "cache", where);
  require_at_most("llama_cached", size.tokens, size.cache, "tokens", where);
  Graph graph;
  const Tensor tokens = graph.input("tokens", {size.batch, size.tokens}, i64, where),
               position = graph.input("position", {}, i64, where),
               length = add({position, where}, size.tokens);
  // The cache with these tokens' keys or values in it.
  const auto written = [&](std::int64_t layer, std::string_view what, const Tensor& fresh) {
    const Tensor cache =
        graph.state(fmt::format("cache.{}.{}", layer, what),
                    {size.batch, config.kv_heads, size.cache, config.size_of_head()}, init::zeros(),
                    f32, where);
    const Tensor after = update_slice({cache, where}, fresh, position, 2);
    graph.update(cache, after, where);
    return after;
  };
  const RopeOptions turn{.theta = config.rope_theta};
  const Attend attend = [&](std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor keys = written(layer, "key", rope({k, where}, turn, position)),
                 values = written(layer, "value", v);
    return attention_cached({rope({q, where}, turn, position), where}, keys, values, length,
                            {.causal = true});
  };
  Decoder decoder(graph, config, where);
  Tensor hidden = decoder.hidden(tokens, attend);
  // Only one row is wanted of the output layer, the largest product of all.
  if (size.tokens > 1)
    hidden = dynamic_slice({hidden, where}, graph.input("last", {}, i64, where), 1, 1);
  hidden = reshape({hidden, where}, {size.batch, config.hidden});
  graph.output("logits", decoder.logits(hidden), where);
  return graph;
}

std::vector<Preset> llama_presets() {
  const Type item{i64, {128}};
  std::vector<Preset> presets;
  for (const LlamaPreset& known : llama_configs()) {
    const auto make = [known, item](const Request& request) {
      LlamaConfig config = resized(known.config, request.sizes);
      Request rest = request;
      rest.sizes = {};
      const Resolved asked = resolve(rest, item, config.vocabulary, known.name);
      config.vocabulary = asked.classes;
      return llama(config, {.batch = asked.batch, .sequence = asked.item[0]});
    };
    presets.push_back({.name = known.name,
                       .about = known.about,
                       .item = item,
                       .classes = known.config.vocabulary,
                       .make = make,
                       .in_help = known.in_help});
  }
  return presets;
}

}  // namespace pantala::zoo
