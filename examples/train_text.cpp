// Trains a small language model of the Llama family on a text file, byte by byte, and lets it
// write:
//
//   train_text FILE [STEPS] [PROMPT]
//
// The model has no tokenizer: its vocabulary is the 256 bytes. A few hundred steps on a few
// hundred kilobytes give words; the same numbers come out on any number of threads.
#include <fmt/format.h>
#include <pantala/pantala.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace pn = pantala;

namespace {

constexpr std::int64_t kBatch = 8, kSequence = 64;

std::vector<std::int64_t> bytes_of(const std::string& text) {
  std::vector<std::int64_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string text_of(const std::vector<std::int64_t>& tokens) {
  std::string text;
  for (const std::int64_t token : tokens) text.push_back(static_cast<char>(token));
  return text;
}

std::vector<std::int64_t> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw pn::IoError(fmt::format("{}: cannot be read", path));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (static_cast<std::int64_t>(text.size()) <= kSequence)
    throw pn::TypeError(fmt::format("{}: more than {} bytes are needed", path, kSequence));
  return bytes_of(text);
}

// Windows of the text, and the same ones a byte later, which are to be foreseen.
struct Batch {
  std::vector<std::int64_t> tokens, labels;
};
Batch make_batch(const std::vector<std::int64_t>& text, std::int64_t step) {
  Batch batch;
  const auto places = static_cast<std::int64_t>(text.size()) - kSequence;
  for (std::int64_t row = 0; row < kBatch; ++row) {
    // Steps of a large prime visit all places before one comes again.
    const auto first = text.begin() + (step * kBatch + row) * 1'000'003 % places;
    batch.tokens.insert(batch.tokens.end(), first, first + kSequence);
    batch.labels.insert(batch.labels.end(), first + 1, first + kSequence + 1);
  }
  return batch;
}

void run(const std::string& path, std::int64_t steps, const std::string& prompt) {
  const std::vector<std::int64_t> text = read_bytes(path);
  pn::zoo::LlamaConfig config = pn::zoo::llama_bytes();
  config.hidden = 96;
  config.intermediate = 256;
  config.layers = 2;
  const pn::zoo::Model model = pn::zoo::llama(config, {.batch = kBatch, .sequence = kSequence});
  pn::CompileOptions options{.optimizer = pn::optim::adamw(3e-3)};
  options.training.clip.norm = 1;
  pn::Session session = pn::build_session(model.graph, model.loss, options, {.seed = 1});
  for (std::int64_t step = 0; step < steps; ++step) {
    const Batch batch = make_batch(text, step);
    session.set_input("tokens", batch.tokens);
    session.set_input("labels", batch.labels);
    session.step();
    if (step % 20 == 0 || step + 1 == steps)
      fmt::print(stderr, "step {:4}  loss {:.3f}\n", step, session.loss());
  }

  // The generator adds two plans to the session and writes with its weights.
  pn::Generator generator(session, config, {.cache = 256, .prefill_chunk = 16});
  const pn::Generated written = generator.generate(
      bytes_of(prompt), {.max_tokens = 200, .sampler = {.temperature = 0.7, .top_k = 40}});
  fmt::print("{}{}\n", prompt, text_of(written.tokens));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "train_text FILE [STEPS] [PROMPT]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::atoll(argv[2]) : 200, argc > 3 ? argv[3] : "The ");
    return 0;
  } catch (const pn::Error& error) {
    fmt::print(stderr, "train_text: {}\n", error.what());
    return 1;
  }
}
