// What several kernels would compute again because it is cheap, as stored: the same bits, and taken
// where the estimate says that it pays.
#include "search/storing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/options.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/schedule.h"
#include "support/compiled.h"
#include "support/fill.h"

namespace pantala::search::storing_test {
namespace {

using ::testing::IsEmpty;

// a * b + c, which is cheap to compute again, read by reductions that share no kernel.
struct Reductions {
  Graph graph;
  explicit Reductions(std::int64_t size) {
    const Shape shape{size, size, size};
    const Tensor x = graph.input("a", shape) * graph.input("b", shape) + graph.input("c", shape);
    for (const std::vector<std::int64_t>& axes :
         std::vector<std::vector<std::int64_t>>{{2}, {1, 2}, {0}, {1}, {0, 1}})
      graph.output(fmt::format("sum{}", graph.outputs().size()), sum(x, axes));
  }
};

Options search_options() {
  const schedule::ArchetypeTable& archetypes = compiler::backend_of("cpu").archetypes({});
  static const schedule::CostTable& table = schedule::cpu::shipped_cost_table(64);
  return {.archetypes = archetypes, .table = table};
}

Judged judged(const Graph& graph) {
  const Options options = search_options();
  Scales scales(options);
  return scales.judge(scales.lowered(graph));
}

std::vector<std::string> names_of(const std::vector<Repeated>& kinds) {
  std::vector<std::string> names;
  for (const Repeated& kind : kinds) names.push_back(kind.name);
  return names;
}

TEST(Storing, finds_the_last_of_what_several_kernels_compute) {
  const std::vector<Repeated> kinds = computed_by_several(judged(Reductions(32).graph));
  ASSERT_EQ(names_of(kinds), std::vector<std::string>{"add f32[32,32,32]"});
  EXPECT_EQ(kinds[0].nodes.size(), 1u);
  EXPECT_EQ(kinds[0].bytes, 4 * std::int64_t{32 * 32 * 32} * 4);
}

TEST(Storing, what_is_kept_is_made_once) {
  const Judged before = judged(Reductions(32).graph);
  const std::vector<Repeated> kinds = computed_by_several(before);
  const Judged after = judged(with_kept(before.graph(), kinds.at(0).nodes));
  EXPECT_THAT(computed_by_several(after), IsEmpty());
  EXPECT_GT(after.peak(), before.peak());
}

TEST(Storing, is_chosen_where_it_pays) {
  const Options options = search_options();
  Scales scales(options);
  // Three large tensors are read five times, or once; beside another that takes memory, as in a
  // step where one more is not much.
  Graph reductions = Reductions(256).graph;
  const Tensor dear = gelu(reductions.input("u", {1024, 256, 256}));
  reductions.output("first", sum(dear, {0}));
  reductions.output("last", sum(dear, {2}));
  const Outcome large = search(scales.lowered(reductions), options);
  ASSERT_EQ(large.stored.size(), 1u);
  EXPECT_EQ(large.stored[0].values, "add f32[256,256,256]");
  const auto storing = std::ranges::find(large.candidates, "storing", &Candidate::name);
  ASSERT_NE(storing, large.candidates.end());
  EXPECT_LT(storing->microseconds, large.candidates[0].microseconds);
  EXPECT_LE(large.candidates[large.chosen].microseconds, storing->microseconds);
  // One is read twice, and would have to be written first.
  Graph graph;
  const Tensor x = graph.input("x", {256, 256, 256}) + 1;
  graph.output("rows", sum(x, {2}));
  graph.output("columns", sum(x, {0}));
  const Outcome small = search(scales.lowered(graph), options);
  EXPECT_THAT(small.stored, IsEmpty());
}

TEST(Storing, a_limit_of_memory_that_is_kept_changes_nothing) {
  Options options = search_options();
  Scales scales(options);
  Graph reductions = Reductions(256).graph;
  const Tensor dear = gelu(reductions.input("u", {1024, 256, 256}));
  reductions.output("first", sum(dear, {0}));
  reductions.output("last", sum(dear, {2}));
  const Graph lowered = scales.lowered(reductions);
  const Outcome free = search(lowered, options);
  ASSERT_FALSE(free.stored.empty());
  options.memory_limit = free.candidates[free.chosen].peak_bytes;
  const Outcome limited = search(lowered, options);
  EXPECT_EQ(to_text(limited.graph), to_text(free.graph));
  EXPECT_EQ(limited.stored.size(), free.stored.size());
  --options.memory_limit;
  EXPECT_NE(to_text(search(lowered, options).graph), to_text(free.graph));
}

TEST(Storing, a_limit_of_memory_comes_first) {
  Options options = search_options();
  Scales scales(options);
  options.memory_limit = 1;
  EXPECT_THAT(search(scales.lowered(Reductions(256).graph), options).stored, IsEmpty());
}

TEST(Storing, bits_are_the_same) {
  const Reductions given(16);
  const Options options = search_options();
  const Graph lowered = Scales(options).lowered(given.graph);
  const Graph kept = with_kept(lowered, computed_by_several(judged(lowered)).at(0).nodes);
  ref::Bindings inputs;
  for (const char* name : {"a", "b", "c"}) inputs.emplace(name, tests::fill(name, {16, 16, 16}, 1));
  const std::vector<Literal> expected = tests::run_compiled(lowered, inputs);
  for (const char* device : {"cpu", "kir"})
    for (const bool fuse : {true, false})
      EXPECT_EQ(tests::differing_bits(
                    expected, tests::run_compiled(kept, inputs, {.device = device, .fuse = fuse})),
                "");
}

TEST(Storing, all_results_of_an_op_are_kept) {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3, 8, 8});
  const auto [values, places] = max_pool2d_with_indices(x, {2, 2});
  graph.output("values", values);
  graph.output("places", places);
  const Graph lowered = Scales(search_options()).lowered(graph);
  std::vector<std::uint32_t> pools;
  for (std::uint32_t id = 0; id < lowered.data()->nodes().size(); ++id)
    if (lowered.data()->node(id).op->name == "max_pool2d") pools.push_back(id);
  ASSERT_EQ(pools.size(), 1u);
  const ref::Bindings inputs{{"x", tests::fill("x", {2, 3, 8, 8}, 1)}};
  EXPECT_EQ(tests::differing_bits(tests::run_compiled(lowered, inputs),
                                  tests::run_compiled(with_kept(lowered, pools), inputs)),
            "");
}

}  // namespace
}  // namespace pantala::search::storing_test
