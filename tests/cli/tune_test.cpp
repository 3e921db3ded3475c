// pantala tune, and verbs that take what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "io/file.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/cost_tables.h"
#include "support/temporary.h"

namespace pantala::tests::tune_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

class Tune : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("made/table.txt"), points_ = folder_.file("points.csv");
  Tune() { io::write_file(points_, "1,2,a\n3,4,b\n2,1,a\n4,3,b\n"); }

  // A damaged one, which every verb is to refuse.
  Outcome with_table(const std::string& text, std::vector<std::string> arguments) const {
    io::write_file(folder_.file("table"), text);
    arguments.insert(arguments.end(), {"--cost-table", folder_.file("table")});
    return run_pantala(arguments);
  }
};

TEST_F(Tune, writes_a_table_that_verbs_take) {
  const Outcome outcome = run_pantala({"tune", "--seconds", "0", "--out", file_, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result.at("file"), file_);
  EXPECT_GT(result.at("launches"), 20);
  for (const char* table : {"shipped", "tuned"}) {
    EXPECT_GT(result.at(table).at("rank_correlation"), 0.3) << table;
    EXPECT_GT(result.at(table).at("median_error"), 0) << table;
  }
  const std::string text = io::read_file(file_);
  const schedule::CostTable table = schedule::parse_cost_table(text, file_);
  EXPECT_TRUE(text.ends_with(to_text(table))) << "comments, and the form that all tables have";
  EXPECT_EQ(result.at("digest"), hex(digest_of(table)));
  for (const Json& constant : result.at("constants"))
    for (const schedule::CostField& field : schedule::cost_fields())
      if (constant.at("name") == field.name)
        EXPECT_EQ(constant.at("tuned"), table.*field.value) << field.name;

  const Outcome bench =
      run_pantala({"bench", "mlp32", "--seconds", "0", "--json", "--cost-table", file_});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  const Outcome inspect =
      run_pantala({"inspect", "mlp", "--report", "--json", "--cost-table", file_});
  EXPECT_EQ(inspect.exit_code, 0) << inspect.err;
  EXPECT_THAT(inspect.out, HasSubstr("\"tuned\""));
  EXPECT_EQ(run_pantala({"explain", "mlp", "--cost-table", file_}).exit_code, 0);

  const Outcome train =
      run_pantala({"train", "--model", "mlp", "--data", "csv:" + points_, "--epochs", "1", "--set",
                   "data.validation=none", "--batch-size", "2", "--progress", "none", "--out",
                   folder_.file("run"), "--cost-table", file_});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_EQ(io::read_file(folder_.file("run/cost-table.txt")), to_text(table));
}

TEST_F(Tune, its_place_is_the_users_folder_and_it_says_how_to_use_it) {
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1), 0);
  const Outcome outcome = run_pantala({"tune", "--seconds", "0"});
  ASSERT_EQ(::unsetenv("XDG_CONFIG_HOME"), 0);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string file = folder_.file("pantala/cost-table.txt");
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("memory_byte"), HasSubstr("rank correlation"),
                    HasSubstr("It is not used by itself"), HasSubstr("--cost-table " + file)));
}

TEST_F(Tune, a_place_that_is_none_is_told_before_anything_is_measured) {
  const Outcome outcome = run_pantala({"tune", "--out", folder_.path().string()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("this is a folder; name a file"));
}

TEST_F(Tune, verbs_refuse_a_damaged_table) {
  const std::string whole = to_text(schedule::cpu::shipped_cost_table(32));
  const std::vector<std::vector<std::string>> verbs = {
      {"bench", "mlp32", "--seconds", "0"},
      {"inspect", "mlp"},
      {"explain", "mlp"},
      {"train", "--model", "mlp", "--data", "csv:" + points_, "--dry-run"},
  };
  for (const std::vector<std::string>& verb : verbs) {
    const Outcome cut = with_table(whole.substr(0, whole.find("conv = ")), verb);
    EXPECT_EQ(cut.exit_code, 2) << verb[0];
    EXPECT_THAT(cut.err, HasSubstr("the line `conv = ...` is missing")) << verb[0];
  }
  EXPECT_THAT(with_table(whole + "rows = 3\n", verbs[0]).err,
              HasSubstr("a cost table has no \"rows\"; did you mean 'row'?"));
  const Outcome missing = run_pantala({"bench", "mlp32", "--cost-table", folder_.file("none")});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("No such file"));
}

}  // namespace
}  // namespace pantala::tests::tune_test
