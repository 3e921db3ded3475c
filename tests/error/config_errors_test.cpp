// Bad configs and bad command lines, each with the exact message that it gets. All of them are
// found before any data is opened.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/file.h"
#include "pantala/error.h"
#include "run/core/config.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "tools/command.h"

namespace pantala::tests {
namespace {

using run::RunConfig;

RunConfig config_of(const std::string& toml) {
  return run::make_config(run::read_toml(toml, "run.toml"));
}

std::string complaint(const std::string& toml) {
  return message_of<Error>([&] { config_of(toml); });
}

struct BadConfig {
  const char* toml;
  const char* message;
};
const BadConfig kBadConfigs[] = {
    // --- what is not TOML
    {"epochs = ", "run.toml:1:10: Error while parsing key-value pair: encountered end-of-file"},
    {"epochs 5\n", "run.toml:1:8: Error while parsing key-value pair: expected '=', saw '5'"},
    {"epochs = 5\nepochs = 6\n",
     "run.toml:2:10: Error while parsing key-value pair: cannot redefine existing integer "
     "'epochs'"},
    {"[data\nsource = \"x\"\n",
     "run.toml:1:6: Error while parsing table header: expected ']', saw '\\n'"},
    {"model.name = \"mlp\n",
     "run.toml:1:18: Error while parsing string: unescaped control characters other than TAB "
     "(U+0009) are explicitly prohibited"},
    {"epochs = 1\n  a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.'p q'.r = 1\n",
     "run.toml:2:1: a key of more than 16 parts; those of a config have two at most, as in "
     "optimizer.lr"},
    {"[a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p . \"q\"]\n",
     "run.toml:1:2: a key of more than 16 parts; those of a config have two at most, as in "
     "optimizer.lr"},
    // --- keys that do not exist
    {"epoch = 5\n", "run.toml:1:1: unknown key 'epoch'; did you mean 'epochs'?"},
    {"\n\n  batchsize = 5\n", "run.toml:3:3: unknown key 'batchsize'; did you mean 'batch_size'?"},
    {"lr = 0.1\n", "run.toml:1:1: unknown key 'lr'; did you mean 'optimizer.lr'?"},
    {"[modell]\nname = \"mlp\"\n",
     "run.toml:2:1: unknown key 'modell.name'; did you mean 'model.name'?"},
    {"[data]\nnormalise = \"auto\"\n",
     "run.toml:2:1: unknown key 'data.normalise'; did you mean 'data.normalize'?"},
    {"[train]\nbatch_size = 5\n",
     "run.toml:2:1: unknown key 'train.batch_size'; did you mean 'batch_size'?"},
    {"[chekpoint]\n", "run.toml:1:2: unknown section 'chekpoint'; did you mean 'checkpoint'?"},
    {"model = \"mlp\"\n",
     "run.toml:1:1: unknown key 'model'; it is a section with model.name, model.from, "
     "model.loss, model.weights, model.prefix, model.fresh, model.unused, model.freeze, "
     "model.batch_norm, model.hidden, model.activation, model.task, model.width, model.layers, "
     "model.heads, model.kv_heads, model.feed_forward"},
    {"[model.layers.first]\nsize = 3\n", "run.toml:2:1: unknown key 'model.layers.first.size'"},
    {"[optimizer.options]\nlr = 3\n",
     "run.toml:2:1: unknown key 'optimizer.options.lr'; did you mean 'optimizer.lr'?"},
    {"whatever = 1\n", "run.toml:1:1: unknown key 'whatever'"},
    {"[model]\nfrozen = \"conv1.*\"\n",
     "run.toml:2:1: unknown key 'model.frozen'; did you mean 'groups.N.frozen'?"},
    // --- keys of another source
    {"[data]\nsource = \"npz:a.npz\"\nlabel = \"kind\"\n",
     "run.toml:3:1: data.label is of csv:FILE, but data.source is npz:a.npz"},
    {"[data]\nsource = \"npz:a.npz\"\nsequence = 64\n",
     "run.toml:3:1: data.sequence is of tokens:FILE or text:FILE, but data.source is npz:a.npz"},
    {"[data]\nsource = \"text:a.txt\"\ntoken_type = \"u8\"\n",
     "run.toml:3:1: data.token_type is of tokens:FILE, but data.source is text:a.txt"},
    {"[data]\nonehot = \"*\"\n",
     "run.toml:2:1: data.onehot is of csv:FILE, but data.source is fashion-mnist"},
    {"[data]\nseparator = \"::\"\n",
     "run.toml:2:1: data.separator must be auto, tab or one character, got \"::\""},
    {"[data]\njitter_hue = 0.6\n",
     "run.toml:2:1: data.jitter_hue must be a number from 0 to 0.5, got 0.6"},
    {"[data]\nrotate = 270\n", "run.toml:2:1: data.rotate must be a number from 0 to 180, got 270"},
    // --- values of another kind
    {"epochs = \"five\"\n", "run.toml:1:1: epochs must be a whole number from 1, got \"five\""},
    {"epochs = 2.5\n", "run.toml:1:1: epochs must be a whole number from 1, got 2.5"},
    {"seed = true\n", "run.toml:1:1: seed must be a whole number from 0, got true"},
    {"device = 3\n", "run.toml:1:1: device must be cpu, kir or vulkan, got 3"},
    {"[data]\nflip = \"yes\"\n", "run.toml:2:1: data.flip must be true or false, got \"yes\""},
    {"[data]\nsource = [1, 2]\n",
     "run.toml:2:1: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
     "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, got [1, 2]"},
    {"[model]\nhidden = 128\n",
     "run.toml:2:1: model.hidden must be a list of at most 64 whole numbers from 1 to 1048576, got "
     "128"},
    {"[model]\nhidden = [128, \"64\"]\n",
     "run.toml:2:1: model.hidden is a list that is not of numbers alone; values are texts, "
     "numbers, true, false and lists of numbers"},
    {"epochs = 2024-01-01\n",
     "run.toml:1:1: epochs is a date; values are texts, numbers, true, false and lists of "
     "numbers"},
    {"[[data]]\nsource = \"x\"\n",
     "run.toml:1:3: data is a list that is not of numbers alone; values are texts, numbers, true, "
     "false and lists of numbers"},
    // --- values out of range
    {"epochs = 0\n", "run.toml:1:1: epochs must be a whole number from 1, got 0"},
    {"batch_size = -4\n",
     "run.toml:1:1: batch_size must be a whole number from 1 to 1048576, got -4"},
    {"batch_size = 9000000000000000000\n",
     "run.toml:1:1: batch_size must be a whole number from 1 to 1048576, got 9000000000000000000"},
    {"threads = 5000\n", "run.toml:1:1: threads must be a whole number from 0 to 1024, got 5000"},
    {"[clip]\nnorm = -1\n", "run.toml:2:1: clip.norm must be a number from 0, got -1"},
    {"[clip]\nnorm = nan\n", "run.toml:2:1: clip.norm must be a number from 0, got nan"},
    {"[clip]\nvalue = inf\n", "run.toml:2:1: clip.value must be a number from 0, got inf"},
    {"[ema]\ndecay = 1.0\n", "run.toml:2:1: ema.decay must be a number from 0 to below 1, got 1"},
    {"[model]\nhidden = [128, 2.5]\n",
     "run.toml:2:1: model.hidden must be a list of at most 64 whole numbers from 1 to 1048576, got "
     "[128, 2.5]"},
    {"[data]\nvalidation = 1.5\n",
     "run.toml:2:1: data.validation must be auto, test, none or a share above 0 and below 1, got "
     "1.5"},
    // --- names that do not exist
    {"device = \"cup\"\n",
     "run.toml:1:1: device must be cpu, kir or vulkan, got \"cup\"; did you mean 'cpu'?"},
    {"[model]\ntask = \"regresion\"\n",
     "run.toml:2:1: model.task must be auto, classification or regression, got \"regresion\"; did "
     "you mean 'regression'?"},
    {"[model]\nname = \"lenett\"\n",
     "run.toml:2:1: model.name must be lenet, llama-bytes, mlp, resnet18, resnet18_folded, "
     "resnet50, resnet50_folded, smollm2-135m, smollm2-360m, whisper-base, "
     "whisper-small or whisper-tiny, got \"lenett\"; did you mean "
     "'lenet'?"},
    {"[model]\nactivation = \"rellu\"\n",
     "run.toml:2:1: model.activation must be identity, relu, leaky_relu, elu, gelu, gelu_tanh, "
     "silu, mish, tanh or sigmoid, got \"rellu\"; did you mean 'relu'?"},
    {"[data]\nsource = \"fashion_mnist\"\n",
     "run.toml:2:1: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
     "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, got "
     "\"fashion_mnist\"; did you mean 'fashion-mnist'?"},
    {"[data]\nsource = \"cvs:points\"\n",
     "run.toml:2:1: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
     "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, got "
     "\"cvs:points\"; did you mean 'csv'?"},
    {"[data]\nsource = \"csv:\"\n",
     "run.toml:2:1: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
     "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, got "
     "\"csv:\""},
    {"[data]\nvalidation = \"tets\"\n",
     "run.toml:2:1: data.validation must be auto, test, none or a share above 0 and below 1, got "
     "\"tets\"; did you mean 'test'?"},
    {"[optimizer]\nname = \"adm\"\n",
     "run.toml:2:1: there is no optimizer 'adm'; did you mean 'adam'?"},
    {"[optimizer]\nname = \"sgd\"\nmomentumm = 0.9\n",
     "run.toml:3:1: sgd has no option 'momentumm'; did you mean 'momentum'?"},
    {"[optimizer]\nlr = -0.1\n",
     "run.toml:2:1: adam: lr must be finite and not negative, got -0.1"},
    {"[optimizer]\nbetas = [0.9]\n",
     "run.toml:2:1: adam: betas must be a list of two numbers, got [0.9]"},
    {"[schedule]\nname = \"cosin\"\n",
     "run.toml:2:1: there is no schedule 'cosin'; did you mean 'cosine'?"},
    {"[schedule]\nname = \"step\"\n", "run.toml:2:1: step: the option step_size is missing"},
    {"[schedule]\nname = \"cosine\"\neta_mni = 0.1\n",
     "run.toml:3:1: cosine has no option 'eta_mni'; did you mean 'eta_min'?"},
    {"[schedule]\nname = \"plateau\"\nmetric = \"acuracy\"\n",
     "run.toml:3:1: plateau: metric must be one of loss, accuracy, top5, precision, recall, f1, "
     "mae, rmse, r2, perplexity, bits_per_token, bits_per_byte, got \"acuracy\"; did you mean "
     "'accuracy'?"},
    {"[schedule]\nwarmup_steps = 1.5\n",
     "run.toml:2:1: constant: warmup_steps must be a whole number, got 1.5"},
    {"[early_stopping]\nmetric = \"acc\"\n",
     "run.toml:2:1: early_stopping.metric must be loss, accuracy, top5, precision, recall, f1, "
     "mae, rmse, r2, perplexity, bits_per_token or bits_per_byte, got \"acc\""},
    {"[output]\nprogress = \"quiet\"\n",
     "run.toml:2:1: output.progress must be auto, plain, json or none, got \"quiet\""},
    // --- groups and sizes
    {"[[groups]]\npattern = \"\"\n",
     "run.toml:2:1: groups.0.pattern must be a text that is not empty, got \"\""},
    {"[[groups]]\nlr_factor = 2\n",
     "run.toml:2:1: groups.0 has no pattern that says which parameters it is of"},
    {"[[groups]]\npattern = \"a\"\n[[groups]]\n",
     "run.toml:3:1: groups.1 must be a table with keys, such as [[groups]]"},
    {"groups = [3]\n", "run.toml:1:11: groups.0 must be a table with keys, such as [[groups]]"},
    {"[[groups]]\npattern = \"a\"\nlr_factr = 2\n",
     "run.toml:3:1: unknown key 'groups.0.lr_factr'; did you mean 'groups.N.lr_factor'?"},
    {"[[groups]]\npattern = \"a\"\nweight_decay = -1\n",
     "run.toml:3:1: groups.0.weight_decay must be a number from 0, got -1"},
    {"[[groups]]\npattern = \"a\"\nfrozen = true\nlr_factor = 2\n",
     "run.toml:2:1: groups.0 is frozen: lr_factor and weight_decay mean nothing there"},
    {"[model]\nfreeze = [1, 2]\n",
     "run.toml:2:1: model.freeze must be a text, several with commas between, or a list, got [1, "
     "2]"},
    {"[optimizer]\nlr = [\"a\"]\n",
     "run.toml:2:1: a list of texts is no value of an option: [\"a\"]"},
    {"[model]\nwidth = 100\n",
     "model.width: model lenet has one size; language models have others"},
    {"[model]\nname = \"llama-bytes\"\nwidth = 100\n",
     "model.width: a model of width 100, with 4 layers, 6 heads, 2 kv_heads and feed_forward 272: "
     "hidden 100 does not divide into 6 heads"},
    {"[model]\nname = \"llama-bytes\"\nheads = 4\nkv_heads = 3\n",
     "model.heads, model.kv_heads: a model of width 192, with 4 layers, 4 heads, 3 kv_heads and "
     "feed_forward 512: heads must be a multiple of kv_heads, got 4 and 3"},
    // --- hostile ones
    {"epochs = \"\\u0001\\n\"\n",
     "run.toml:1:1: epochs must be a whole number from 1, got \"\\u0001\\u000A\""},
};

TEST(ConfigErrors, every_bad_config_gets_its_message) {
  EXPECT_GE(std::size(kBadConfigs), 40U);
  for (const BadConfig& bad : kBadConfigs) EXPECT_EQ(complaint(bad.toml), bad.message) << bad.toml;
}

TEST(ConfigErrors, deep_nesting_and_bytes_that_are_no_text_are_parse_errors) {
  EXPECT_THROW(config_of("a = " + std::string(100000, '[')), ParseError);
  EXPECT_THROW(config_of("[" + std::string(100000, 'a') + "]\n"), Error);
  EXPECT_THROW(config_of("a = \"\xff\xfe\"\n"), ParseError);
  EXPECT_THROW(config_of(std::string("a = 1\0", 6)), ParseError);
}

struct BadLine {
  std::vector<std::string> words;
  const char* message;
};
const BadLine kBadLines[] = {
    {{"train", "--epoch", "3"}, "unknown option '--epoch'; did you mean '--epochs'?"},
    {{"train", "--batchsize=3"}, "unknown option '--batchsize'; did you mean '--batch-size'?"},
    {{"trian"}, "unknown verb 'trian'; did you mean 'train'?"},
    {{"train", "--epochs", "none"}, "--epochs: epochs must be a whole number from 1, got \"none\""},
    {{"train", "--epochs", "0"}, "--epochs: epochs must be a whole number from 1, got 0"},
    {{"train", "--max-steps", "-1"},
     "--max-steps: max_steps must be a whole number from 0, got -1"},
    {{"train", "--model", "lent"},
     "--model: model.name must be lenet, llama-bytes, mlp, resnet18, resnet18_folded, "
     "resnet50, resnet50_folded, smollm2-135m, smollm2-360m, whisper-base, "
     "whisper-small or whisper-tiny, got \"lent\"; did you mean "
     "'lenet'?"},
    {{"train", "--data", "fashion"},
     "--data: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
     "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, got \"fashion\""},
    {{"train", "--lr", "fast"}, "--lr: adam: lr must be a number, got \"fast\""},
    {{"train", "--lr", "-1"}, "--lr: adam: lr must be finite and not negative, got -1"},
    {{"train", "--optimizer", "sdg"},
     "--optimizer: there is no optimizer 'sdg'; did you mean 'sgd'?"},
    {{"train", "--optimizer", "sgd", "--set", "optimizer.beta1=0.5"},
     "--set: sgd has no option 'beta1'"},
    {{"train", "--schedule", "cosin"},
     "--schedule: there is no schedule 'cosin'; did you mean 'cosine'?"},
    {{"train", "--accumulate", "0"},
     "--accumulate: accumulate must be a whole number from 1 to 1048576, got 0"},
    {{"train", "--clip", "-1"}, "--clip: clip.norm must be a number from 0, got -1"},
    {{"train", "--ema", "1"}, "--ema: ema.decay must be a number from 0 to below 1, got 1"},
    {{"train", "--seed", "x"}, "--seed: seed must be a whole number from 0, got \"x\""},
    {{"train", "--threads", "-2"},
     "--threads: threads must be a whole number from 0 to 1024, got -2"},
    {{"train", "--device", "gpu"},
     "--device: device must be cpu, kir or vulkan, got \"gpu\"; did you mean "
     "'cpu'?"},
    {{"train", "--progress", "loud"},
     "--progress: output.progress must be auto, plain, json or none, got \"loud\""},
    {{"train", "--set", "epochs"}, "--set must be KEY=VALUE, got \"epochs\""},
    {{"train", "--set", "=3"}, "--set must be KEY=VALUE, got \"=3\""},
    {{"train", "--set", "epoch=3"}, "--set: unknown key 'epoch'; did you mean 'epochs'?"},
    {{"train", "--set", "data.flip=1"}, "--set: data.flip must be true or false, got 1"},
    {{"train", "--set", "output.folder=\xff"}, "--set: output.folder must be text in UTF-8"},
    {{"train", "--set", "groups.1.pattern=a"},
     "--set: groups.1 is given, but there is no groups.0: they are numbered from 0 without a gap"},
    {{"train", "--set", "groups.99999999.pattern=a"},
     "--set: unknown key 'groups.99999999.pattern'; did you mean 'groups.N.pattern'?"},
    {{"train", "--resume", "--restart"}, "--resume and --restart are opposites: give one of them"},
    {{"train", "nowhere.toml"}, "nowhere.toml: cannot open: No such file or directory"},
    {{"train", "a.toml", "--config", "b.toml"},
     "two config files are given: a.toml and --config b.toml"},
    {{"train", "a.toml", "b.toml"}, "train: unexpected argument 'b.toml'"},
    {{"train", "--epochs"}, "--epochs: 1 required VALUE missing"},
    {{"eval"}, "RUN is required"},
    {{"lr-find", "--steps", "3"}, "--steps: Value 3 not in range 10 to 10000"},
    {{"verify-resume", "--interruption", "3"},
     "unknown option '--interruption'; did you mean '--interruptions'?"},
    {{"doctor", "me"}, "doctor: unexpected argument 'me'"},
};

TEST(ConfigErrors, every_bad_command_line_gets_its_message) {
  for (const BadLine& bad : kBadLines) {
    std::vector<std::string> words = {"pantala"};
    words.insert(words.end(), bad.words.begin(), bad.words.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    const int code = tools::run_command(static_cast<int>(argv.size()), argv.data());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), fmt::format("pantala: {}\n", bad.message));
    EXPECT_EQ(code, tools::kExitUsage) << bad.message;
  }
}

// Each part is a table in the one before.
TEST(ConfigErrors, keys_of_very_many_parts_are_refused_wherever_they_stand) {
  std::string key = "a";
  for (int k = 0; k < 20000; ++k) key += ".a";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n", "x = {" + key + " = 1}\n",
        // A quote of a long string right before those that close it begins no other string.
        "x = \"\"\"a\"\"\"\"\n" + key + " = \"\"\n", "x = '''a''''\n" + key + " = ''\n",
        "x = \"\"\"a\"\"\"\"\"\n" + key + " = 1\n"})
    EXPECT_THAT(complaint(text), testing::HasSubstr(": a key of more than 16 parts; "));
  EXPECT_THAT(message_of<Error>([&] { run::parse_set("seed={" + key + "=1}"); }), "no error");
  // Dots elsewhere are none of a key.
  EXPECT_THAT(complaint("# " + key + "\n[output]\nfolder = \"\"\"\n" + key +
                        "\n\\\"\"\"\"\n# it's\n[data]\nsource = 'csv:" + key + "'\n"),
              "no error");
}

TEST(Config, the_resolved_config_reads_back_to_the_same_text) {
  const char* texts[] = {
      "",
      "seed = 7\n[optimizer]\nname = \"sgd\"\nmomentum = 0.9\nnesterov = true\nlr = 0.1\n",
      "[optimizer]\nname = \"adamw\"\nbetas = [0.8, 0.95]\n[schedule]\nname = \"multistep\"\n"
      "milestones = [10, 20]\n",
      "[model]\nname = \"mlp\"\nhidden = []\n[data]\nsource = \"csv:a \\\"b\\\" \\\\ "
      "\\u0001.csv\"\n"
      "validation = 0.30000000000000004\n[clip]\nnorm = 1e-300\n",
      "[schedule]\nname = \"plateau\"\nmetric = \"accuracy\"\nwarmup_steps = 5\n",
      "[model]\nfreeze = [\"a.*\", \"b\"]\n[[groups]]\npattern = \"c.*\"\nlr_factor = 0.1\n"
      "[[groups]]\npattern = \"d\"\nweight_decay = 0\n[[groups]]\npattern = \"e\"\nfrozen = "
      "true\n",
      "[model]\nname = \"llama-bytes\"\nwidth = 64\nlayers = 2\n",
  };
  for (const char* text : texts) {
    const RunConfig config = config_of(text);
    const std::string written = run::write_toml(config);
    const RunConfig back = config_of(written);
    EXPECT_EQ(run::write_toml(back), written);
    EXPECT_THAT(run::differences(config, back), testing::IsEmpty());
  }
}

TEST(Config, later_values_win) {
  const RunConfig config = run::make_config({{"epochs", std::int64_t{2}, "run.toml:1:1"},
                                             {"seed", std::int64_t{3}, "run.toml:2:1"},
                                             run::parse_set("epochs=4"),
                                             run::parse_flag({"--epochs", "epochs"}, "6")});
  EXPECT_EQ(config.epochs, 6);
  EXPECT_EQ(config.seed, 3);
}

TEST(Config, set_takes_every_kind) {
  EXPECT_EQ(config_of("[data]\nsource = \"csv:a.csv\"\nlabel = 0\n").data.label,
            "0");  // a column by its number
  EXPECT_EQ(config_of("[data]\nsource = \"csv:a.csv\"\nlabel = \"0\"\n").data.label, "0");
  EXPECT_EQ(std::get<std::int64_t>(run::parse_set("seed=12").value), 12);
  EXPECT_EQ(std::get<double>(run::parse_set("data.validation=0.25").value), 0.25);
  EXPECT_EQ(std::get<std::string>(run::parse_set("data.validation=none").value), "none");
  EXPECT_EQ(std::get<bool>(run::parse_set("data.flip=true").value), true);
  EXPECT_EQ(std::get<std::vector<double>>(run::parse_set("model.hidden=[64,32]").value),
            (std::vector<double>{64, 32}));
  EXPECT_EQ(std::get<std::vector<double>>(run::parse_set("model.hidden=64,32").value),
            (std::vector<double>{64, 32}));
  EXPECT_EQ(std::get<std::string>(run::parse_set("output.folder=a=b").value), "a=b");
  EXPECT_EQ(std::get<std::string>(run::parse_set("output.folder=\"quoted\"").value), "quoted");
}

TEST(Config, groups_are_tables_of_a_list_and_can_be_set_by_number) {
  std::vector<run::Assignment> given =
      run::read_toml("[[groups]]\npattern = \"a.*\"\nlr_factor = 0.5\n", "run.toml");
  for (const char* more : {"groups.0.lr_factor=2", "groups.1.pattern=b.*",
                           "groups.1.weight_decay=0.25", "model.freeze= c.* ,d"})
    given.push_back(run::parse_set(more));
  const RunConfig config = run::make_config(given);
  ASSERT_EQ(config.groups.size(), 2U);
  EXPECT_EQ(config.groups[0].pattern, "a.*");
  EXPECT_EQ(config.groups[0].lr_factor, 2);
  EXPECT_FALSE(config.groups[0].weight_decay.has_value());
  EXPECT_EQ(config.groups[1].weight_decay, 0.25);
  EXPECT_EQ(config.model.freeze, "c.*,d");
  EXPECT_TRUE(config_of("groups = []\n").groups.empty());
  EXPECT_EQ(config_of("groups = [{pattern = \"x\"}]\n").groups.at(0).pattern, "x");
  EXPECT_EQ(run::differences(config_of(""), config).size(), 8U);
}

TEST(Config, folders_are_named_after_model_and_data) {
  EXPECT_EQ(config_of("").output.folder, "runs/lenet-fashion-mnist");
  EXPECT_EQ(
      config_of("[model]\nname = \"mlp\"\n[data]\nsource = \"csv:a/iris.csv\"\n").output.folder,
      "runs/mlp-iris");
  EXPECT_EQ(config_of("[data]\nsource = \"idx:some/digits/\"\n").output.folder,
            "runs/lenet-digits");
}

TEST(Config, only_what_changes_the_numbers_makes_another_run) {
  const RunConfig one = config_of("");
  const RunConfig running =
      config_of("epochs = 9\nthreads = 2\n[output]\nfolder = \"x\"\n[checkpoint]\nkeep = 9\n");
  EXPECT_THAT(run::differences(one, running), testing::IsEmpty());
  EXPECT_THAT(run::differences(one, config_of("[optimizer]\nlr = 0.1\n")),
              testing::ElementsAre("optimizer.lr: 0.001 there, 0.1 here"));
  EXPECT_THAT(
      run::differences(config_of("[schedule]\nname = \"cosine\"\n"),
                       config_of("epochs = 6\n[schedule]\nname = \"cosine\"\n")),
      testing::ElementsAre("epochs: 5 there, 6 here (the rate schedule cosine spans the run)"));
  EXPECT_THAT(run::differences(one, config_of("[optimizer]\nname = \"sgd\"\n")),
              testing::Contains("optimizer.beta1: 0.9 there, nothing here"));
}

TEST(Config, schedules_that_span_the_run_get_its_length) {
  const RunConfig config = config_of("[schedule]\nname = \"cosine\"\nwarmup_steps = 10\n");
  EXPECT_EQ(run::rate_of(config, 100).rate_schedule.str(),
            "cosine(T_max=90, eta_min=0, warmup_steps=10)");
  const RunConfig cycle = config_of("[schedule]\nname = \"one_cycle\"\n[optimizer]\nlr = 0.5\n");
  EXPECT_THAT(run::rate_of(cycle, 100).rate_schedule.str(),
              testing::HasSubstr("max_lr=0.5, total_steps=100"));
}

}  // namespace
}  // namespace pantala::tests
