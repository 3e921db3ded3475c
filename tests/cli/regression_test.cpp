// Labels that are numbers: training, evaluation and prediction in their own units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/training.h"
#include "pantala/data.h"
#include "support/data_files.h"

namespace pantala::tests::regression_test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Regression : public TrainingTest {
 protected:
  Regression() { write_prices(file("prices.csv"), 1); }

  // price = 1000 + 30 size - 20 age and some noise, from about 700 to 1300; `unit` 10 makes it
  // whole numbers of another unit.
  static void write_prices(const std::string& path, int unit) {
    std::ofstream out(path);
    out << "size,age,price\n";
    std::uint32_t state = 99;
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<int>(state >> 16) % 200 - 100;
    };
    for (int k = 0; k < 200; ++k) {
      const int size = next(), age = next(), noise = next();
      const int tenths = 10000 + 30 * size - 20 * age + noise;
      out << size / 10.0 << ',' << age / 10.0 << ',';
      if (unit == 10)
        out << tenths << '\n';
      else
        out << tenths / 10 << '.' << tenths % 10 << '\n';
    }
  }
  std::string prices() const { return "csv:" + file("prices.csv"); }
  std::vector<std::string> learn(const std::string& out, std::vector<std::string> more = {},
                                 const std::string& data = "") const {
    std::vector<std::string> words = train(out, std::move(more));
    *std::find(words.begin(), words.end(), points()) = data.empty() ? prices() : data;
    *std::find(words.begin(), words.end(), "4") = "20";
    return words;
  }
  std::string complaint(std::vector<std::string> words) const {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_FALSE(exists("refused"));
    return outcome.err;
  }
};

TEST_F(Regression, learns_a_line_and_measures_in_the_units_of_the_labels) {
  const Outcome outcome = run_pantala(learn("run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("r2 0.9"));
  EXPECT_THAT(outcome.out, HasSubstr("plot: " + file("run/plots/r2.svg")));
  EXPECT_THAT(outcome.err, ContainsRegex("validation loss .*  mae .*  rmse .*  r2 0.9"));
  EXPECT_FALSE(exists("run/plots/accuracy.svg"));
  const json result = json::parse(bytes("run/result.json"));
  EXPECT_EQ(result.at("task"), "regression");
  const json& evaluation = result.at("evaluation");
  EXPECT_GT(evaluation.at("r2"), 0.9);
  EXPECT_FALSE(evaluation.contains("accuracy"));
  // The loss is of the scaled labels, the error is not.
  const double scale = json::parse(bytes("run/data.json")).at("target_std").at(0);
  EXPECT_GT(scale, 50);
  EXPECT_NEAR(evaluation.at("rmse").get<double>(),
              scale * std::sqrt(evaluation.at("loss").get<double>()), 0.01);
  EXPECT_THAT(lines_of(bytes("run/metrics.csv"))[0], HasSubstr("validation_r2"));

  const json again = json::parse(run_pantala({"eval", file("run"), "--json"}).out);
  EXPECT_EQ(again.at("rmse"), evaluation.at("rmse"));
}

TEST_F(Regression, predict_gives_numbers) {
  ASSERT_EQ(run_pantala(learn("run")).exit_code, 0);
  const Outcome csv = run_pantala({"predict", file("run"), "--data", prices(), "--csv"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  const std::vector<std::string> lines = lines_of(csv.out), items = lines_of(bytes("prices.csv"));
  ASSERT_EQ(lines.size(), items.size());
  EXPECT_EQ(lines[0], "item,prediction");
  const auto last = [](const std::string& line) {
    return std::stod(line.substr(line.rfind(',') + 1));
  };
  double error = 0;
  for (std::size_t k = 1; k < lines.size(); ++k)
    error += std::fabs(last(lines[k]) - last(items[k]));
  EXPECT_LT(error / 200, 30);
  const json evaluation =
      json::parse(run_pantala({"eval", file("run"), "--data", prices(), "--json"}).out);
  EXPECT_NEAR(evaluation.at("mae").get<double>(), error / 200, 1e-3);

  const data::Dataset set = data::read_csv(file("prices.csv"));
  data::write_npy(file("items.npy"), *data::slice(set, 0, 3).data);
  const Outcome alone =
      run_pantala({"predict", file("run"), "--data", file("items.npy"), "--json"});
  const std::vector<std::string> objects = lines_of(alone.out);
  ASSERT_EQ(objects.size(), 3U) << alone.err;
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(json::parse(objects[k]).at("prediction").get<double>(), last(lines[k + 1]), 1e-2);
}

TEST_F(Regression, predict_puts_the_truth_beside_the_numbers) {
  ASSERT_EQ(run_pantala(learn("run")).exit_code, 0);
  std::ofstream(file("new.csv")) << "size,age,price\n1.5,2,1010.50\n-3,0.5,\n";
  const auto predict = [&](const std::string& data, const std::string& form) {
    const Outcome outcome = run_pantala({"predict", file("run"), "--data", data, form, "--truth"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return lines_of(outcome.out);
  };
  const std::vector<std::string> csv = predict("csv:" + file("new.csv"), "--csv");
  ASSERT_EQ(csv.size(), 3U);
  EXPECT_EQ(csv[0], "item,prediction,truth");
  EXPECT_THAT(csv[1], testing::EndsWith(",1010.50"));  // as it stands there
  EXPECT_THAT(csv[2], testing::EndsWith(","));
  const std::vector<std::string> objects = predict("csv:" + file("new.csv"), "--json");
  EXPECT_EQ(json::parse(objects.at(0)).at("truth"), 1010.5);
  EXPECT_TRUE(json::parse(objects.at(1)).at("truth").is_null());
  // Of arrays it is the label, as the number that it is.
  data::write_npy(file("x.npy"), {.shape = {1, 2}, .values = std::vector<float>{1.5F, 2}});
  data::write_npy(file("y.npy"), {.shape = {1}, .values = std::vector<float>{1010.5F}});
  put_file(file("one.npz"), zip({{.name = "x.npy", .content = bytes("x.npy")},
                                 {.name = "y.npy", .content = bytes("y.npy")}}));
  EXPECT_EQ(json::parse(predict("npz:" + file("one.npz"), "--json").at(0)).at("truth"), 1010.5);
}

TEST_F(Regression, sigint_saves_and_continues_with_the_same_bits) {
  const auto endless = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.end(), {"--set", "checkpoint.every_steps=20", "--set",
                             "early_stopping.metric=r2", "--set", "checkpoint.metric=rmse"});
    std::vector<std::string> words = learn(out, std::move(more));
    *std::find(words.begin(), words.end(), "20") = "1000000";
    return words;
  };
  Running running(endless("run", {}));
  while (!exists("run/metrics.jsonl") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGINT);
  const Outcome stopped = running.wait();
  ASSERT_EQ(stopped.exit_code, 75) << stopped.err;
  const std::size_t at = stopped.err.find("saved after ");
  ASSERT_NE(at, std::string::npos);
  const std::string steps = std::to_string(std::stol(stopped.err.substr(at + 12)) + 25);
  ASSERT_EQ(run_pantala(endless("run", {"--max-steps", steps, "--resume"})).exit_code, 0);
  ASSERT_EQ(run_pantala(endless("whole", {"--max-steps", steps})).exit_code, 0);
  EXPECT_TRUE(bytes("run/model.safetensors") == bytes("whole/model.safetensors"));
}

TEST_F(Regression, verify_resume_and_lr_find_take_it) {
  std::vector<std::string> words =
      learn("unused", {"--schedule", "plateau", "--set", "schedule.metric=mae", "--set",
                       "schedule.patience=0", "--set", "early_stopping.patience=3", "--set",
                       "early_stopping.metric=r2", "--steps", "25"});
  words[0] = "verify-resume";
  const Outcome verified = run_pantala(words);
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  words = learn("unused", {"--plot", file("sweep.svg")});
  words[0] = "lr-find";
  const Outcome sweep = run_pantala(words);
  EXPECT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_GT(std::stod(sweep.out), 0);
}

TEST_F(Regression, whole_numbers_are_classes_unless_the_task_says_otherwise) {
  write_prices(file("whole.csv"), 10);
  const std::string whole = "csv:" + file("whole.csv");
  const Outcome classes = run_pantala(learn("classes", {"--dry-run"}, whole));
  ASSERT_EQ(classes.exit_code, 0) << classes.err;
  EXPECT_THAT(classes.out, ContainsRegex("[0-9]+ classes, items"));
  const Outcome numbers = run_pantala(learn("run", {"--set", "model.task=regression"}, whole));
  ASSERT_EQ(numbers.exit_code, 0) << numbers.err;
  EXPECT_GT(json::parse(bytes("run/result.json")).at("evaluation").at("r2"), 0.9);
  // A model that has learnt numbers takes whole ones as such.
  ASSERT_EQ(run_pantala(learn("tenths")).exit_code, 0);
  EXPECT_EQ(run_pantala({"eval", file("tenths"), "--data", whole}).exit_code, 0);
}

TEST_F(Regression, several_targets_without_scaling) {
  std::vector<float> x, y;
  for (int k = 0; k < 120; ++k) {
    const float a = static_cast<float>(k * 37 % 41) / 20 - 1,
                b = static_cast<float>(k % 17) / 8 - 1;
    x.insert(x.end(), {a, b});
    y.insert(y.end(), {a - b, 2 * b});
  }
  data::write_npy(file("x.npy"), {.shape = {120, 2}, .values = x});
  data::write_npy(file("y.npy"), {.shape = {120, 2}, .values = y});
  put_file(file("two.npz"), zip({{.name = "x.npy", .content = bytes("x.npy")},
                                 {.name = "y.npy", .content = bytes("y.npy")}}));
  const Outcome outcome =
      run_pantala(learn("run", {"--set", "data.normalize=none"}, "npz:" + file("two.npz")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(json::parse(bytes("run/result.json")).at("evaluation").at("r2"), 0.9);
  EXPECT_TRUE(json::parse(bytes("run/data.json")).at("target_mean").empty());
  const std::vector<std::string> predict = {
      "predict", file("run"), "--data", "npz:" + file("two.npz"), "--limit", "1"};
  std::vector<std::string> as_csv = predict, as_json = predict;
  as_csv.emplace_back("--csv");
  as_json.emplace_back("--json");
  EXPECT_THAT(run_pantala(as_csv).out, StartsWith("item,prediction0,prediction1\n0,"));
  EXPECT_EQ(json::parse(run_pantala(as_json).out).at("prediction").size(), 2U);
  EXPECT_THAT(run_pantala({"eval", file("run"), "--data", prices()}).err,
              HasSubstr("1 label per item; the model was made for 2"));
}

TEST_F(Regression, mistakes_are_named) {
  std::vector<std::string> lenet = learn("refused");
  *std::find(lenet.begin(), lenet.end(), "mlp") = "lenet";
  EXPECT_EQ(complaint(lenet),
            "pantala: model lenet tells classes apart, but the labels of prices.csv are numbers; "
            "mlp learns numbers\n");
  EXPECT_EQ(
      complaint(learn("refused", {"--set", "early_stopping.metric=accuracy"})),
      "pantala: early_stopping.metric is \"accuracy\", which is of classes, but the labels of "
      "prices.csv are numbers; take loss, mae, rmse or r2\n");
  EXPECT_EQ(complaint(learn("refused", {"--schedule", "plateau", "--set", "schedule.metric=f1"})),
            "pantala: schedule.metric is \"f1\", which is of classes, but the labels of prices.csv "
            "are numbers; take loss, mae, rmse or r2\n");
  EXPECT_EQ(
      complaint(train("refused", {"--set", "checkpoint.metric=r2"})),
      "pantala: checkpoint.metric is \"r2\", which is of numbers, but the labels of points.csv "
      "are classes; take loss, accuracy, top5, precision, recall or f1\n");
  EXPECT_EQ(complaint(learn("refused", {"--set", "model.task=classification"})),
            "pantala: prices.csv: the labels are f32[200,1]; classes are whole numbers, one per "
            "item, or names (model.task = \"regression\" learns numbers)\n");
  EXPECT_EQ(complaint(train("refused", {"--set", "model.task=regression"})),
            "pantala: points.csv: the labels are names; regression (model.task) learns numbers\n");
}

}  // namespace
}  // namespace pantala::tests::regression_test
