// Cost tables under damage: a text is refused with a ParseError, or is a table by which any graph
// can be weighed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/estimate.h"
#include "schedule/schedule.h"
#include "support/random_graph.h"

namespace pantala::tests::cost_table_fuzz_test {
namespace {

using schedule::CostTable;

constexpr int kTrials = 20000;
constexpr std::string_view kValues[] = {
    "0",    "-0",  "-1",   "1",      "2",   "7",   "16",   "64",    "1e999",
    "nan",  "inf", "-inf", "5e-324", "0.5", "1e6", "4096", "65536", "9223372036854775807",
    "0x10", "",    "1e-3", "100"};
constexpr std::string_view kPieces[] = {
    "=", "\n", "#", "name", "row", " ", "\r", "1", "-", "\xff", std::string_view("\0", 1)};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A line gets another value, goes, or comes twice; or bytes change anywhere.
std::string damaged(const std::string& text, Random& random) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return text;
  const auto at = static_cast<std::size_t>(random.below(std::ssize(lines)));
  std::string& line = lines[at];
  switch (random.below(8)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      lines.push_back(line);
      break;
    case 2:
      line.insert(static_cast<std::size_t>(random.below(std::ssize(line) + 1)),
                  random.pick(kPieces));
      break;
    case 3:
      if (!line.empty())
        line[static_cast<std::size_t>(random.below(std::ssize(line)))] ^=
            static_cast<char>(1 << random.below(8));
      break;
    default:
      line = line.substr(0, line.find('=') + 1) + std::string(random.pick(kValues));
  }
  std::string result;
  for (const std::string& one : lines) result += one + "\n";
  if (random.below(16) == 0)
    result.resize(static_cast<std::size_t>(random.below(std::ssize(result))));
  return result;
}

Graph product_and_norm() {
  Graph g;
  const Tensor x = g.input("x", {48, 96}), w = g.parameter("w", {96, 80});
  g.output("y", softmax(matmul(x, w), 1));
  g.output("z", conv2d(g.input("image", {2, 8, 20, 20}), g.parameter("k", {16, 8, 3, 3})));
  return g;
}

double weighed(const Graph& graph, const CostTable& table) {
  const schedule::ArchetypeTable& archetypes = schedule::cpu::archetypes();
  const schedule::Decisions decisions =
      schedule::decide(lower(graph, archetypes), {archetypes, table.target},
                       {.workers = static_cast<int>(table.workers)});
  return schedule::estimate(decisions, archetypes, table).microseconds;
}

TEST(CostTableFuzz, damaged_texts_are_refused_or_are_tables) {
  const Graph graph = product_and_norm();
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    Random random(seed);
    std::string text = to_text(schedule::cpu::shipped_cost_table(seed % 2 == 0 ? 32 : 64));
    for (std::int64_t times = 1 + random.below(3); times > 0; --times) text = damaged(text, random);
    try {
      const CostTable table = schedule::parse_cost_table(text, "fuzz");
      ++accepted;
      ASSERT_EQ(to_text(schedule::parse_cost_table(to_text(table), "again")), to_text(table));
      const double microseconds = weighed(graph, table);
      ASSERT_TRUE(std::isfinite(microseconds) && microseconds > 0) << text;
    } catch (const ParseError&) {
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(accepted, kTrials / 50);
  EXPECT_LT(accepted, kTrials);
}

// Every number as small and as large as it may be.
TEST(CostTableFuzz, the_ends_of_all_ranges_can_be_weighed_with) {
  const Graph graph = product_and_norm();
  for (const schedule::CostField& field : schedule::cost_fields())
    for (const double value : {field.least, field.most}) {
      CostTable table = schedule::cpu::shipped_cost_table(32);
      table.*field.value = value;
      const double microseconds = weighed(graph, table);
      EXPECT_TRUE(std::isfinite(microseconds) && microseconds > 0) << field.name;
    }
}

}  // namespace
}  // namespace pantala::tests::cost_table_fuzz_test
