// Configs of the Llama family: the known ones, the rules, and Hugging Face's file.
#include "zoo/llama_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "pantala/error.h"

namespace pantala::zoo {

namespace {

using io::Json;

// Larger than any model: a slip, or a file that wants to exhaust the memory.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 24, kMaxLayers = 4096;

// Takes values out of a config.json and gathers what is wrong with it.
class ConfigFile {
 public:
  ConfigFile(const Json& json, std::string file) : json_(json), file_(std::move(file)) {
    if (!json.is_object()) throw ParseError(fmt::format("{}: expected an object", file_));
  }

  bool has(const std::string& key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  void read(const std::string& key, std::int64_t& value) const {
    const Json& found = at(key);
    if (!found.is_number_integer()) fail(key, "a whole number", found);
    // Above the range of i64 the number would wrap; above 2^53 no size is meant.
    if (found.get<double>() > 0x1p53 || found.get<double>() < -0x1p53) fail(key, "a size", found);
    value = found.get<std::int64_t>();
  }
  void read(const std::string& key, double& value) const {
    const Json& found = at(key);
    if (!found.is_number()) fail(key, "a number", found);
    value = found.get<double>();
  }
  void read(const std::string& key, bool& value) const {
    const Json& found = at(key);
    if (!found.is_boolean()) fail(key, "true or false", found);
    value = found.get<bool>();
  }
  void read(const std::string& key, std::string& value) const {
    const Json& found = at(key);
    if (!found.is_string()) fail(key, "a text", found);
    value = found.get<std::string>();
  }
  template <class T>
  void read_if_there(const std::string& key, T& value) const {
    if (has(key)) read(key, value);
  }
  const Json& at(const std::string& key) const {
    if (!has(key)) throw ParseError(fmt::format("{}: '{}' is missing", file_, key));
    return json_.at(key);
  }
  const std::string& file() const { return file_; }

 private:
  [[noreturn]] void fail(const std::string& key, std::string_view expected,
                         const Json& found) const {
    throw ParseError(fmt::format("{}: {} must be {}, found {}", file_, key, expected,
                                 found.is_structured() ? found.type_name() : found.dump()));
  }

  const Json& json_;
  const std::string file_;
};

// Rotary positions: `rope_theta` and `rope_scaling`, or both in `rope_parameters` of newer files.
void read_positions(const ConfigFile& file, LlamaConfig& config,
                    std::vector<std::string>& unsupported) {
  config.rope_theta = 10000;  // what files without one mean
  file.read_if_there("rope_theta", config.rope_theta);
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    if (!file.has(key)) continue;
    const ConfigFile part(file.at(key), fmt::format("{}: {}", file.file(), key));
    std::string type = "default";
    part.read_if_there("type", type);
    part.read_if_there("rope_type", type);
    if (type != "default") unsupported.push_back(fmt::format("{} of type '{}'", key, type));
    part.read_if_there("rope_theta", config.rope_theta);
  }
}

std::vector<std::string> unsupported_parts(const ConfigFile& file) {
  std::vector<std::string> unsupported;
  const auto expect = [&](const std::string& key, const std::string& only) {
    std::string value = only;
    file.read_if_there(key, value);
    if (value != only)
      unsupported.push_back(fmt::format("{} '{}' (only '{}' is)", key, value, only));
  };
  expect("model_type", "llama");
  expect("hidden_act", "silu");
  for (const std::string key : {"attention_bias", "mlp_bias"}) {
    bool biased = false;
    file.read_if_there(key, biased);
    if (biased) unsupported.push_back(key);
  }
  return unsupported;
}

}  // namespace

LlamaConfig smollm2_135m() { return {.init_deviation = 1.0 / 24}; }

LlamaConfig smollm2_360m() {
  return {.hidden = 960, .intermediate = 2560, .layers = 32, .heads = 15, .kv_heads = 5};
}

LlamaConfig llama_bytes() {
  return {.vocabulary = 256,
          .hidden = 192,
          .intermediate = 512,
          .layers = 4,
          .heads = 6,
          .kv_heads = 2,
          .max_positions = 2048,
          .rope_theta = 10000,
          .init_deviation = 0.05};
}

const std::vector<LlamaPreset>& llama_configs() {
  static const std::vector<LlamaPreset> all{
      {"smollm2-135m", "SmolLM2 of 135 million parameters", smollm2_135m(),
       "smollm2 is Hugging Face's"},
      {"smollm2-360m", "SmolLM2 of 360 million parameters", smollm2_360m()},
      {"llama-bytes", "a small language model over bytes", llama_bytes(),
       "llama-bytes is a small language model"},
  };
  return all;
}

LlamaConfig llama_config(std::string_view preset) {
  std::vector<std::string> names;
  for (const LlamaPreset& known : llama_configs()) {
    if (known.name == preset) return known.config;
    names.push_back(known.name);
  }
  throw TypeError(fmt::format("'{}' is no model of the Llama family{}; there are {}", preset,
                              did_you_mean(preset, names), fmt::join(names, ", ")));
}

std::vector<std::string> problems_of(const LlamaConfig& config) {
  std::vector<std::string> problems;
  const auto in_range = [&](std::int64_t value, std::string_view what, std::int64_t least,
                            std::int64_t most) {
    if (value < least || value > most)
      problems.push_back(
          fmt::format("{} must be within [{}, {}], got {}", what, least, most, value));
  };
  in_range(config.vocabulary, "vocabulary", 1, kMaxSize);
  in_range(config.hidden, "hidden", 1, kMaxSize);
  in_range(config.intermediate, "intermediate", 1, kMaxSize);
  in_range(config.layers, "layers", 1, kMaxLayers);
  in_range(config.heads, "heads", 1, kMaxSize);
  in_range(config.kv_heads, "kv_heads", 1, kMaxSize);
  in_range(config.head_size, "head_size", 0, kMaxSize);
  in_range(config.max_positions, "max_positions", 1, kMaxSize);
  const auto positive = [&](double value, std::string_view what) {
    if (!(std::isfinite(value) && value > 0))
      problems.push_back(fmt::format("{} must be finite and positive, got {}", what, exact(value)));
  };
  positive(config.rope_theta, "rope_theta");
  positive(config.rms_eps, "rms_eps");
  if (!(std::isfinite(config.init_deviation) && config.init_deviation >= 0))
    problems.push_back(fmt::format("init_deviation must be finite and not negative, got {}",
                                   exact(config.init_deviation)));
  if (!problems.empty()) return problems;  // what follows divides by these
  if (config.heads % config.kv_heads != 0)
    problems.push_back(fmt::format("heads must be a multiple of kv_heads, got {} and {}",
                                   config.heads, config.kv_heads));
  if (config.head_size == 0 && config.hidden % config.heads != 0)
    problems.push_back(
        fmt::format("hidden {} does not divide into {} heads", config.hidden, config.heads));
  else if (config.size_of_head() % 2 != 0)
    problems.push_back(fmt::format("heads must have an even size for rotary positions, got {}",
                                   config.size_of_head()));
  return problems;
}

LlamaConfig resized(const LlamaConfig& config, const LlamaSizes& sizes) {
  constexpr std::int64_t kStep = 16;
  LlamaConfig result = config;
  const auto put = [](std::int64_t given, std::int64_t& size) {
    if (given != 0) size = given;
  };
  put(sizes.layers, result.layers);
  if (sizes.width > 0 && sizes.width <= kMaxSize) {
    result.hidden = sizes.width;
    const double share =
        static_cast<double>(config.intermediate) / static_cast<double>(config.hidden);
    result.intermediate =
        static_cast<std::int64_t>(std::ceil(share * static_cast<double>(sizes.width) / kStep)) *
        kStep;
    if (config.head_size == 0 && sizes.width % config.size_of_head() == 0)
      result.heads = sizes.width / config.size_of_head();
  }
  put(sizes.width, result.hidden);
  put(sizes.feed_forward, result.intermediate);
  put(sizes.heads, result.heads);
  while (result.kv_heads > 1 && result.heads % result.kv_heads != 0) --result.kv_heads;
  put(sizes.kv_heads, result.kv_heads);
  const std::vector<std::string> problems = problems_of(result);
  if (problems.empty()) return result;
  throw TypeError(fmt::format(
      "a model of width {}, with {} layers, {} heads, {} kv_heads and feed_forward {}: {}",
      result.hidden, result.layers, result.heads, result.kv_heads, result.intermediate,
      fmt::join(problems, "; ")));
}

LlamaConfig parse_llama_config(std::string_view json, std::string_view file) {
  const Json document = io::parse_json(json, file);
  const ConfigFile given(document, std::string(file));
  LlamaConfig config;
  std::vector<std::string> unsupported = unsupported_parts(given);
  read_positions(given, config, unsupported);
  if (!unsupported.empty())
    throw UnsupportedError(
        fmt::format("{}: not supported: {}", file, fmt::join(unsupported, "; ")));
  given.read("vocab_size", config.vocabulary);
  given.read("hidden_size", config.hidden);
  given.read("intermediate_size", config.intermediate);
  given.read("num_hidden_layers", config.layers);
  given.read("num_attention_heads", config.heads);
  config.kv_heads = config.heads;
  given.read_if_there("num_key_value_heads", config.kv_heads);
  given.read_if_there("head_dim", config.head_size);
  config.max_positions = 2048;  // Hugging Face's own values where the file is silent
  given.read_if_there("max_position_embeddings", config.max_positions);
  config.rms_eps = 1e-6;
  given.read_if_there("rms_norm_eps", config.rms_eps);
  config.tied_embeddings = false;
  given.read_if_there("tie_word_embeddings", config.tied_embeddings);
  given.read_if_there("initializer_range", config.init_deviation);
  const std::vector<std::string> problems = problems_of(config);
  if (!problems.empty()) throw ParseError(fmt::format("{}: {}", file, fmt::join(problems, "; ")));
  return config;
}

LlamaConfig read_llama_config(const std::filesystem::path& path) {
  return parse_llama_config(io::read_file(path), path.string());
}

}  // namespace pantala::zoo
