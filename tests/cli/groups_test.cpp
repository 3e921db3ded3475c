// Freezing and parameter groups: from flags and TOML, for models of the zoo and from ONNX files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/nn.h"
#include "pantala/onnx.h"
#include "pantala/session.h"
#include "pantala/weights.h"

namespace pantala::tests::groups_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Groups : public TrainingTest {
 protected:
  Literal weight(const std::string& run, const std::string& name) const {
    return Weights::open(file(run + "/model.safetensors")).read(name);
  }
  bool same(const std::string& a, const std::string& b, const std::string& name) const {
    return weight(a, name) == weight(b, name);
  }
  double norm(const std::string& run, const std::string& name) const {
    double squares = 0;
    for (const double w : weight(run, name).to_doubles()) squares += w * w;
    return std::sqrt(squares);
  }
  // A run that changes next to nothing, so that it ends with the weights that it began with.
  void begin(const std::string& out) const {
    std::vector<std::string> words = train(out, {"--set", "groups.0.pattern=*"});
    words.insert(words.end(), {"--set", "groups.0.lr_factor=0"});
    const Outcome outcome = run_pantala(words);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  std::string complaint(const std::vector<std::string>& more) const {
    const Outcome outcome = run_pantala(train("refused", more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_FALSE(exists("refused/config.toml"));
    return outcome.err;
  }
};

TEST_F(Groups, what_is_frozen_stays_and_has_no_state) {
  begin("first");
  const Outcome outcome =
      run_pantala(train("run", {"--freeze", "fc1.weight", "--freeze", "fc1.bias"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("39 of 99 parameters were trained, the others frozen\n"));
  EXPECT_EQ(json::parse(bytes("run/result.json")).at("trained_parameters"), 39);
  EXPECT_TRUE(same("first", "run", "fc1.weight"));
  EXPECT_TRUE(same("first", "run", "fc1.bias"));
  EXPECT_FALSE(same("first", "run", "fc2.weight"));
  for (const std::string& name :
       Weights::open(file("run/checkpoints/step-000000036/optimizer.safetensors")).names())
    EXPECT_THAT(name, Not(HasSubstr("fc1")));
  EXPECT_EQ(run_pantala({"eval", file("run")}).exit_code, 0);
}

TEST_F(Groups, of_a_config_have_a_rate_and_a_decay_of_their_own) {
  begin("first");
  std::ofstream(file("run.toml")) << "[model]\nfreeze = [\"fc1.bias\"]\n"
                                     "[[groups]]\npattern = \"fc2.*\"\nlr_factor = 0\n"
                                     "[[groups]]\npattern = \"*\"\nweight_decay = 0.5\n";
  std::vector<std::string> words = train("run", {"--config", file("run.toml")});
  const Outcome outcome = run_pantala(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* name : {"fc1.bias", "fc2.weight", "fc2.bias"})
    EXPECT_TRUE(same("first", "run", name)) << name;
  EXPECT_FALSE(same("first", "run", "fc1.weight"));
  // The decay makes the weights smaller than they are without it.
  std::vector<std::string> plain = train("plain", {"--config", file("run.toml")});
  plain.insert(plain.end(), {"--set", "groups.1.weight_decay=0"});
  ASSERT_EQ(run_pantala(plain).exit_code, 0);
  EXPECT_LT(norm("run", "fc1.weight"), 0.99 * norm("plain", "fc1.weight"));
  // It is another run.
  words.insert(words.end(), {"--set", "groups.1.weight_decay=0"});
  const Outcome refused = run_pantala(words);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("groups.1.weight_decay: 0.5 there, 0 here"));
  EXPECT_THAT(bytes("run/config.toml"),
              HasSubstr("\n[[groups]]\npattern = \"*\"\nlr_factor = 1\nweight_decay = 0.5\nfrozen "
                        "= false\n"));
}

TEST_F(Groups, a_run_goes_on_only_with_the_same_ones) {
  const std::vector<std::string> frozen = {"--freeze", "fc1.*"};
  ASSERT_EQ(run_pantala(train("run", frozen)).exit_code, 0);
  const Outcome other = run_pantala(train("run"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.freeze: \"fc1.*\" there, \"\" here"));
  // In parts it ends with the same bits.
  const auto steps = [&](const std::string& out, const char* count) {
    const Outcome outcome =
        run_pantala(train(out, {"--freeze", "fc1.*", "--max-steps", count, "--ema", "0.9"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  steps("whole", "20");
  steps("parts", "11");
  steps("parts", "20");
  EXPECT_EQ(bytes("whole/model.safetensors"), bytes("parts/model.safetensors"));
}

TEST_F(Groups, a_pattern_that_fits_nothing_is_refused_with_the_nearest_name) {
  EXPECT_THAT(complaint({"--freeze", "fc3.*"}),
              HasSubstr("model.freeze: no parameter of the model is called 'fc3.*'; did you mean "
                        "'fc1.*'?"));
  EXPECT_THAT(complaint({"--freeze", "fc1"}), HasSubstr("did you mean 'fc1.*'?"));
  EXPECT_THAT(complaint({"--set", "groups.0.pattern=fc1.wieght"}),
              HasSubstr("groups.0.pattern: no parameter of the model is called 'fc1.wieght'; did "
                        "you mean 'fc1.weight'?"));
  EXPECT_THAT(complaint({"--freeze", "fc1.*", "--set", "groups.0.pattern=fc1.weight"}),
              HasSubstr("groups.0.pattern: all that 'fc1.weight' fits belongs to others before it "
                        "('fc1.weight' to 'fc1.*' of model.freeze)"));
  EXPECT_THAT(complaint({"--freeze", "*"}),
              HasSubstr("nothing is left to train: all 4 parameters are frozen (model.freeze)"));
}

TEST_F(Groups, a_dry_run_tells_what_is_frozen_and_in_each_group) {
  const std::vector<std::string> more = {
      "--freeze", "fc1.weight", "--set", "groups.0.pattern=fc2.*", "--set", "groups.0.lr_factor=10",
      "--dry-run"};
  const Outcome text = run_pantala(train("run", more));
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("# model: 99 parameters, 48 frozen, 51 trained\n"),
                    HasSubstr("#   model.freeze 'fc1.weight': 48 parameters in 1 tensor, frozen\n"),
                    HasSubstr("#   groups.0.pattern 'fc2.*': 39 parameters in 2 tensors, lr_factor "
                              "10\n"),
                    HasSubstr("#   fc1.weight [12,4] frozen\n")));
  std::vector<std::string> words = train("run", more);
  words.emplace_back("--json");
  const json told = json::parse(run_pantala(words).out);
  EXPECT_EQ(told.at("frozen_parameter_count"), 48);
  EXPECT_EQ(told.at("groups")[1].at("parameter_count"), 39);
  EXPECT_EQ(told.at("config").at("groups")[0].at("pattern"), "fc2.*");
}

// fc1, batch norm, fc2: what an exporter writes of it in evaluation mode.
class FrozenOnnx : public Groups {
 protected:
  FrozenOnnx() {
    Graph graph;
    const Tensor x = graph.input("x", {1, 4});
    const Tensor h = nn::batch_norm("bn", nn::linear("fc1", x, 6), {.training = false});
    graph.output("logits", nn::linear("fc2", nn::activate(h, nn::Activation::relu), 3));
    const Session session = build_inference_session(graph);
    onnx::export_model(graph, session.weights(), file("net.onnx"));
  }
  Outcome train_from(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train",
                                      "--from",
                                      file("net.onnx"),
                                      "--data",
                                      points(),
                                      "--out",
                                      file(out),
                                      "--max-steps",
                                      "2",
                                      "--threads",
                                      "1",
                                      "--progress",
                                      "none",
                                      "--batch-size",
                                      "16",
                                      "--set",
                                      "data.validation=none"};
    words.insert(words.end(), more.begin(), more.end());
    return run_pantala(words);
  }
  void expect_statistics_moved(const std::string& run, bool moved) const {
    EXPECT_EQ(weight(run, "bn.running_mean").at(0) != 0, moved) << run;
    EXPECT_EQ(weight(run, "bn.running_var").at(0) != 1, moved) << run;
  }
};

TEST_F(FrozenOnnx, batch_norm_keeps_its_statistics_unless_it_is_told_otherwise) {
  const Outcome frozen = train_from("frozen", {"--freeze", "fc1.*,bn.*"});
  ASSERT_EQ(frozen.exit_code, 0) << frozen.err;
  expect_statistics_moved("frozen", false);
  EXPECT_EQ(weight("frozen", "bn.weight").at(0), 1);
  ASSERT_EQ(
      train_from("moving", {"--freeze", "bn.*", "--set", "model.batch_norm=training"}).exit_code,
      0);
  expect_statistics_moved("moving", true);
  EXPECT_FALSE(same("frozen", "moving", "fc2.weight"));
  EXPECT_EQ(weight("moving", "bn.weight").at(0), 1);
  ASSERT_EQ(train_from("all", {"--set", "model.batch_norm=frozen"}).exit_code, 0);
  expect_statistics_moved("all", false);
  EXPECT_NE(weight("all", "bn.weight").at(0), 1);
}

}  // namespace
}  // namespace pantala::tests::groups_test
