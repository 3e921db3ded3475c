// The Llama family in the zoo: names, shapes and counts, configs, Hugging Face's file, and what is
// refused. Its numbers are checked against recorded ones (tests/fixtures/models/smollm2_*.json).
#include "pantala/zoo/llama.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "pantala/compile.h"
#include "pantala/zoo/presets.h"
#include "support/llama_case.h"
#include "support/temporary.h"

namespace pantala::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) count += leaf.value.numel();
  return count;
}

std::string leaves_of(const Graph& graph, LeafKind kind) {
  std::string text;
  for (const Leaf& leaf : graph.leaves(kind))
    text += fmt::format("{} {}\n", leaf.name, leaf.value.type().str());
  return text;
}

TEST(Llama, has_hugging_faces_names_and_layouts) {
  zoo::LlamaConfig config = small_llama();
  config.layers = 1;
  config.tied_embeddings = false;
  const zoo::Model model = zoo::llama(config, {.batch = 2, .sequence = 5});
  EXPECT_EQ(leaves_of(model.graph, LeafKind::parameter),
            "model.embed_tokens.weight f32[61,24]\n"
            "model.layers.0.input_layernorm.weight f32[24]\n"
            "model.layers.0.self_attn.q_proj.weight f32[24,24]\n"
            "model.layers.0.self_attn.k_proj.weight f32[8,24]\n"
            "model.layers.0.self_attn.v_proj.weight f32[8,24]\n"
            "model.layers.0.self_attn.o_proj.weight f32[24,24]\n"
            "model.layers.0.post_attention_layernorm.weight f32[24]\n"
            "model.layers.0.mlp.gate_proj.weight f32[40,24]\n"
            "model.layers.0.mlp.up_proj.weight f32[40,24]\n"
            "model.layers.0.mlp.down_proj.weight f32[24,40]\n"
            "model.norm.weight f32[24]\n"
            "lm_head.weight f32[61,24]\n");
  EXPECT_EQ(leaves_of(model.graph, LeafKind::input), "tokens i64[2,5]\nlabels i64[2,5]\n");
  EXPECT_EQ(model.logits.type().str(), "f32[2,5,61]");
}

TEST(Llama, the_cached_graphs_have_the_same_parameters_and_one_cache) {
  const zoo::LlamaConfig config = small_llama();
  const Graph whole = zoo::llama(config, {.sequence = 8}).graph,
              prefill = zoo::llama_cached(config, {.batch = 2, .tokens = 4, .cache = 16}),
              decode = zoo::llama_cached(config, {.batch = 2, .tokens = 1, .cache = 16});
  EXPECT_EQ(leaves_of(prefill, LeafKind::parameter), leaves_of(whole, LeafKind::parameter));
  EXPECT_EQ(leaves_of(decode, LeafKind::parameter), leaves_of(whole, LeafKind::parameter));
  EXPECT_EQ(leaves_of(decode, LeafKind::state),
            "cache.0.key f32[2,2,16,4]\ncache.0.value f32[2,2,16,4]\n"
            "cache.1.key f32[2,2,16,4]\ncache.1.value f32[2,2,16,4]\n");
  EXPECT_EQ(leaves_of(prefill, LeafKind::state), leaves_of(decode, LeafKind::state));
  EXPECT_EQ(leaves_of(prefill, LeafKind::input), "tokens i64[2,4]\nposition i64[]\nlast i64[]\n");
  EXPECT_EQ(leaves_of(decode, LeafKind::input), "tokens i64[2,1]\nposition i64[]\n");
  EXPECT_EQ(decode.output("logits").type().str(), "f32[2,61]");
}

TEST(Llama, presets_have_the_sizes_of_their_names) {
  EXPECT_EQ(parameter_count(zoo::llama(zoo::smollm2_135m()).graph), 134515008);
  EXPECT_EQ(parameter_count(zoo::llama(zoo::smollm2_360m()).graph), 361821120);
  const zoo::Model bytes =
      zoo::preset("llama-bytes").make({.batch = 3, .item = {32}, .classes = 128});
  EXPECT_EQ(bytes.input.type().str(), "i64[3,32]");
  EXPECT_EQ(bytes.logits.type().str(), "f32[3,32,128]");
  EXPECT_EQ(zoo::preset("smollm2-135m").make({}).input.type().str(), "i64[1,128]");
  EXPECT_THROW(zoo::preset("smollm2-135m").make({.item = {3, 4}}), TypeError);
}

TEST(Llama, configs_have_the_names_of_the_presets) {
  EXPECT_EQ(zoo::llama_config("smollm2-360m"), zoo::smollm2_360m());
  EXPECT_THAT([] { zoo::llama_config("smollm-135m"); },
              ThrowsMessage<TypeError>(HasSubstr("did you mean 'smollm2-135m'?")));
}

TEST(Llama, refuses_configs_that_are_no_model) {
  const auto message = [](const auto& change) {
    zoo::LlamaConfig config = small_llama();
    change(config);
    std::string text = "no error";
    try {
      zoo::llama(config);
    } catch (const TypeError& error) { text = error.what(); }
    EXPECT_THROW(zoo::llama_cached(config), TypeError);
    return text;
  };
  EXPECT_THAT(message([](auto& c) { c.kv_heads = 4; }),
              AllOf(HasSubstr("llama"), HasSubstr("llama_test.cpp"),
                    HasSubstr("heads must be a multiple of kv_heads, got 6 and 4")));
  EXPECT_THAT(message([](auto& c) { c.hidden = 25; }),
              HasSubstr("hidden 25 does not divide into 6 heads"));
  EXPECT_THAT(message([](auto& c) { c.hidden = 18; }), HasSubstr("even size"));
  EXPECT_THAT(message([](auto& c) { c.head_size = 7; }), HasSubstr("even size"));
  EXPECT_THAT(message([](auto& c) { c.layers = 0; }), HasSubstr("layers must be within"));
  EXPECT_THAT(message([](auto& c) { c.heads = c.kv_heads = 0; }),
              AllOf(HasSubstr("; "), HasSubstr("kv_heads must be within")));
  EXPECT_THAT(message([](auto& c) { c.vocabulary = std::int64_t{1} << 60; }),
              HasSubstr("vocabulary"));
  EXPECT_THAT(message([](auto& c) { c.rms_eps = 0; }), HasSubstr("rms_eps"));
  EXPECT_THAT(message([](auto& c) { c.rope_theta = INFINITY; }), HasSubstr("rope_theta"));
  EXPECT_THAT(message([](auto& c) { c.init_deviation = -1; }), HasSubstr("init_deviation"));
}

TEST(Llama, refuses_sizes_beyond_its_positions) {
  const zoo::LlamaConfig config = small_llama();  // of 64 positions
  EXPECT_THAT([&] { zoo::llama(config, {.sequence = 65}); },
              ThrowsMessage<TypeError>(HasSubstr("sequence must be at most 64, got 65")));
  EXPECT_THROW(zoo::llama(config, {.sequence = 0}), TypeError);
  EXPECT_THROW(zoo::llama(config, {.batch = 0, .sequence = 2}), TypeError);
  EXPECT_THAT([&] { zoo::llama_cached(config, {.cache = 65}); },
              ThrowsMessage<TypeError>(HasSubstr("cache must be at most 64, got 65")));
  EXPECT_THAT([&] { zoo::llama_cached(config, {.tokens = 9, .cache = 8}); },
              ThrowsMessage<TypeError>(HasSubstr("tokens must be at most 8, got 9")));
}

TEST(Llama, a_position_beyond_the_cache_is_an_error_when_it_runs) {
  const CompileResult compiled =
      compile(zoo::llama_cached(small_llama(), {.tokens = 4, .cache = 8}));
  Session session(compiled);
  session.set_input("tokens", std::vector<std::int64_t>{1, 2, 3, 4});
  session.set_input("last", Literal::integer(3));
  for (const std::int64_t good : {0, 4}) {
    session.set_input("position", Literal::integer(good));
    session.step();
  }
  for (const std::int64_t bad : {-1, 5, 1000000})
    EXPECT_THROW(
        {
          session.set_input("position", Literal::integer(bad));
          session.step();
        },
        ValueError)
        << bad;
}

// The plan that keeps updates is compile()'s; the one for inference leaves them out.
TEST(Llama, only_a_plan_with_updates_writes_the_cache) {
  const Graph graph = zoo::llama_cached(small_llama(), {.tokens = 1, .cache = 8});
  const auto cache_after = [&](Session session) {
    fill_weights(session);
    session.set_input("tokens", std::vector<std::int64_t>{7});
    session.set_input("position", Literal::integer(2));
    session.step();
    return session.state("cache.1.key");
  };
  const Literal written = cache_after(Session(compile(graph))),
                untouched = cache_after(build_inference_session(graph));
  const Shape& shape = written.shape();
  for (std::int64_t k = 0; k < written.numel(); ++k) {
    const bool inside = k / shape[3] % shape[2] == 2;
    EXPECT_EQ(written.at(k) != 0, inside) << k;
    EXPECT_EQ(untouched.at(k), 0) << k;
  }
}

// --- config.json
constexpr const char* kSmol = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
  "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
  "intermediate_size": 1536, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "vocab_size": 49152})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LlamaConfigFile, reads_smol_lm2) {
  EXPECT_EQ(zoo::parse_llama_config(kSmol, "config.json"), zoo::smollm2_135m());
  const tests::TemporaryFolder folder;
  std::ofstream(folder.file("config.json")) << kSmol;
  EXPECT_EQ(zoo::read_llama_config(folder.file("config.json")), zoo::smollm2_135m());
  EXPECT_THROW(zoo::read_llama_config(folder.file("none.json")), IoError);
}

TEST(LlamaConfigFile, takes_its_silence_as_hugging_face_does) {
  const zoo::LlamaConfig config = zoo::parse_llama_config(
      R"({"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "head_dim": 16,
          "rope_parameters": {"rope_theta": 500.5, "rope_type": "default"}})",
      "c");
  const zoo::LlamaConfig expected{.vocabulary = 100,
                                  .hidden = 32,
                                  .intermediate = 64,
                                  .layers = 2,
                                  .heads = 4,
                                  .kv_heads = 4,
                                  .head_size = 16,
                                  .max_positions = 2048,
                                  .rope_theta = 500.5,
                                  .rms_eps = 1e-6,
                                  .tied_embeddings = false,
                                  .init_deviation = 0.02};
  EXPECT_EQ(config, expected);
}

TEST(LlamaConfigFile, lists_everything_that_is_not_done) {
  std::string text = replaced(kSmol, R"("attention_bias": false)", R"("attention_bias": true)");
  text = replaced(text, R"("silu")", R"("gelu")");
  text = replaced(text, R"("rope_scaling": null)", R"("rope_scaling": {"rope_type": "llama3"})");
  EXPECT_THAT(
      [&] { zoo::parse_llama_config(text, "c.json"); },
      ThrowsMessage<UnsupportedError>(AllOf(
          HasSubstr("c.json: not supported: "), HasSubstr("attention_bias"), HasSubstr("'gelu'"),
          HasSubstr("rope_scaling of type 'llama3'"), Not(HasSubstr("mlp_bias")))));
  // What newer files call rope_parameters may stand beside it.
  EXPECT_THAT(
      [&] {
        zoo::parse_llama_config(
            replaced(
                kSmol, R"("rope_scaling": null)",
                R"("rope_scaling": {"type": "linear"}, "rope_parameters": {"rope_type": "yarn"})"),
            "c.json");
      },
      ThrowsMessage<UnsupportedError>(AllOf(HasSubstr("rope_scaling of type 'linear'"),
                                            HasSubstr("rope_parameters of type 'yarn'"))));
  EXPECT_THROW(zoo::parse_llama_config(replaced(kSmol, "\"llama\"", "\"qwen2\""), "c"),
               UnsupportedError);
}

TEST(LlamaConfigFile, says_what_is_wrong) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_THAT([&] { zoo::parse_llama_config(text, "c.json"); },
                ThrowsMessage<ParseError>(AllOf(HasSubstr("c.json: "), HasSubstr(part))))
        << text;
  };
  expect(replaced(kSmol, "\"vocab_size\"", "\"vocabulary\""), "'vocab_size' is missing");
  expect(replaced(kSmol, "49152", "\"many\""), "vocab_size must be a whole number, found \"many\"");
  expect(replaced(kSmol, "49152", "1.5"), "vocab_size must be a whole number, found 1.5");
  expect(replaced(kSmol, "49152", "[1]"), "vocab_size must be a whole number, found array");
  expect(replaced(kSmol, "49152", "18446744073709551615"), "vocab_size must be a size");
  expect(replaced(kSmol, "49152", "1e999"), "");
  expect(replaced(kSmol, "49152", "-4"), "vocabulary must be within");
  expect(replaced(kSmol, "\"num_hidden_layers\": 30", "\"num_hidden_layers\": 2000000000"),
         "layers must be within");
  expect(replaced(kSmol, "\"num_key_value_heads\": 3", "\"num_key_value_heads\": 4"),
         "heads must be a multiple of kv_heads");
  expect(replaced(kSmol, "\"num_attention_heads\": 9", "\"num_attention_heads\": 0"), "heads");
  expect(replaced(kSmol, "1e-05", "true"), "rms_norm_eps must be a number");
  expect(replaced(kSmol, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1"),
         "tie_word_embeddings must be true or false");
  expect(replaced(kSmol, "\"rope_scaling\": null", "\"rope_scaling\": 4"), "expected an object");
  expect("[]", "expected an object");
  expect("", "");
  expect("{\"vocab_size\": ", "");
  const std::string whole = kSmol;
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_THROW(zoo::parse_llama_config(whole.substr(0, size), "c"), ParseError) << size;
}

TEST(LlamaSizes, follow_from_the_width_where_nothing_is_said) {
  const zoo::LlamaConfig preset = zoo::llama_bytes();  // 192 wide, 6 heads of 32, 2 kv_heads
  EXPECT_EQ(zoo::resized(preset, {}), preset);
  const zoo::LlamaConfig wide = zoo::resized(preset, {.width = 256, .layers = 3});
  EXPECT_EQ(wide.hidden, 256);
  EXPECT_EQ(wide.layers, 3);
  EXPECT_EQ(wide.heads, 8);
  EXPECT_EQ(wide.kv_heads, 2);
  EXPECT_EQ(wide.intermediate, 688);  // 256 * 512 / 192, up to a multiple of 16
  const zoo::LlamaConfig odd = zoo::resized(preset, {.width = 96});
  EXPECT_EQ(odd.heads, 3);
  EXPECT_EQ(odd.kv_heads, 1);
  const zoo::LlamaConfig said =
      zoo::resized(preset, {.width = 96, .heads = 4, .kv_heads = 4, .feed_forward = 100});
  EXPECT_EQ(said.heads, 4);
  EXPECT_EQ(said.kv_heads, 4);
  EXPECT_EQ(said.intermediate, 100);
}

TEST(LlamaSizes, that_do_not_fit_are_refused) {
  EXPECT_THAT([] { zoo::resized(zoo::llama_bytes(), {.width = 100}); },
              ThrowsMessage<TypeError>(HasSubstr("hidden 100 does not divide into 6 heads")));
  EXPECT_THAT([] { zoo::resized(zoo::llama_bytes(), {.layers = -1}); },
              ThrowsMessage<TypeError>(HasSubstr("layers must be within [1, 4096], got -1")));
  EXPECT_THAT([] { zoo::preset("lenet").make({.sizes = {.width = 8}}); },
              ThrowsMessage<TypeError>(HasSubstr("model lenet has one size")));
  EXPECT_EQ(zoo::preset("llama-bytes")
                .make({.sizes = {.width = 64, .layers = 1}})
                .graph.leaf("model.norm.weight")
                .shape(),
            (Shape{64}));
}

}  // namespace
}  // namespace pantala::tests
