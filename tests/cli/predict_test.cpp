// pantala predict: a class and its probability per item.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "pantala/data.h"

namespace pantala::tests {
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

TEST_F(Predict, labels_may_lack) {
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
}  // namespace pantala::tests
