#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"
#include "pantala/generate.h"

namespace pantala {

namespace {

constexpr const char* kTokenPlan = "generate.token";
constexpr const char* kPromptPlan = "generate.prompt";
constexpr std::int64_t kDefaultCache = 2048;

GeneratorOptions resolved(const zoo::LlamaConfig& config, GeneratorOptions options) {
  if (options.batch < 1)
    throw TypeError(fmt::format("generator: batch must be positive, got {}", options.batch));
  if (options.prefill_chunk < 1)
    throw TypeError(
        fmt::format("generator: prefill_chunk must be positive, got {}", options.prefill_chunk));
  if (options.cache < 0 || options.cache > config.max_positions)
    throw TypeError(fmt::format("generator: cache must be within [1, {}], got {}",
                                config.max_positions, options.cache));
  if (options.cache == 0) options.cache = std::min(kDefaultCache, config.max_positions);
  options.prefill_chunk = std::min(options.prefill_chunk, options.cache);
  return options;
}

// Drawing first values takes long where there are many, and here they are replaced.
zoo::LlamaConfig without_first_values(zoo::LlamaConfig config) {
  config.init_deviation = 0;
  return config;
}

CompileResult compile_plan(const zoo::LlamaConfig& config, const GeneratorOptions& options,
                           std::int64_t tokens) {
  const Graph graph =
      zoo::llama_cached(config, {.batch = options.batch, .tokens = tokens, .cache = options.cache});
  const CompileOptions compile{.device = options.device, .threads = options.threads};
  if (options.plan_cache.empty()) return pantala::compile(graph, compile);
  const auto file = options.plan_cache /
                    fmt::format("generate-{}-{}-{}.plan", options.batch, tokens, options.cache);
  return load_or_compile(file.string(), graph, compile);
}

}  // namespace

struct Generator::Data {
  Data(const zoo::LlamaConfig& model, const GeneratorOptions& given)
      : config(model),
        options(resolved(model, given)),
        own(Session(compile_plan(without_first_values(config), options, 1))),
        session(&*own),
        token_plan(session->plan(session->plans().at(0))) {
    prepare();
  }
  Data(Session& shared, const zoo::LlamaConfig& model, const GeneratorOptions& given)
      : config(model),
        options(resolved(model, given)),
        session(&shared),
        token_plan(shared.attach(kTokenPlan, compile_plan(config, options, 1).plan)) {
    prepare();
  }

  void prepare() {
    if (options.prefill_chunk > 1)
      prompt_plan =
          session->attach(kPromptPlan, compile_plan(config, options, options.prefill_chunk).plan);
    logits.resize(static_cast<std::size_t>(options.batch * config.vocabulary));
  }

  void check(std::span<const std::int64_t> tokens) const;
  void feed(std::span<const std::int64_t> tokens);
  std::int64_t feed_chunk(std::span<const std::int64_t> tokens, std::int64_t from,
                          std::int64_t count);

  const zoo::LlamaConfig config;
  const GeneratorOptions options;
  std::optional<Session> own;
  Session* session;
  SessionPlan token_plan;
  std::optional<SessionPlan> prompt_plan;
  std::int64_t position = 0;
  bool has_logits = false;
  std::vector<float> logits;         // [batch, vocabulary]
  std::vector<std::int64_t> window;  // the tokens of one run, [batch, tokens]
};

void Generator::Data::check(std::span<const std::int64_t> tokens) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count % options.batch != 0)
    throw TypeError(
        fmt::format("generator: {} tokens do not divide into a batch of {}", count, options.batch));
  for (const std::int64_t token : tokens)
    if (token < 0 || token >= config.vocabulary)
      throw TypeError(fmt::format("generator: token {} is outside of the vocabulary of {}", token,
                                  config.vocabulary));
  if (count / options.batch > options.cache - position)
    throw ValueError(fmt::format(
        "generator: the cache has room for {} tokens, {} are in it and {} more were given; open "
        "the generator with a larger cache",
        options.cache, position, count / options.batch));
}

// One run over the tokens from `from` on, of `count` a row; returns how many it took. A chunk that
// is not full is filled up: what that leaves in the cache stands behind the position and is
// overwritten before it is seen. Where the cache has no room for it, tokens go one by one.
std::int64_t Generator::Data::feed_chunk(std::span<const std::int64_t> tokens, std::int64_t from,
                                         std::int64_t count) {
  const std::int64_t left = count - from, chunk = options.prefill_chunk;
  const bool at_once = left > 1 && prompt_plan && position + chunk <= options.cache;
  const std::int64_t size = at_once ? chunk : 1, taken = std::min(left, size);
  window.assign(static_cast<std::size_t>(options.batch * size), 0);
  for (std::int64_t row = 0; row < options.batch; ++row)
    std::copy_n(tokens.begin() + row * count + from, taken, window.begin() + row * size);
  const SessionPlan& plan = at_once ? *prompt_plan : token_plan;
  plan.set_input("tokens", HostElements(std::span<const std::int64_t>(window)));
  plan.set_input("position", Literal::integer(position));
  if (at_once) plan.set_input("last", Literal::integer(taken - 1));
  plan.run();
  position += taken;
  if (taken == left) plan.output("logits", HostBuffer(std::span<float>(logits)));
  return taken;
}

void Generator::Data::feed(std::span<const std::int64_t> tokens) {
  check(tokens);
  if (tokens.empty()) return;
  const std::int64_t count = static_cast<std::int64_t>(tokens.size()) / options.batch;
  for (std::int64_t done = 0; done < count;) done += feed_chunk(tokens, done, count);
  has_logits = true;
}

Generator::Generator(const zoo::LlamaConfig& config, const GeneratorOptions& options)
    : data_(std::make_unique<Data>(config, options)) {}
Generator::Generator(Session& session, const zoo::LlamaConfig& config,
                     const GeneratorOptions& options)
    : data_(std::make_unique<Data>(session, config, options)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Session& Generator::session() { return *data_->session; }
const zoo::LlamaConfig& Generator::config() const { return data_->config; }
std::int64_t Generator::capacity() const { return data_->options.cache; }
std::int64_t Generator::position() const { return data_->position; }

void Generator::reset() { rewind(0); }
void Generator::rewind(std::int64_t position) {
  if (position < 0 || position > data_->position)
    throw TypeError(fmt::format("generator: it has {} tokens and cannot be rewound to {}",
                                data_->position, position));
  data_->position = position;
  data_->has_logits = false;
}

void Generator::feed(std::span<const std::int64_t> tokens) { data_->feed(tokens); }

std::span<const float> Generator::logits(std::int64_t row) const {
  if (!data_->has_logits) throw TypeError("generator: there are no logits before feed()");
  if (row < 0 || row >= data_->options.batch)
    throw TypeError(
        fmt::format("generator: there is no row {} in a batch of {}", row, data_->options.batch));
  const auto size = static_cast<std::size_t>(data_->config.vocabulary);
  return std::span<const float>(data_->logits).subspan(static_cast<std::size_t>(row) * size, size);
}

Generated Generator::generate(std::span<const std::int64_t> prompt,
                              const GenerateOptions& options) {
  Data& d = *data_;
  if (d.options.batch != 1)
    throw TypeError(fmt::format(
        "generate: it makes one text, the batch is {}; use feed() and a sampler for each row",
        d.options.batch));
  if (options.max_tokens < 0)
    throw TypeError(
        fmt::format("generate: max_tokens must not be negative, got {}", options.max_tokens));
  if (prompt.empty() && !d.has_logits)
    throw TypeError("generate: the prompt is empty, and nothing was fed before");
  d.check(prompt);
  // The last token is not fed.
  const std::int64_t room =
      d.options.cache - d.position - static_cast<std::int64_t>(prompt.size()) + 1;
  if (options.max_tokens > room)
    throw ValueError(fmt::format(
        "generate: max_tokens is {}, but behind a prompt of {} tokens the cache of {} has room for "
        "{}; open the generator with a larger cache",
        options.max_tokens, d.position + static_cast<std::int64_t>(prompt.size()), d.options.cache,
        room));
  Sampler sampler(options.sampler);
  d.feed(prompt);
  Generated text;
  while (true) {
    const std::int64_t token = sampler.pick(d.logits);
    if (std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end()) {
      text.stopped = Stopped::token;
      return text;
    }
    text.tokens.push_back(token);
    const auto count = static_cast<std::int64_t>(text.tokens.size());
    if (options.on_token && !options.on_token(token))
      text.stopped = Stopped::callback;
    else if (count == options.max_tokens)
      text.stopped = Stopped::length;
    else if (count == room)
      text.stopped = Stopped::cache;
    else {
      d.feed(std::span(&token, 1));
      continue;
    }
    return text;
  }
}

}  // namespace pantala
