// pantala generate: text of a language model, from a run or from files of weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "io/json.h"
#include "pantala/error.h"
#include "pantala/generate.h"
#include "pantala/weights.h"
#include "run/models/model.h"
#include "run/trained.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/options.h"
#include "tools/process.h"
#include "train/snapshot.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kBytes = 256;  // a vocabulary of so many tokens is that of bytes

struct TextOptions {
  std::string run, checkpoint = run::kReported, model, weights, config, prompt, prompt_tokens,
                   stop_tokens;
  std::optional<std::int64_t> tokens;
  std::int64_t cache = 0;
  SamplerOptions sampler;
  std::string device;
  int threads = 0;
  bool json = false;
};

// "1,2,3"
std::vector<std::int64_t> token_list(const std::string& text, const std::string& option) {
  std::vector<std::int64_t> tokens;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    std::int64_t token = 0;
    const auto [next, error] = std::from_chars(at, end, token);
    if (error != std::errc() || (next != end && *next != ',') || next + 1 == end)
      throw TypeError(fmt::format("{}: expected whole numbers with commas between them, got '{}'",
                                  option, text));
    tokens.push_back(token);
    at = next == end ? end : next + 1;
  }
  return tokens;
}

// The model with its weights.
struct Writer {
  std::optional<run::Trained> trained;             // whose session the generator uses
  std::unique_ptr<train::AveragesInUse> averages;  // of the weights, as evaluation has them
  std::optional<Generator> generator;
};

Writer open_run(const TextOptions& options, GeneratorOptions generator) {
  Writer writer;
  writer.trained.emplace(
      run::open_trained(run::open_run_folder(options.run),
                        {options.checkpoint, options.threads, plan_cache(), options.device}));
  zoo::LlamaConfig config = run::llama_of(writer.trained->config);
  config.vocabulary = writer.trained->facts.classes;
  Session& session = writer.trained->trainer.session();
  writer.averages = std::make_unique<train::AveragesInUse>(session, writer.trained->has_averages());
  generator.device = writer.trained->config.device;
  generator.threads =
      options.threads > 0 ? options.threads : static_cast<int>(writer.trained->config.threads);
  writer.generator.emplace(session, config, generator);
  return writer;
}

// The config is that of the preset, of a file, or of the file that stands beside the weights.
zoo::LlamaConfig config_of(const TextOptions& options) {
  if (!options.model.empty()) return zoo::llama_config(options.model);
  if (!options.config.empty()) return zoo::read_llama_config(options.config);
  const std::filesystem::path weights = options.weights;
  const auto folder = std::filesystem::is_directory(weights) ? weights : weights.parent_path();
  const auto beside = folder / "config.json";
  if (!std::filesystem::exists(beside))
    throw TypeError(fmt::format(
        "--model or --config must say what the weights are of: there is no {}", beside.string()));
  return zoo::read_llama_config(beside);
}

Writer open_weights(const TextOptions& options, const GeneratorOptions& generator) {
  const Weights weights = Weights::open(options.weights);
  Writer writer;
  writer.generator.emplace(config_of(options), generator);
  writer.generator->session().load_weights(weights);
  return writer;
}

Writer open_writer(const TextOptions& options) {
  if (options.run.empty() == options.weights.empty())
    throw TypeError("generate: either RUN or --weights must be given");
  if (!options.run.empty() && !(options.model.empty() && options.config.empty()))
    throw TypeError("generate: --model and --config go with --weights; a run knows its own");
  GeneratorOptions generator{.cache = options.cache, .threads = options.threads};
  if (!options.device.empty()) generator.device = options.device;
  return options.run.empty() ? open_weights(options, generator) : open_run(options, generator);
}

std::vector<std::int64_t> prompt_of(const TextOptions& options, std::int64_t vocabulary) {
  if (!options.prompt_tokens.empty()) return token_list(options.prompt_tokens, "--prompt-tokens");
  if (options.prompt.empty())
    throw TypeError("generate: --prompt or --prompt-tokens must be given");
  if (vocabulary != kBytes)
    throw TypeError(fmt::format(
        "--prompt: the model has {} tokens, and text is bytes, of which there are {}; give "
        "--prompt-tokens",
        vocabulary, kBytes));
  std::vector<std::int64_t> tokens;
  for (const char c : options.prompt) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string_view name_of(Stopped stopped) {
  switch (stopped) {
    case Stopped::token:
      return "token";
    case Stopped::length:
      return "length";
    case Stopped::cache:
      return "cache";
    case Stopped::callback:
      return "callback";
  }
  return "";
}

// Where nobody asked for a number, the text may be as long as fits.
std::int64_t max_tokens(const TextOptions& options, const Generator& generator,
                        std::size_t prompt) {
  constexpr std::int64_t kDefault = 100;
  return options.tokens.value_or(std::clamp<std::int64_t>(
      generator.capacity() - static_cast<std::int64_t>(prompt), 1, kDefault));
}

int generate(const TextOptions& options) {
  Writer writer = open_writer(options);
  Generator& generator = *writer.generator;
  const std::int64_t vocabulary = generator.config().vocabulary;
  const std::vector<std::int64_t> prompt = prompt_of(options, vocabulary);
  const bool is_text = vocabulary == kBytes;
  const auto show = [&](std::int64_t token) {
    if (is_text)
      std::fputc(static_cast<int>(token), stdout);
    else
      fmt::print("{} ", token);
    std::fflush(stdout);
    return true;
  };
  GenerateOptions how{.max_tokens = max_tokens(options, generator, prompt.size()),
                      .stop_tokens = token_list(options.stop_tokens, "--stop-tokens"),
                      .sampler = options.sampler};
  // The prompt is shown when the first token is there: nothing stands before an error.
  bool begun = false;
  const auto begin_text = [&] {
    if (!begun && is_text) fmt::print("{}", options.prompt);
    begun = true;
  };
  if (!options.json)
    how.on_token = [&](std::int64_t token) {
      begin_text();
      return show(token);
    };
  const auto begin = std::chrono::steady_clock::now();
  const Generated text = generator.generate(prompt, how);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (options.json) {
    io::OrderedJson result{{"tokens", text.tokens}, {"stopped", name_of(text.stopped)}};
    fmt::print("{}\n", result.dump());
  } else {
    begin_text();
    fmt::print("\n");
  }
  print_error("{} tokens behind a prompt of {} in {:.2f} s\n", text.tokens.size(), prompt.size(),
              seconds);
  return 0;
}

}  // namespace

Run generate_verb(VerbOptions& verb) {
  const auto options = std::make_shared<TextOptions>();
  verb.add_option("RUN", options->run, "The folder of a run that trained a language model");
  verb.add_option("--checkpoint", options->checkpoint, "Of a run. " + run::checkpoint_help())
      ->capture_default_str();
  verb.add_option("--weights", options->weights,
                  "Instead of a run: FILE.safetensors, its index, or a folder with one");
  verb.add_option("--model", options->model,
                  "Of the weights: smollm2-135m, smollm2-360m or llama-bytes");
  verb.add_option("--config", options->config,
                  "Of the weights: Hugging Face's config.json, by default the one beside them");
  const auto prompt = verb.add_option("--prompt", options->prompt,
                                      "Text to continue, for models whose tokens are bytes");
  verb.add_option("--prompt-tokens", options->prompt_tokens, "Tokens to continue: 1,2,3")
      ->excludes(prompt);
  verb.add_option(
          "--tokens", options->tokens,
          "How many to write; 0: until the cache is full; by default 100, or as many as fit")
      ->between(std::int64_t{0}, std::int64_t{1} << 24);
  verb.add_option("--stop-tokens", options->stop_tokens, "Tokens that end the text: 0,2");
  verb.add_option("--cache", options->cache,
                  "Room for this many tokens with the prompt; 0: 2048, or all that the model can")
      ->between(std::int64_t{0}, std::int64_t{1} << 24)
      ->capture_default_str();
  verb.add_option("--temperature", options->sampler.temperature, "0: the most likely token")
      ->capture_default_str();
  verb.add_option("--top-k", options->sampler.top_k,
                  "How many of the most likely tokens to choose from; 0: all")
      ->capture_default_str();
  verb.add_option("--top-p", options->sampler.top_p,
                  "Only the fewest whose probabilities reach this sum")
      ->capture_default_str();
  verb.add_option("--seed", options->sampler.seed, "Another seed, another text")
      ->capture_default_str();
  add_device_flag(verb, options->device, "as in the run, or cpu");
  verb.add_option("--threads", options->threads, "Threads that compute; 0: as many as there are")
      ->between(0, 1024)
      ->capture_default_str();
  verb.add_flag("--json", options->json, "An object with the tokens and why they ended");
  verb.footer(
      "Models over bytes write text, others the numbers of their tokens.\n"
      "Examples:\n"
      "  pantala generate runs/llama-bytes-book --prompt 'Once ' --tokens 200 --temperature 0.8\n"
      "  pantala generate --weights SmolLM2-135M --prompt-tokens 504,3575,282 --top-k 40 --json");
  return [options] { return generate(*options); };
}

}  // namespace pantala::tools
