// pantala fixtures: what is run, what is printed, exit codes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run.h"
#include "io/file.h"
#include "io/json.h"
#include "support/temporary.h"

namespace pantala::tests::fixtures_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A copy of the recorded ops in which one piece of ops.json was replaced.
class Tampered {
 public:
  Tampered(const std::string& from, const std::string& to) {
    for (const auto& entry : std::filesystem::directory_iterator(PANTALA_FIXTURES_DIR))
      if (entry.path().filename().string().starts_with("ops"))
        std::filesystem::copy(entry.path(), folder_);
    std::string text = io::read_file(folder_ / "ops.json");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    io::write_file(folder_ / "ops.json", text.replace(at, from.size(), to));
  }
  std::string folder() const { return folder_.string(); }

 private:
  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

std::size_t cases_in(const char* file) {
  const io::Json all = io::read_json(std::filesystem::path(PANTALA_FIXTURES_DIR) / file);
  return all.is_array() ? all.size() : all.at("cases").size();
}

TEST(RecordedTruths, are_as_many_as_the_readme_says) {
  const std::filesystem::path folder = PANTALA_FIXTURES_DIR;
  const io::Json ops = io::read_json(folder / "ops.json").at("cases");
  const auto with_gradients = std::ranges::count_if(ops, [](const io::Json& one) {
    return std::ranges::any_of(one.at("inputs"),
                               [](const io::Json& input) { return input.contains("gradient"); });
  });
  const auto models =
      std::ranges::count_if(std::filesystem::directory_iterator(folder / "models"),
                            [](const auto& file) { return file.path().extension() == ".json"; });
  EXPECT_THAT(
      io::read_file(PANTALA_SOURCE_DIR "/README.md"),
      HasSubstr(fmt::format("{} op cases ({} with gradients), {} cases of layers and newer ops, {} "
                            "optimizers, {} rate schedules and {} models",
                            ops.size(), with_gradients, cases_in("layers.json"),
                            cases_in("optimizers.json"), cases_in("schedules.json"), models)));
}

TEST(FixturesVerb, ends_with_the_counts) {
  const Outcome outcome = run_pantala(
      {"fixtures", PANTALA_FIXTURES_DIR, "--device", "ref", "--filter", "ops/relu,ops/add.0"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "4 passed, 0 failed\n");
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(FixturesVerb, a_failure_tells_case_tensor_error_index_and_both_values) {
  const Tampered tampered(R"("op":"sin")", R"("op":"cos")");
  const Outcome outcome = run_pantala({"fixtures", tampered.folder(), "--filter", "ops/sin"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("FAILED ops/sin.0: output 0: error 1.42 (bound 2e-07) at [4]: "
                                     "expected 0.6756473183631897, got -0.737"));
  EXPECT_THAT(outcome.out, HasSubstr("FAILED ops/sin.0: gradient of input 0: error "));
  EXPECT_EQ(outcome.last_line(), "2 passed, 1 failed");
}

TEST(FixturesVerb, a_case_that_cannot_be_run_has_failed) {
  const Tampered tampered(R"("op":"sin")", R"("op":"sine")");
  const Outcome outcome = run_pantala({"fixtures", tampered.folder(), "--filter", "ops/sin"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("FAILED ops/sin.0: there is no op 'sine'; did you mean 'sin'?"));
  EXPECT_EQ(outcome.last_line(), "2 passed, 1 failed");
}

TEST(FixturesVerb, a_wrong_attribute_is_seen) {
  const Tampered tampered(R"("window":6)", R"("window":5)");
  EXPECT_EQ(run_pantala({"fixtures", tampered.folder(), "--filter", "ops/attention"}).last_line(),
            "6 passed, 1 failed");
}

TEST(FixturesVerb, json_is_one_object_a_line) {
  const Outcome outcome =
      run_pantala({"fixtures", PANTALA_FIXTURES_DIR, "--filter", "ops/relu", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  std::istringstream lines(outcome.out);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 4u);
  EXPECT_EQ(objects[0].at("case"), "ops/relu.0");
  EXPECT_EQ(objects[0].at("passed"), true);
  EXPECT_EQ(objects[3].at("passed"), 3);
  EXPECT_EQ(objects[3].at("failed"), 0);
  EXPECT_EQ(outcome.err, "3 passed, 0 failed\n");
}

TEST(FixturesVerb, a_filter_without_a_case_is_a_mistake) {
  const Outcome outcome =
      run_pantala({"fixtures", PANTALA_FIXTURES_DIR, "--filter", "ops/relu,ops/softmx.0"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "pantala: no case starts with 'ops/softmx.0'; did you mean 'ops/softmax.0'?\n");
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(FixturesVerb, unknown_device_lists_the_devices) {
  const Outcome outcome = run_pantala({"fixtures", PANTALA_FIXTURES_DIR, "--device", "gpu"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: there is no device 'gpu'; devices: ref, cpu, kir, vulkan\n");
}

TEST(FixturesVerb, a_folder_without_cases_is_a_mistake) {
  const Outcome outcome = run_pantala({"fixtures", PANTALA_SOURCE_DIR "/tools"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no recorded cases here"));
}

TEST(FixturesVerb, optimizers_schedules_and_models_have_names_too) {
  EXPECT_EQ(run_pantala({"fixtures", PANTALA_FIXTURES_DIR, "--filter", "optimizers/"}).last_line(),
            "15 passed, 0 failed");
  EXPECT_EQ(run_pantala({"fixtures", PANTALA_FIXTURES_DIR, "--filter", "schedules/,models/mlp"})
                .last_line(),
            "10 passed, 0 failed");
}

TEST(FixturesVerb, a_model_that_the_zoo_lacks_is_neither_passed_nor_failed_unless_asked_for) {
  const TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  std::filesystem::create_directories(folder / "models");
  std::filesystem::copy(PANTALA_FIXTURES_DIR "/models/mlp.json", folder / "models",
                        std::filesystem::copy_options::overwrite_existing);
  io::write_file(folder / "models/perceiver.json", "{}");

  const Outcome all = run_pantala({"fixtures", folder.string()});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.out, "not available: models/perceiver\n1 passed, 0 failed\n");
  EXPECT_EQ(run_pantala({"fixtures", folder.string(), "--filter", "models/"}).out, all.out);
  const Outcome one = run_pantala({"fixtures", folder.string(), "--filter", "models/perceiver"});
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_EQ(one.out,
            "FAILED models/perceiver: the zoo has no model 'perceiver'\n0 passed, 1 failed\n");
}

TEST(FixturesVerb, a_damaged_file_is_a_mistake) {
  const Tampered tampered(R"("cases":[)", R"("cases":[[)");
  const Outcome outcome = run_pantala({"fixtures", tampered.folder()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, StartsWith("pantala: " + tampered.folder() + "/ops.json: "));
}

}  // namespace
}  // namespace pantala::tests::fixtures_test
