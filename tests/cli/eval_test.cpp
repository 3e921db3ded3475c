// pantala eval: models of runs, on their own data and on others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"

namespace pantala::tests::eval_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Eval : public TrainingTest {
 protected:
  Eval() {
    const Outcome outcome = run_pantala(train("run", {"--json", "--progress", "none"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    result_ = json::parse(outcome.out);
  }
  json result_;
};

TEST_F(Eval, gives_the_numbers_of_the_run_again) {
  const Outcome outcome = run_pantala({"eval", file("run"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  json evaluation = json::parse(outcome.out);
  EXPECT_EQ(evaluation.at("checkpoint"), "step-000000036");
  for (const char* key : {"items", "loss", "accuracy", "precision", "recall", "f1", "confusion"})
    EXPECT_EQ(evaluation.at(key), result_.at("evaluation").at(key)) << key;
  const Outcome text = run_pantala({"eval", file("run")});
  EXPECT_THAT(text.out, StartsWith("step-000000036 on points.csv"));
  EXPECT_THAT(text.out, HasSubstr("over 15 items\n"));
}

TEST_F(Eval, takes_other_data_and_other_checkpoints) {
  // The same points in another order: class names, not their order of appearance, count.
  std::vector<std::string> lines;
  std::istringstream in(bytes("points.csv"));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::ofstream out(file("turned.csv"));
  out << lines[0] << '\n';
  for (std::size_t k = lines.size() - 1; k > 0; --k) out << lines[k] << '\n';
  out.close();
  const json plain =
      json::parse(run_pantala({"eval", file("run"), "--json", "--data", points()}).out);
  const json turned = json::parse(
      run_pantala({"eval", file("run"), "--json", "--data", "csv:" + file("turned.csv")}).out);
  EXPECT_EQ(plain.at("items"), 150);
  EXPECT_EQ(plain.at("confusion"), turned.at("confusion"));
  const json earlier = json::parse(
      run_pantala({"eval", file("run"), "--json", "--checkpoint", "step-000000018"}).out);
  EXPECT_EQ(earlier.at("checkpoint"), "step-000000018");
  EXPECT_NE(earlier.at("loss"), result_.at("evaluation").at("loss"));
  const json best =
      json::parse(run_pantala({"eval", file("run"), "--json", "--checkpoint", "best"}).out);
  EXPECT_LE(best.at("loss"), earlier.at("loss"));
}

// Which number is which name nobody knows: a wrong guess would be a wrong accuracy.
TEST_F(Eval, numbers_and_names_are_not_mixed) {
  std::string numbers = bytes("points.csv");
  for (const auto& [name, number] :
       {std::pair{"wide", "0"}, std::pair{"high", "1"}, std::pair{"deep", "2"}})
    for (std::size_t at = 0;
         (at = numbers.find(std::string(",") + name + "\n", at)) != std::string::npos;)
      numbers.replace(at + 1, 4, number);
  std::ofstream(file("numbers.csv")) << numbers;
  const Outcome by_number =
      run_pantala({"eval", file("run"), "--data", "csv:" + file("numbers.csv")});
  EXPECT_EQ(by_number.exit_code, 2);
  EXPECT_THAT(by_number.err, HasSubstr("the labels are numbers, but the model learnt names"));
  std::vector<std::string> words = train("numbered");
  *std::find(words.begin(), words.end(), points()) = "csv:" + file("numbers.csv");
  ASSERT_EQ(run_pantala(words).exit_code, 0);
  const Outcome by_name = run_pantala({"eval", file("numbered"), "--data", points()});
  EXPECT_EQ(by_name.exit_code, 2);
  EXPECT_THAT(by_name.err, HasSubstr("the labels are names, but the model learnt numbers"));
}

TEST_F(Eval, mistakes_are_named) {
  const auto complaint = [](const std::vector<std::string>& words) {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(complaint({"eval", file("nowhere")}),
            "pantala: " + file("nowhere") +
                " is empty or not there; a run folder is what pantala train --out makes\n");
  std::filesystem::create_directories(file("elsewhere/below"));
  EXPECT_EQ(complaint({"eval", file("elsewhere")}),
            "pantala: " + file("elsewhere") +
                " is not the folder of a run; a run folder is what pantala train --out makes\n");
  EXPECT_THAT(complaint({"eval", file("run"), "--checkpoint", "bset"}),
              HasSubstr("; did you mean 'best'?; there are last, best, step-000000018, "));
  EXPECT_EQ(complaint({"eval", file("run"), "--data", "points.csv"}),
            "pantala: --data: data.source must be fashion-mnist, idx:DIR, csv:FILE, npz:FILE, "
            "safetensors:FILE, images:DIR, tokens:FILE or text:FILE, "
            "got \"points.csv\"; did you mean 'csv:points.csv'?\n");
  std::ofstream(file("three.csv")) << "1,2,wide\n3,4,high\n";
  EXPECT_THAT(complaint({"eval", file("run"), "--data", "csv:" + file("three.csv")}),
              HasSubstr("three.csv: 2 columns of data; the model was made for 4\n"));
  std::ofstream(file("other.csv")) << "1,2,3,4,wide\n3,4,5,6,broad\n";
  EXPECT_THAT(complaint({"eval", file("run"), "--data", "csv:" + file("other.csv")}),
              HasSubstr("the model knows no class \"broad\""));
}

}  // namespace
}  // namespace pantala::tests::eval_test
