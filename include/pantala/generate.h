// Text generation with models of the Llama family (pantala/zoo/llama.h): a sampler that picks
// tokens by their logits, and a generator that feeds a model token by token and keeps what it has
// seen in its cache.
//
// Prompts of any length need two plans only: one that takes a fixed number of tokens at a run-time
// position, and one that takes a single token. Equal seeds, weights and prompts give equal tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pantala/session.h"
#include "pantala/zoo/llama.h"

namespace pantala {

// What is left out is left out in this order; the rest is drawn by its probabilities.
struct SamplerOptions {
  double temperature = 1;  // divides the logits; 0: always the most likely token
  std::int64_t top_k = 0;  // only this many of the most likely tokens; 0: all
  double top_p = 1;        // of these the fewest whose probabilities reach this sum
  std::uint64_t seed = 0;
};

// The n-th pick is a function of the options, the n-th logits and n alone. Of equally likely tokens
// the one with the smaller number counts as the more likely.
class Sampler {
 public:
  // TypeError for options out of range.
  explicit Sampler(const SamplerOptions& options = {});
  const SamplerOptions& options() const { return options_; }
  // ValueError if there is a NaN or +inf among the logits, or nothing but -inf.
  std::int64_t pick(std::span<const float> logits);
  // Back to the first pick, with another seed.
  void restart(std::uint64_t seed);

 private:
  double draw();  // uniform in [0, 1)

  SamplerOptions options_;
  std::uint64_t picks_ = 0;
};

struct GeneratorOptions {
  std::int64_t batch = 1;  // sequences that run side by side
  std::int64_t cache = 0;  // tokens a sequence can have; 0: 2048, or all that the model can
  std::int64_t prefill_chunk = 64;  // tokens of a prompt that are taken at once
  std::string device = "cpu";
  int threads = 0;                        // 0: as many as the process may use
  std::filesystem::path plan_cache = {};  // a folder for the two compiled plans; "": none
};

// When a text ended.
enum class Stopped : std::uint8_t {
  token,     // one of the stop tokens was picked
  length,    // there are max_tokens
  cache,     // the cache is full
  callback,  // on_token said so
};
struct Generated {
  std::vector<std::int64_t> tokens;  // without the stop token
  Stopped stopped = Stopped::length;
};
struct GenerateOptions {
  std::int64_t max_tokens = 0;  // 0: until the cache is full
  std::vector<std::int64_t> stop_tokens = {};
  SamplerOptions sampler = {};
  // Sees each token as soon as it is known; false ends the text.
  std::function<bool(std::int64_t token)> on_token = {};
};

class Generator {
 public:
  // With a session of its own, which is to be given weights: session().load_weights(). Until then
  // its matrices are 0.
  explicit Generator(const zoo::LlamaConfig& config, const GeneratorOptions& options = {});
  // Over the weights of a session that trains or evaluates the same model: the plans
  // `generate.token` and `generate.prompt` are attached to it. The session must outlive the
  // generator; its device and threads count. TypeError if it has another generator already.
  Generator(Session& session, const zoo::LlamaConfig& config, const GeneratorOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  Session& session();
  const zoo::LlamaConfig& config() const;
  std::int64_t capacity() const;  // tokens that a sequence can have
  std::int64_t position() const;  // tokens that it has

  // Forgets all tokens.
  void reset();
  // Forgets the tokens from here on. TypeError beyond position().
  void rewind(std::int64_t position);
  // Appends tokens [batch, count], row by row, to what was fed before. TypeError for tokens outside
  // of the vocabulary or a number that does not divide by the batch, ValueError for more than the
  // cache has room for; then nothing has changed.
  void feed(std::span<const std::int64_t> tokens);
  // Of the token that follows the last one of a row; good until the next feed(). TypeError before
  // the first.
  std::span<const float> logits(std::int64_t row = 0) const;

  // Feeds the prompt and picks tokens behind it. The last token of the text has not been fed (all
  // have if a stop token ended it), so that it can be continued with any prompt. TypeError for a
  // batch above 1, and for an empty prompt where nothing was fed before; ValueError if prompt and
  // max_tokens do not fit.
  Generated generate(std::span<const std::int64_t> prompt, const GenerateOptions& options = {});

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace pantala
