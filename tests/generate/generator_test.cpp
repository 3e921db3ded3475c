// The generator: the cache gives what the whole sequence gives, whatever way tokens came in; where
// texts end; and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/generate.h"
#include "pantala/optim.h"
#include "support/llama_case.h"
#include "support/temporary.h"

namespace pantala::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

using Tokens = std::vector<std::int64_t>;

Generator small_generator(const GeneratorOptions& options = {
                              .cache = 20, .prefill_chunk = 4, .threads = 1}) {
  Generator generator(small_llama(), options);
  fill_weights(generator.session());
  return generator;
}

TEST(CachedDecode, equals_the_whole_sequence_at_every_position) {
  expect_cached_equals_whole(small_llama(), 21, 1e-5);
}

TEST(CachedDecode, equals_it_with_untied_embeddings_and_a_head_size_of_its_own) {
  zoo::LlamaConfig config = small_llama();
  config.tied_embeddings = false;
  config.head_size = 10;
  config.kv_heads = 6;
  expect_cached_equals_whole(config, 9, 1e-5);
}

TEST(CachedDecode, keeps_the_rows_of_a_batch_apart) {
  const zoo::LlamaConfig config = small_llama();
  constexpr std::int64_t kBatch = 3, kCount = 11;
  const Tokens tokens = some_tokens(kBatch * kCount, config.vocabulary);
  const std::vector<float> whole = whole_sequence(config, tokens, kBatch);
  Generator generator =
      small_generator({.batch = kBatch, .cache = 16, .prefill_chunk = 4, .threads = 1});
  const auto columns = [&](std::int64_t first, std::int64_t count) {
    Tokens part;
    for (std::int64_t row = 0; row < kBatch; ++row)
      part.insert(part.end(), tokens.begin() + row * kCount + first,
                  tokens.begin() + row * kCount + first + count);
    return part;
  };
  generator.feed(columns(0, 10));
  generator.feed(columns(10, 1));
  for (std::int64_t row = 0; row < kBatch; ++row)
    EXPECT_LT(distance(generator.logits(row), whole, row * kCount + 10), 1e-5) << "row " << row;
  EXPECT_THAT([&] { generator.logits(3); }, ThrowsMessage<TypeError>(HasSubstr("no row 3")));
  EXPECT_THAT([&] { generator.feed(Tokens{1, 2}); },
              ThrowsMessage<TypeError>(HasSubstr("2 tokens do not divide into a batch of 3")));
  EXPECT_THAT([&] { generator.generate(columns(0, 1)); },
              ThrowsMessage<TypeError>(HasSubstr("the batch is 3")));
}

// Up to its last place, where a whole chunk does not fit any more.
TEST(Generator, fills_the_cache_completely_and_no_further) {
  const zoo::LlamaConfig config = small_llama();
  const Tokens tokens = some_tokens(20, config.vocabulary);
  const std::vector<float> whole = whole_sequence(config, tokens);
  Generator generator = small_generator();
  for (const std::size_t first : {1, 17, 18, 20}) {
    generator.reset();
    generator.feed(std::span(tokens).first(first));
    if (first < 20) generator.feed(std::span(tokens).subspan(first));
    EXPECT_EQ(generator.position(), 20);
    EXPECT_LT(distance(generator.logits(), whole, 19), 1e-5) << first;
    EXPECT_THAT([&] { generator.feed(Tokens{1}); },
                ThrowsMessage<ValueError>(
                    AllOf(HasSubstr("room for 20 tokens"), HasSubstr("20 are in it and 1 more"))));
    EXPECT_EQ(generator.position(), 20);
  }
}

TEST(Generator, takes_the_prompt_in_chunks_of_any_size) {
  const Tokens prompt = some_tokens(13, small_llama().vocabulary);
  const std::vector<float> whole = whole_sequence(small_llama(), prompt);
  for (const std::int64_t chunk : {1, 5, 64}) {
    Generator generator = small_generator({.cache = 20, .prefill_chunk = chunk, .threads = 1});
    generator.feed(prompt);
    EXPECT_LT(distance(generator.logits(), whole, 12), 1e-5) << chunk;
    EXPECT_THAT(generator.session().plans(), SizeIs(chunk == 1 ? 1 : 2));
  }
}

TEST(Generator, starts_again_and_rewinds) {
  Generator generator = small_generator();
  const Tokens prompt{3, 1, 4, 1, 5, 9, 2};
  const GenerateOptions options{.max_tokens = 6, .sampler = {.temperature = 0}};
  const Generated first = generator.generate(prompt, options);
  EXPECT_THAT(first.tokens, SizeIs(6));
  EXPECT_EQ(first.stopped, Stopped::length);
  EXPECT_EQ(generator.position(), 12);  // the last token was not fed
  generator.reset();
  EXPECT_EQ(generator.generate(prompt, options).tokens, first.tokens);
  // The same text in two parts: the second one begins with the token that was not fed.
  generator.rewind(7);
  generator.rewind(0);
  Tokens parts =
      generator.generate(prompt, {.max_tokens = 3, .sampler = {.temperature = 0}}).tokens;
  const Tokens rest =
      generator.generate(Tokens{parts.back()}, {.max_tokens = 3, .sampler = {.temperature = 0}})
          .tokens;
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, first.tokens);
  EXPECT_THAT([&] { generator.rewind(13); },
              ThrowsMessage<TypeError>(HasSubstr("cannot be rewound to 13")));
  generator.rewind(7);
  EXPECT_THROW(generator.logits(), TypeError);
}

TEST(Generator, greedy_text_is_the_largest_logit_of_the_whole_sequence) {
  Generator generator = small_generator();
  Tokens text{7, 8, 9};
  const Tokens picked =
      generator.generate(text, {.max_tokens = 8, .sampler = {.temperature = 0}}).tokens;
  text.insert(text.end(), picked.begin(), picked.end());
  const std::vector<float> whole = whole_sequence(small_llama(), text);
  const std::int64_t vocabulary = small_llama().vocabulary;
  for (std::size_t k = 0; k < picked.size(); ++k) {
    const auto row = whole.begin() + static_cast<std::int64_t>(k + 2) * vocabulary;
    EXPECT_EQ(std::max_element(row, row + vocabulary) - row, picked[k]) << k;
  }
}

TEST(Generator, texts_end_for_a_reason) {
  Generator generator = small_generator();
  const Tokens prompt{3, 1, 4};
  Tokens seen;
  const auto run = [&](GenerateOptions options) {
    generator.reset();
    seen.clear();
    if (!options.on_token)
      options.on_token = [&](std::int64_t token) {
        seen.push_back(token);
        return true;
      };
    return generator.generate(prompt, options);
  };
  const Generated full = run({.sampler = {.seed = 5}});
  EXPECT_EQ(full.stopped, Stopped::cache);
  EXPECT_THAT(full.tokens, SizeIs(18));  // 17 in the cache behind the prompt, and one not fed
  EXPECT_EQ(seen, full.tokens);
  const Generated limited = run({.max_tokens = 18, .sampler = {.seed = 5}});
  EXPECT_EQ(limited.stopped, Stopped::length);
  EXPECT_EQ(limited.tokens, full.tokens);
  const Generated stopped = run({.stop_tokens = {full.tokens[4], 1000}, .sampler = {.seed = 5}});
  EXPECT_EQ(stopped.stopped, Stopped::token);
  EXPECT_EQ(stopped.tokens,
            Tokens(full.tokens.begin(),
                   std::find(full.tokens.begin(), full.tokens.end(), full.tokens[4])));
  const Generated interrupted =
      run({.sampler = {.seed = 5},
           .on_token = [count = 0](std::int64_t) mutable { return ++count < 3; }});
  EXPECT_EQ(interrupted.stopped, Stopped::callback);
  EXPECT_THAT(interrupted.tokens, SizeIs(3));
  EXPECT_NE(run({.sampler = {.seed = 6}}).tokens, full.tokens);
}

TEST(Generator, refuses_what_does_not_fit) {
  Generator generator = small_generator();
  EXPECT_THAT([&] { generator.generate({}); },
              ThrowsMessage<TypeError>(HasSubstr("the prompt is empty")));
  EXPECT_THAT([&] { generator.logits(); }, ThrowsMessage<TypeError>(HasSubstr("before feed()")));
  for (const std::int64_t token : {-1, 61})
    EXPECT_THAT([&] { generator.feed(Tokens{1, token}); },
                ThrowsMessage<TypeError>(
                    HasSubstr(fmt::format("token {} is outside of the vocabulary of 61", token))));
  EXPECT_THAT([&] { generator.generate(Tokens{1, 2}, {.max_tokens = 20}); },
              ThrowsMessage<ValueError>(
                  AllOf(HasSubstr("max_tokens is 20"), HasSubstr("has room for 19"))));
  EXPECT_THROW(generator.generate(Tokens{1}, {.max_tokens = -1}), TypeError);
  EXPECT_THROW(generator.generate(Tokens{1}, {.sampler = {.top_p = 0}}), TypeError);
  EXPECT_THROW(generator.generate(Tokens(21, 1)), ValueError);
  EXPECT_EQ(generator.position(), 0);
  for (const GeneratorOptions& options :
       {GeneratorOptions{.batch = 0}, GeneratorOptions{.cache = -1}, GeneratorOptions{.cache = 65},
        GeneratorOptions{.prefill_chunk = 0}})
    EXPECT_THROW(Generator(small_llama(), options), TypeError);
}

// What training changes is what the next text is made with; the cache is no part of what is saved.
TEST(Generator, shares_the_weights_of_a_training_session) {
  const zoo::LlamaConfig config = small_llama();
  const zoo::Model model = zoo::llama(config, {.batch = 2, .sequence = 8});
  Session session =
      build_session(model.graph, model.loss, {.threads = 1, .optimizer = optim::adamw(0.01)});
  const Tokens pattern{5, 6, 7, 8, 5, 6, 7, 8, 6, 7, 8, 5, 6, 7, 8, 5},
      next{6, 7, 8, 5, 6, 7, 8, 5, 7, 8, 5, 6, 7, 8, 5, 6};
  session.set_input("tokens", pattern);
  session.set_input("labels", next);
  const std::vector<std::string> states = session.states();
  Generator generator(session, config, {.cache = 16, .prefill_chunk = 4, .threads = 1});
  for (int k = 0; k < 60; ++k) session.step();
  EXPECT_LT(session.loss(), 0.1);
  const Tokens prompt{5, 6, 7};
  EXPECT_EQ(generator.generate(prompt, {.max_tokens = 6, .sampler = {.temperature = 0}}).tokens,
            (Tokens{8, 5, 6, 7, 8, 5}));
  EXPECT_THROW(Generator(session, config), TypeError);

  const tests::TemporaryFolder folder;
  session.save(folder.file("model.safetensors"));
  Session other =
      build_session(model.graph, model.loss, {.threads = 1, .optimizer = optim::adamw(0.01)});
  other.load(folder.file("model.safetensors"));
  EXPECT_EQ(other.parameter("model.norm.weight"), session.parameter("model.norm.weight"));
  session.save(folder.file("all.safetensors"), Saved::training);
  other.load(folder.file("all.safetensors"), Saved::training);
}

TEST(Generator, takes_its_plans_from_a_folder) {
  const tests::TemporaryFolder folder;
  const GeneratorOptions options{
      .cache = 20, .prefill_chunk = 4, .threads = 1, .plan_cache = folder.path()};
  Generator first = small_generator(options), second = small_generator(options);
  EXPECT_FALSE(first.session().report().cached());
  EXPECT_TRUE(second.session().report().cached());
  const GenerateOptions greedy{.max_tokens = 5, .sampler = {.temperature = 0}};
  EXPECT_EQ(first.generate(Tokens{1, 2, 3, 4, 5, 6}, greedy).tokens,
            second.generate(Tokens{1, 2, 3, 4, 5, 6}, greedy).tokens);
}

TEST(Generator, is_the_same_for_any_number_of_threads) {
  const Tokens prompt = some_tokens(9, small_llama().vocabulary);
  std::vector<std::vector<float>> logits;
  for (const int threads : {1, 3}) {
    Generator generator = small_generator({.cache = 20, .prefill_chunk = 4, .threads = threads});
    generator.feed(prompt);
    logits.emplace_back(generator.logits().begin(), generator.logits().end());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace pantala::tests
