// pantala generate: text from weights of files, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cli/training.h"
#include "io/json.h"
#include "support/llama_case.h"

namespace pantala::tests::generate_test {
namespace {

using ::testing::HasSubstr;

class Generate : public TrainingTest {
 protected:
  // A small model over bytes with its config beside it.
  Generate() {
    std::ofstream(file("config.json"))
        << R"({"vocab_size": 256, "hidden_size": 16, "intermediate_size": 24,
               "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
               "max_position_embeddings": 32, "tie_word_embeddings": true})";
    const Graph graph =
        zoo::llama_cached(zoo::read_llama_config(file("config.json")), {.cache = 32});
    Weights weights;
    for (const Leaf& leaf : graph.leaves(LeafKind::parameter))
      weights.set(leaf.name, pantala::tests::llama_weight(leaf.name, leaf.value.shape()));
    weights.save(file("model.safetensors"));
  }

  Outcome generate(std::vector<std::string> more) const {
    std::vector<std::string> words = {"generate", "--weights", file("model.safetensors"),
                                      "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_pantala(words);
  }
  // The mistake that it names.
  std::string refused(const std::vector<std::string>& more) const {
    const Outcome outcome = generate(more);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    return outcome.err;
  }
};

TEST_F(Generate, continues_text_and_tokens_alike) {
  const Outcome text = generate({"--prompt", "AB", "--tokens", "5", "--seed", "3"}),
                json = generate(
                    {"--prompt-tokens", "65,66", "--tokens", "5", "--seed", "3", "--json"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const io::Json result = io::parse_json(json.out, "stdout");
  EXPECT_EQ(result.at("stopped"), "length");
  std::string expected = "AB";
  for (const std::int64_t token : result.at("tokens").get<std::vector<std::int64_t>>())
    expected.push_back(static_cast<char>(token));
  EXPECT_EQ(text.out, expected + "\n");
  EXPECT_EQ(expected.size(), 7U);
  EXPECT_THAT(text.err, HasSubstr("5 tokens behind a prompt of 2"));
}

TEST_F(Generate, refuses_what_does_not_fit) {
  EXPECT_THAT(refused({}), HasSubstr("--prompt or --prompt-tokens"));
  EXPECT_THAT(refused({"--prompt-tokens", "1,,2"}), HasSubstr("expected whole numbers"));
  EXPECT_THAT(refused({"--prompt-tokens", "1,"}), HasSubstr("expected whole numbers"));
  EXPECT_THAT(refused({"--prompt-tokens", "300"}), HasSubstr("outside of the vocabulary of 256"));
  EXPECT_THAT(refused({"--prompt", "A", "--tokens", "33"}), HasSubstr("has room for 32"));
  EXPECT_THAT(refused({"--prompt", "A", "--cache", "33"}), HasSubstr("within [1, 32]"));
  EXPECT_THAT(refused({"--prompt", "A", "--tokens", "5", "--top-p", "0"}), HasSubstr("top_p"));
  EXPECT_THAT(refused({"--prompt", "A", "--model", "llama-byte"}),
              HasSubstr("did you mean 'llama-bytes'?"));
  EXPECT_THAT(refused({"--prompt", "A", file("run")}), HasSubstr("either RUN or --weights"));
}

TEST_F(Generate, refuses_a_run_of_another_kind) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const Outcome outcome = run_pantala({"generate", file("run"), "--prompt", "A"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'mlp' is no model of the Llama family"));
}

}  // namespace
}  // namespace pantala::tests::generate_test
