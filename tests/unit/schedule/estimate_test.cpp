// The estimate of what decisions cost: from the decisions and the table alone.
#include "schedule/estimate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/table.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/schedule.h"
#include "support/errors.h"
#include "support/random_graph.h"

namespace pantala::schedule::estimate_test {
namespace {

using ::testing::HasSubstr;

const CostTable& table() { return cpu::shipped_cost_table(32); }

Decisions decided(const Graph& graph) {
  return decide(lower(graph, cpu::archetypes()), {cpu::archetypes(), table().target});
}
Estimate estimated(const Graph& graph) {
  return estimate(decided(graph), cpu::archetypes(), table());
}

TEST(Estimate, charges_the_rows_that_a_gather_takes_and_not_the_table) {
  Graph g;
  const Tensor rows = g.input("rows", {128}, i64);
  const Tensor words = g.parameter("words", {50000, 64});
  g.output("y", embedding(words, rows));
  const Estimate e = estimated(g);
  EXPECT_EQ(e.launches, 1);
  EXPECT_LT(e.bytes, 3 * 128 * 64 * 4 + 128 * 8);
}

TEST(Estimate, charges_an_update_in_place_for_reading_and_writing) {
  Graph g;
  const Tensor p = g.parameter("p", {1024, 1024});
  g.update(p, p * 0.5);
  EXPECT_EQ(estimated(g).bytes, 2.0 * 1024 * 1024 * 4);
}

TEST(Estimate, grows_with_the_work) {
  const auto product = [](std::int64_t n) {
    Graph g;
    g.output("y", matmul(g.input("a", {n, n}), g.input("b", {n, n})));
    return estimated(g).microseconds;
  };
  EXPECT_GT(product(256), 4 * product(128));
  EXPECT_LT(product(256), 16 * product(128));
}

TEST(Estimate, charges_what_is_read_to_the_kernel_that_reads_it) {
  Graph g;
  g.output("y", sum(g.input("x", {1 << 24})));
  const Estimate e = estimated(g);
  ASSERT_EQ(e.launches, 2);  // blocks, and what they give
  const std::vector<KernelCost>& kernels = e.groups.at(0).kernels;
  EXPECT_GT(kernels[0].memory, 100 * kernels[1].memory);
}

TEST(Estimate, charges_the_memory_that_kernels_of_a_group_pass_on) {
  Graph g;
  const Tensor x = g.input("x", {8, 128, 28, 28}), w = g.parameter("w", {128, 128, 3, 3});
  g.output("y", ops::apply("convolution", {x, w},
                           {{"stride", ir::Ints{1, 1}},
                            {"padding", ir::Ints{1, 1}},
                            {"dilation", ir::Ints{1, 1}},
                            {"groups", std::int64_t{1}},
                            {"algorithm", std::string("winograd4")}})[0]);
  const Estimate e = estimated(g);
  ASSERT_EQ(e.groups.at(0).kernels.size(), 3U);  // weights are transformed by the second one
  const auto bytes = static_cast<double>(w.shape().numel() * 4);
  const double reading = bytes * table().memory_byte / table().workers / table().cycles_us;
  EXPECT_GT(e.groups[0].kernels[1].memory, 2 * reading);
}

TEST(Estimate, knows_what_is_alive_together) {
  Graph g;
  const Tensor x = g.input("x", {1024});
  // Sums of all elements: what they add up must be stored.
  const Tensor a = cumsum(x, 0), b = cumsum(a, 0), c = cumsum(b, 0);
  g.output("y", cumsum(c, 0));
  EXPECT_EQ(estimated(g).peak_bytes, 2 * 1024 * 4);
}

// What was found out about other graphs changes nothing.
TEST(Estimate, is_the_same_with_a_memory_of_other_graphs) {
  EffortMemo memo;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Decisions d = decided(tests::random_graph(seed, {.steps = 8}).graph);
    const Estimate alone = estimate(d, cpu::archetypes(), table());
    const Estimate shared = estimate(d, cpu::archetypes(), table(), memo);
    ASSERT_EQ(alone.microseconds, shared.microseconds) << seed;
    ASSERT_EQ(alone.bytes, shared.bytes) << seed;
    ASSERT_EQ(alone.peak_bytes, shared.peak_bytes) << seed;
    ASSERT_EQ(alone.groups.size(), shared.groups.size()) << seed;
  }
}

TEST(CostTable, is_read_back_from_its_text) {
  for (const int bytes : {32, 64}) {
    const CostTable& shipped = cpu::shipped_cost_table(bytes);
    const CostTable read = parse_cost_table(to_text(shipped), "table");
    EXPECT_EQ(to_text(read), to_text(shipped));
    EXPECT_EQ(digest_of(read), digest_of(shipped));
    EXPECT_EQ(read.target, shipped.target);
  }
  EXPECT_NE(digest_of(cpu::shipped_cost_table(32)), digest_of(cpu::shipped_cost_table(64)));
}

TEST(CostTable, refuses_what_is_none) {
  const std::string good = to_text(table());
  const auto message = [](const std::string& text) {
    return tests::message_of<ParseError>([&] { parse_cost_table(text, "my.table"); });
  };
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(message(""), "my.table: the line `name = ...` is missing");
  EXPECT_EQ(message(good.substr(0, good.find("row = "))),
            "my.table: the line `row = ...` is missing");
  EXPECT_EQ(message("# mine\nraw = 1\n"),
            "my.table:2: a cost table has no \"raw\"; did you mean 'row'?");
  EXPECT_THAT(message(good + "speed = 1\n"), HasSubstr("a cost table has no \"speed\""));
  EXPECT_THAT(message(good + "row = 1\n"), HasSubstr("'row' stands there twice"));
  EXPECT_THAT(message("what\n"), HasSubstr("my.table:1: expected `name = value`"));
  for (const char* bad : {"-1", "nan", "inf", "1e9", "0", "", "1 2", "0x10", "1e999"})
    EXPECT_THAT(
        message(changed(fmt::format("row = {}", table().row), std::string("row = ") + bad)),
        HasSubstr(fmt::format(": row must be a number from 0.5 to 10000, got \"{}\"", bad)));
  EXPECT_THAT(message(changed("l1_ways = 8", "l1_ways = 1.5")), HasSubstr("a whole number from 1"));
  EXPECT_THAT(message(changed("workers = 2", "workers = 2.5")), HasSubstr("a whole number from 1"));
  EXPECT_THAT(message(changed("vector_bytes = 32", "vector_bytes = 48")),
              HasSubstr("power of two"));
  EXPECT_THAT(message(changed("name = avx2", "name = a b")), HasSubstr("name must be a word"));
  EXPECT_THAT(message(changed("name = avx2", "name = " + std::string(65, 'a'))),
              HasSubstr("name must be a word of at most 64 characters"));
}

TEST(CostTable, those_that_are_shipped_are_within_the_ranges) {
  for (const int bytes : {32, 64})
    for (const CostField& field : cost_fields()) {
      const double value = cpu::shipped_cost_table(bytes).*field.value;
      EXPECT_LT(field.least, field.most) << field.name;
      EXPECT_TRUE(field.least <= value && value <= field.most) << field.name;
    }
}

}  // namespace
}  // namespace pantala::schedule::estimate_test
