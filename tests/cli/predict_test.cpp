// pantala predict: a class and its probability per item.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/data.h"
#include "pantala/weights.h"

namespace pantala::tests::predict_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Predict : public TrainingTest {
 protected:
  Predict() { EXPECT_EQ(run_pantala(train("run")).exit_code, 0); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(Predict, json_is_an_object_per_item_and_agrees_with_the_evaluation) {
  const Outcome outcome = run_pantala({"predict", file("run"), "--data", points(), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 150U);
  const std::vector<std::string> items = lines_of(bytes("points.csv"));
  int right = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const json prediction = json::parse(lines[k]);
    EXPECT_EQ(prediction.at("item"), k);
    EXPECT_GT(prediction.at("probability"), 1.0 / 3);
    EXPECT_LE(prediction.at("probability"), 1);
    const std::string item = items[k + 1];
    right += item.substr(item.rfind(',') + 1) == prediction.at("name").get<std::string>();
  }
  const json evaluation =
      json::parse(run_pantala({"eval", file("run"), "--data", points(), "--json"}).out);
  EXPECT_EQ(right / 150.0, evaluation.at("accuracy"));
}

TEST_F(Predict, items_alone_come_from_an_npy_file) {
  const data::Dataset set = data::read_csv(file("points.csv"));
  data::write_npy(file("items.npy"), *data::slice(set, 0, 7).data);
  const Outcome npy = run_pantala({"predict", file("run"), "--data", file("items.npy"), "--csv"});
  ASSERT_EQ(npy.exit_code, 0) << npy.err;
  const Outcome csv =
      run_pantala({"predict", file("run"), "--data", points(), "--csv", "--limit", "7"});
  EXPECT_EQ(npy.out, csv.out);
  EXPECT_THAT(npy.out, StartsWith("item,class,name,probability\n0,"));
  EXPECT_EQ(lines_of(npy.out).size(), 8U);
  const Outcome filed = run_pantala(
      {"predict", file("run"), "--data", file("items.npy"), "--csv", "--out", file("classes.csv")});
  EXPECT_EQ(filed.out, "");
  EXPECT_EQ(bytes("classes.csv"), csv.out);
}

TEST_F(Predict, labels_may_be_missing) {
  std::ofstream out(file("items.csv"));
  for (const std::string& line : lines_of(bytes("points.csv")))
    out << line.substr(0, line.rfind(',')) << '\n';
  out.close();
  const Outcome with = run_pantala({"predict", file("run"), "--data", points(), "--csv"});
  const Outcome without =
      run_pantala({"predict", file("run"), "--data", "csv:" + file("items.csv"), "--csv"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(with.out, without.out);
  const Outcome evaluated =
      run_pantala({"eval", file("run"), "--data", "csv:" + file("items.csv")});
  EXPECT_EQ(evaluated.exit_code, 2);
  EXPECT_THAT(evaluated.err, HasSubstr("3 columns of data; the model was made for 4"));
}

TEST_F(Predict, labels_are_not_looked_at) {
  std::ofstream out(file("items.csv"));
  int number = 0;
  for (const std::string& line : lines_of(bytes("points.csv")))
    out << (number++ % 2 == 0 ? line : line.substr(0, line.rfind(',') + 1)) << '\n';
  out.close();
  const Outcome with = run_pantala({"predict", file("run"), "--data", points(), "--csv"});
  const Outcome half =
      run_pantala({"predict", file("run"), "--data", "csv:" + file("items.csv"), "--csv"});
  ASSERT_EQ(half.exit_code, 0) << half.err;
  EXPECT_EQ(with.out, half.out);
}

// The numbers of texts are those of the training, not of the file at hand.
TEST_F(Predict, texts_have_the_numbers_that_the_model_knows) {
  std::ofstream train_file(file("texts.csv")), turned(file("turned.csv")), other(file("other.csv"));
  train_file << "colour,size,kind\n";
  for (int k = 0; k < 60; ++k)
    train_file << (k % 2 == 0 ? "red," : "blue,") << k % 7 << ',' << k % 2 << '\n';
  turned << "colour,size\nblue,3\nred,3\n";
  other << "colour,size\nred,3\ngreen,3\n";
  for (std::ofstream* stream : {&train_file, &turned, &other}) stream->close();
  const Outcome trained =
      run_pantala({"train", "--model", "mlp", "--data", "csv:" + file("texts.csv"), "--out",
                   file("texts"), "--epochs", "30", "--lr", "0.05", "--batch-size", "16"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome outcome =
      run_pantala({"predict", file("texts"), "--data", "csv:" + file("turned.csv"), "--csv"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[1], StartsWith("0,1,"));
  EXPECT_THAT(lines[2], StartsWith("1,0,"));
  EXPECT_THAT(
      run_pantala({"predict", file("texts"), "--data", "csv:" + file("other.csv")}).err,
      HasSubstr("other.csv: line 3, column 'colour': \"green\" is not among the texts of the data "
                "that the model was made for"));
}

TEST_F(Predict, the_most_likely_classes_and_all_probabilities) {
  const auto predict = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"predict", file("run"), "--data", points(), "--limit", "5"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return lines_of(outcome.out);
  };
  const std::vector<std::string> names = json::parse(bytes("run/data.json")).at("names");
  for (const std::string& line : predict({"--json", "--top-k", "2", "--probabilities"})) {
    const json one = json::parse(line);
    ASSERT_EQ(one.at("top").size(), 2U);
    EXPECT_EQ(one.at("top")[0].at("name"), one.at("name"));
    EXPECT_EQ(one.at("top")[0].at("probability"), one.at("probability"));
    EXPECT_GE(one.at("top")[0].at("probability"), one.at("top")[1].at("probability"));
    double sum = 0;
    for (const std::string& name : names) sum += one.at("probabilities").at(name).get<double>();
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(one.at("probabilities").at(one.at("top")[1].at("name").get<std::string>()),
              one.at("top")[1].at("probability"));
  }
  EXPECT_EQ(predict({"--csv", "--top-k", "2"})[0],
            "item,class,name,probability,class2,name2,probability2");
  const std::vector<std::string> all = predict({"--csv", "--probabilities"});
  EXPECT_EQ(all[0], "item,class,name,probability,probability:" + names[0] +
                        ",probability:" + names[1] + ",probability:" + names[2]);
  EXPECT_EQ(std::count(all[1].begin(), all[1].end(), ','), 6);
  EXPECT_THAT(predict({"--top-k", "3"})[0], testing::ContainsRegex("( %.*){3}"));
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", points(), "--top-k", "4"}).err,
              HasSubstr("--top-k is 4, but the model has 3 classes"));
}

TEST_F(Predict, truth_and_inputs_stand_beside_the_prediction) {
  std::ofstream(file("new.csv")) << "width,height,depth,weight,kind\n1,90,2.0,4.5,high\n"
                                    "9e1,3,2,4.5,\n3,4,5,6.5,round\n";
  const std::string data = "csv:" + file("new.csv");
  const Outcome csv =
      run_pantala({"predict", file("run"), "--data", data, "--csv", "--truth", "--inputs"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  const std::vector<std::string> lines = lines_of(csv.out);
  EXPECT_EQ(lines[0], "item,class,name,probability,truth,width,height,depth,weight");
  EXPECT_THAT(lines[1], testing::EndsWith(",high,1,90,2.0,4.5"));  // as it stands there
  EXPECT_THAT(lines[2], testing::EndsWith(",,9e1,3,2,4.5"));
  EXPECT_THAT(lines[3], testing::EndsWith(",round,3,4,5,6.5"));  // no class of the model
  const Outcome outcome =
      run_pantala({"predict", file("run"), "--data", data, "--json", "--truth", "--inputs"});
  const json second = json::parse(lines_of(outcome.out)[1]),
             first = json::parse(lines_of(outcome.out)[0]);
  EXPECT_EQ(first.at("truth"), "high");
  EXPECT_EQ(first.at("inputs").at("weight"), 4.5);
  EXPECT_TRUE(second.at("truth").is_null());
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", data, "--truth"}).out,
              HasSubstr("  truth high\n"));
}

TEST_F(Predict, truth_of_arrays_is_the_name_of_the_class) {
  Weights weights;
  weights.set("x", Literal::floats({3, 4}, std::vector<double>(12, 5)));
  weights.set("y", Literal::ints({3}, {0, 2, 1}));
  weights.save(file("items.safetensors"));
  const Outcome outcome =
      run_pantala({"predict", file("run"), "--data", "safetensors:" + file("items.safetensors"),
                   "--csv", "--truth", "--inputs"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> names = json::parse(bytes("run/data.json")).at("names");
  EXPECT_THAT(lines_of(outcome.out)[0], testing::EndsWith(",truth,input0,input1,input2,input3"));
  EXPECT_THAT(lines_of(outcome.out)[2], testing::EndsWith("," + names[2] + ",5,5,5,5"));
}

TEST_F(Predict, mistakes_are_named) {
  EXPECT_EQ(run_pantala({"predict", file("run")}).err, "pantala: --data is required\n");
  EXPECT_EQ(run_pantala({"predict", file("run"), "--data", points(), "--csv", "--json"}).exit_code,
            2);
  const Outcome limit = run_pantala({"predict", file("run"), "--data", points(), "--limit", "-1"});
  EXPECT_EQ(limit.exit_code, 2);
  EXPECT_EQ(limit.err, "pantala: --limit: Value -1 not in range 0 to 9007199254740992\n");
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", file("points.csv")}).err,
              HasSubstr("did you mean 'csv:" + file("points.csv") + "'?"));
  std::ofstream(file("narrow.csv")) << "width,depth,height,weight\n1,2,3,4\n";
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", "csv:" + file("narrow.csv")}).err,
              HasSubstr("column 1 (from 0) is 'depth'; the model was made for 'height' there"));
}

}  // namespace
}  // namespace pantala::tests::predict_test
