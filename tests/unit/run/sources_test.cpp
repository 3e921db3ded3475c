// The table of sources: every row can be named, an unknown name is refused with the nearest one,
// and keys, rules and help follow from the rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "pantala/error.h"
#include "pantala/run.h"
#include "pantala/weights.h"
#include "run/run_data.h"
#include "run/sources/source.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::run {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using tests::message_of;

std::string refused_source(const std::string& source) {
  return message_of<TypeError>([&] { named_source(source); });
}

TEST(Sources, every_row_is_found_by_its_name_and_opens_something) {
  ASSERT_GE(sources().size(), 7U);
  for (const Source& source : sources()) {
    const bool takes_path = !source.argument.empty();
    const NamedSource named = named_source(takes_path ? source.name + ":a:b" : source.name);
    EXPECT_EQ(&named.source, &source);
    EXPECT_EQ(named.path, takes_path ? "a:b" : "");
    EXPECT_NE(static_cast<bool>(source.open), source.tokens.has_value()) << source.name;
    EXPECT_THAT(source_rule(), HasSubstr(source.form()));
    EXPECT_THAT(source_help(), HasSubstr(source.help));
  }
}

TEST(Sources, keys_of_a_row_are_keys_of_the_config) {
  std::vector<std::string> names;
  for (const Key& key : config_keys()) names.push_back(key.name);
  std::size_t keys = 0;
  for (const Source& source : sources())
    for (const Key& key : source.keys) {
      EXPECT_THAT(names, Contains(key.name).Times(1));
      ++keys;
    }
  EXPECT_GE(keys, 5U);
}

TEST(Sources, an_unknown_kind_is_refused_with_the_nearest_name) {
  EXPECT_THAT(refused_source("cvs:table.csv"),
              StartsWith("data.source must be fashion-mnist, idx:DIR, "));
  EXPECT_THAT(refused_source("cvs:table.csv"), EndsWith("; did you mean 'csv'?"));
  EXPECT_THAT(refused_source("fashion_mnist"), EndsWith("; did you mean 'fashion-mnist'?"));
  EXPECT_THAT(refused_source("table.csv"), EndsWith("; did you mean 'csv:table.csv'?"));
  EXPECT_THAT(refused_source("idx"), HasSubstr("got \"idx\""));
  EXPECT_THAT(refused_source("csv:"), EndsWith("got \"csv:\""));
}

// Nothing stands in for a source that there is not, however the config was made.
TEST(Sources, a_config_with_an_unknown_kind_opens_nothing) {
  RunConfig config;
  config.data.source = "imagse:photos";
  EXPECT_THAT(message_of<TypeError>([&] { open_run_data(config); }),
              EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message_of<TypeError>([&] { open_for_model(config.data.source, config, {}); }),
              EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message_of<TypeError>([&] { open_items_for_model(config.data.source, config, {}); }),
              EndsWith("; did you mean 'images'?"));
  EXPECT_THAT(message_of<TypeError>([&] { run_training(config); }),
              StartsWith("the config: data.source must be "));
}

TEST(Sources, a_file_or_folder_alone_suggests_its_source) {
  const tests::TemporaryFolder folder;
  EXPECT_THAT(refused_source("arrays.npz"), EndsWith("; did you mean 'npz:arrays.npz'?"));
  EXPECT_THAT(refused_source("a.safetensors"),
              EndsWith("; did you mean 'safetensors:a.safetensors'?"));
  EXPECT_THAT(refused_source("a.tsv"), EndsWith("; did you mean 'csv:a.tsv'?"));
  EXPECT_THAT(refused_source("book.txt"), EndsWith("; did you mean 'text:book.txt'?"));
  const std::string pictures = folder.file("shapes");
  EXPECT_THAT(refused_source(pictures), EndsWith("got \"" + pictures + "\""));
  std::filesystem::create_directory(pictures);
  EXPECT_THAT(refused_source(pictures), EndsWith("; did you mean 'images:" + pictures + "'?"));
  tests::put_file(pictures + "/train-images-idx3-ubyte.gz", "");
  EXPECT_THAT(refused_source(pictures), EndsWith("; did you mean 'idx:" + pictures + "'?"));
}

// Every key of a row is refused for the sources that do not read it.
TEST(Sources, a_key_of_one_source_is_refused_for_another) {
  for (const Source& source : sources())
    for (const Key& key : source.keys) {
      EXPECT_TRUE(readers_of(key.name, source).read) << key.name;
      EXPECT_THAT(readers_of(key.name, source).forms, Contains(source.form()));
    }
  EXPECT_TRUE(readers_of("data.sequence", named_source("text:a").source).read);
  EXPECT_FALSE(readers_of("data.token_type", named_source("text:a").source).read);
  EXPECT_TRUE(readers_of("epochs", named_source("text:a").source).forms.empty());
  EXPECT_THAT(
      message_of<TypeError>([] { read_config("", {"data.source=npz:a.npz", "data.label=y"}); }),
      EndsWith("data.label is of csv:FILE, but data.source is npz:a.npz"));
  read_config("", {"data.source=npz:a.npz", "data.label="});  // what a resolved config has
}

data::Array ramp(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k);
  return {.shape = shape, .values = values};
}

TEST(Sources, safetensors_have_the_names_of_npz) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("points.safetensors");
  Weights weights;
  weights.set("x_train", Literal::floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, bf16));
  weights.set("y_train", Literal::ints({4}, {0, 1, 0, 1}, i32));
  weights.set("x_test", Literal::floats({1, 2}, {0.5, 1}, f32));
  weights.set("y_test", Literal::ints({1}, {1}, boolean));
  weights.save(path);
  RunConfig config;
  config.model.name = "mlp";
  config.data.source = "safetensors:" + path;
  const RunData data = open_run_data(config);
  EXPECT_EQ(*data.train.data, ramp({4, 2}));
  EXPECT_EQ(data.train.labels->dtype(), i32);
  ASSERT_TRUE(data.validation);
  EXPECT_EQ(data.validation->labels->dtype(), u8);
  EXPECT_EQ(open_items_for_model(config.data.source, config, data.facts).size(), 1);
  weights.erase("y_train");
  weights.save(path);
  EXPECT_THAT(message_of<TypeError>([&] { open_run_data(config); }),
              EndsWith("has the arrays x_test, x_train, y_test; expected x and y, or x_train and "
                       "y_train (and x_test and y_test)"));
}

// --- missing values
class Lacking : public testing::Test {
 protected:
  RunConfig config(const std::string& missing, const std::string& text) {
    tests::put_file(folder_.file("table.csv"), text);
    RunConfig config;
    config.model.name = "mlp";
    config.data.source = "csv:" + folder_.file("table.csv");
    config.data.missing = missing;
    config.data.normalize = "none";
    return config;
  }
  static std::vector<float> values(const data::Dataset& set) {
    return std::get<std::vector<float>>(set.data->values);
  }
  const tests::TemporaryFolder folder_;
};

TEST_F(Lacking, values_become_the_mean_of_the_training_set_which_the_run_keeps) {
  RunConfig run = config("mean", "x,y,k\n1,5,0\n,7,1\n3,NA,0\n8,6,1\n?,?,0\n2,2,1\n");
  run.data.validation = 0.34;
  const RunData data = open_run_data(run);
  ASSERT_EQ(data.facts.fill.size(), 2U);
  // By hand, over what the training set has.
  run.data.missing = "mean";
  const data::Dataset raw =
      data::read_csv(folder_.file("table.csv"), {.header = true, .missing = data::Missing::keep});
  const auto train = data::split(raw, 2, static_cast<std::uint64_t>(run.seed)).first;
  for (const std::size_t column : {0U, 1U}) {
    double sum = 0, count = 0;
    for (std::size_t k = column; k < values(train).size(); k += 2)
      if (!std::isnan(values(train)[k])) sum += static_cast<double>(values(train)[k]), ++count;
    EXPECT_DOUBLE_EQ(data.facts.fill[column], sum / count);
  }
  for (const data::Dataset* set : {&data.train, &*data.validation})
    for (const float value : values(*set)) EXPECT_TRUE(std::isfinite(value));
  // As a file, and with other data.
  tests::put_file(folder_.file("data.json"), facts_json(data.facts));
  const DataFacts facts = read_facts(folder_.file("data.json"));
  EXPECT_EQ(facts, data.facts);
  tests::put_file(folder_.file("new.csv"), "x,y\n,4\n9,\n");
  const data::Dataset items = open_items_for_model("csv:" + folder_.file("new.csv"), run, facts);
  EXPECT_THAT(values(items), testing::ElementsAre(static_cast<float>(facts.fill[0]), 4, 9,
                                                  static_cast<float>(facts.fill[1])));
}

TEST_F(Lacking, lines_can_be_left_out_and_predictions_keep_their_numbers) {
  const RunConfig run = config("drop", "x,y,k\n1,5,0\n,7,1\n3,2,1\n8,6,1\n");
  const RunData data = open_run_data(run);
  EXPECT_EQ(data.train.size() + data.validation->size(), 3);
  const data::Dataset items = open_items_for_model(run.data.source, run, data.facts);
  EXPECT_THAT(items.rows->numbers, testing::ElementsAre(0, 2, 3));
}

TEST_F(Lacking, values_are_refused_unless_somebody_said_what_they_mean) {
  EXPECT_THAT(message_of<ParseError>([&] { open_run_data(config("error", "x,k\n1,0\n,1\n")); }),
              HasSubstr("line 3, column 'x': an empty field in a column of numbers; data.missing"));
  RunConfig run = config("mean", "x,y,k\n1,,0\n2,,1\n3,1,1\n");
  run.data.subset = 2;  // without the line that has a value
  run.data.validation = "none";
  EXPECT_EQ(message_of<ValueError>([&] { open_run_data(run); }),
            "table.csv: column 1 of the data (from 0) has no value in the training set, so it has "
            "no mean (data.missing)");
}

TEST_F(Lacking, one_hot_columns_are_not_normalised) {
  RunConfig run = config("error", "c,x,k\nred,1,0\nblue,2,1\nred,3,1\ngreen,4,0\n");
  run.data.normalize = "auto";
  run.data.onehot = "*";
  run.data.validation = "none";
  const RunData data = open_run_data(run);
  EXPECT_EQ(data.facts.item, (Shape{4}));
  EXPECT_EQ(data.facts.mean, (std::vector<double>{0, 0, 0, 2.5}));
  EXPECT_EQ(data.facts.std[0], 1);
  tests::put_file(folder_.file("data.json"), facts_json(data.facts));
  EXPECT_EQ(read_facts(folder_.file("data.json")), data.facts);
}

}  // namespace
}  // namespace pantala::run
