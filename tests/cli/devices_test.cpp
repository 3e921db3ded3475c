// pantala devices, and the environment variables that the command reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run.h"
#include "device/device.h"

namespace pantala::tests::devices_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(DevicesVerb, lists_one_device_a_line) {
  const Outcome outcome = run_pantala({"devices"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), device::devices_here().size() + 1);
  EXPECT_THAT(lines[0],
              testing::MatchesRegex("cpu       .+: .+, vectors of [0-9]+ bytes, caches of [0-9]+ "
                                    "[KM]iB, [0-9]+ [KM]iB and [0-9]+ [KM]iB, [0-9]+ workers?"));
  EXPECT_THAT(lines[1], testing::StartsWith("kir       the interpreter of kernels"));
  EXPECT_THAT(lines[2], testing::StartsWith("vulkan"));
  EXPECT_THAT(lines.back(), testing::StartsWith("ref       the reference interpreter"));
}

TEST(DevicesVerb, json_is_one_object_a_line) {
  const Outcome outcome = run_pantala({"devices", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  std::vector<std::string> names;
  for (const std::string& line : lines_of(outcome.out)) {
    const auto row = nlohmann::json::parse(line);
    names.push_back(row.at("name"));
    EXPECT_THAT(row.at("description").get<std::string>(), testing::Not(IsEmpty()));
    if (names.back() != "cpu") continue;
    EXPECT_THAT(row.at("vector_bytes").get<int>(), testing::AnyOf(16, 32, 64));
    for (const char* key :
         {"vector_registers", "l1_bytes", "l1_ways", "l2_bytes", "l3_bytes", "workers"})
      EXPECT_GT(row.at(key).get<std::int64_t>(), 0) << key;
    EXPECT_TRUE(row.at("fma").is_boolean());
    EXPECT_FALSE(row.at("processor").get<std::string>().empty());
  }
  std::vector<std::string> expected = device::devices_here();
  expected.emplace_back("ref");
  EXPECT_EQ(names, expected);
}

TEST(DevicesVerb, mistakes_are_answered) {
  const Outcome option = run_pantala({"devices", "--jsn"});
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_EQ(option.err, "pantala: unknown option '--jsn'; did you mean '--json'?\n");
  const Outcome surplus = run_pantala({"devices", "cpu"});
  EXPECT_EQ(surplus.exit_code, 2);
  EXPECT_EQ(surplus.err, "pantala: devices: unexpected argument 'cpu'\n");
  EXPECT_THAT(surplus.out, IsEmpty());
}

TEST(Command, an_unknown_log_level_is_a_mistake) {
  setenv("PANTALA_LOG", "warnign", 1);
  const Outcome outcome = run_pantala({"devices"});
  setenv("PANTALA_LOG", "debug", 1);
  const Outcome known = run_pantala({"devices"});
  unsetenv("PANTALA_LOG");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no log level 'warnign'; did you mean 'warning'?"));
  EXPECT_EQ(known.exit_code, 0);
}

}  // namespace
}  // namespace pantala::tests::devices_test
