// Deciding on its own: groups, storage and orders of summation without a kernel being built.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ops/contract.h"
#include "ops/face.h"
#include "ops/reduce.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "schedule/context.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "support/errors.h"
#include "support/random_graph.h"

namespace pantala::schedule::decide_test {
namespace {

using testing::ElementsAre;
using tests::message_of;

Machine machine() { return {cpu::archetypes(), {.vector_bytes = 32}}; }

Decisions decided(const Graph& graph, bool fuse = true) {
  return decide(lower(graph, cpu::archetypes()), machine(), {.fuse = fuse});
}

std::vector<std::string_view> archetypes_of(const Decisions& decisions) {
  std::vector<std::string_view> names;
  for (const Group& group : decisions.groups) names.push_back(group.archetype->name);
  return names;
}

// The only node of a lowered graph with the op.
template <class Face>
std::uint32_t node_of(const Graph& lowered) {
  const auto& nodes = lowered.data()->nodes();
  for (std::uint32_t id = 0; id < nodes.size(); ++id)
    if (ops::is<Face>(nodes[id])) return id;
  throw InternalError("no such node");
}

template <class Face>
ReductionOrder order_of(const Graph& graph) {
  const Graph lowered = lower(graph, cpu::archetypes());
  const Context context(lowered, machine(), {});
  const std::uint32_t node = node_of<Face>(lowered);
  return cpu::archetypes().find(*context.node(node).op)->reduction_order(context, node);
}

Graph layer(std::int64_t k, bool with_activation) {
  Graph g;
  const Tensor x = g.input("x", {8, k}), w = g.parameter("w", {16, k});
  const Tensor y = matmul(x, transpose(w));
  g.output("y", with_activation ? relu(y + 1.0) : y);
  return g;
}

TEST(Decide, names_the_archetype_of_every_group) {
  Graph g = layer(12, true);
  g.output("rows", sum(g.output("y"), {1}));
  EXPECT_THAT(archetypes_of(decided(g)), ElementsAre("contract", "reduce"));
}

TEST(Decide, gives_every_op_a_group_of_its_own_without_fusion) {
  EXPECT_THAT(archetypes_of(decided(layer(12, true))), ElementsAre("contract"));
  EXPECT_THAT(archetypes_of(decided(layer(12, true), false)),
              ElementsAre("map", "contract", "map", "map"));
}

// A layer of attention: heads are parted and joined again by moves alone.
Graph attention_layer() {
  Graph g;
  const Tensor x = g.input("x", {2, 20, 24});
  const auto projected = [&](const char* name, const Tensor& from) {
    return matmul(from, g.parameter(name, {24, 24})) + g.parameter(std::string(name) + ".b", {24});
  };
  const auto heads = [&](const char* name) {
    return permute(reshape(projected(name, x), {2, 20, 3, 8}), {0, 2, 1, 3});
  };
  const Tensor mixed = attention(heads("q"), heads("k"), heads("v"));
  g.output("y", projected("o", reshape(permute(mixed, {0, 2, 1, 3}), {2, 20, 24})));
  return g;
}

TEST(Decide, lets_attention_read_and_leave_heads_where_products_have_them) {
  EXPECT_THAT(archetypes_of(decided(attention_layer())),
              ElementsAre("contract", "contract", "contract", "attention", "contract"));
}

TEST(Decide, stores_what_other_groups_read_and_nothing_else) {
  Graph g = layer(12, true);
  g.output("rows", sum(g.output("y"), {1}));
  std::set<std::string> names;
  for (const ProgramBuffer& buffer : decided(g).buffers) names.insert(buffer.name);
  EXPECT_THAT(names, ElementsAre("rows", "w", "x", "y"));
}

// All that was decided, as text.
std::string described(const Decisions& decisions) {
  std::string text;
  for (const Group& group : decisions.groups) {
    text += fmt::format("{} {} {}:", group.archetype->name, fmt::join(group.anchors, ","),
                        group.is_copy);
    for (const GroupOutput& output : group.outputs)
      text += fmt::format(" {}.{}->{}", output.value.node, output.value.result, output.buffer);
    text += '\n';
  }
  for (const ProgramBuffer& buffer : decisions.buffers)
    text += fmt::format("{} {} {}\n", buffer.name, fmt::join(buffer.order, ","), buffer.limit);
  for (const StatusMessage& message : decisions.messages)
    text += fmt::format("{} {}\n", message.code, message.text);
  return text;
}

TEST(Decide, what_other_graphs_have_shown_changes_nothing) {
  DecisionMemo memo;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Graph graph = lower(tests::random_graph(seed).graph, cpu::archetypes());
    const std::string alone = described(decide(graph, machine(), {}));
    EXPECT_EQ(described(decide(graph, machine(), {}, memo)), alone) << seed;
    EXPECT_EQ(described(decide(graph, machine(), {}, memo)), alone) << seed;
  }
}

TEST(Decide, can_be_built_any_number_of_times) {
  const Decisions decisions = decided(layer(12, true));
  const Program once = build(decisions, machine()), again = build(decisions, machine());
  ASSERT_EQ(once.kernels.size(), 1u);
  ASSERT_EQ(again.kernels.size(), 1u);
  EXPECT_TRUE(kir::same_code(once.kernels[0], again.kernels[0]));
  EXPECT_EQ(decisions.groups.size(), 1u);
}

TEST(Decide, order_of_summation_depends_on_the_op_and_its_sizes_alone) {
  EXPECT_EQ(order_of<op::Contract>(layer(5000, true)), order_of<op::Contract>(layer(5000, false)));
  EXPECT_NE(order_of<op::Contract>(layer(5000, true)), order_of<op::Contract>(layer(1, true)));
}

TEST(Decide, order_of_summation_tells_archetypes_apart) {
  Graph g;
  g.output("y", sum(g.input("x", {8, 12}), {1}));
  EXPECT_EQ(order_of<op::Sum>(g).archetype, "reduce");
  EXPECT_EQ(order_of<op::Contract>(layer(12, false)).archetype, "contract");
}

TEST(ArchetypeTable, refuses_an_op_in_two_rows) {
  const Archetype map{.name = "map"}, first{.name = "first", .ops = {&ops::def<op::Sum>()}},
      second{.name = "second", .ops = {&ops::def<op::Sum>()}};
  EXPECT_EQ(message_of<InternalError>([&] { ArchetypeTable(map, {&first, &second}); }),
            "schedule: 'sum' is anchored by the archetypes 'first' and 'second'");
}

TEST(ArchetypeTable, finds_anchors_maps_and_nothing_for_leaves_and_composites) {
  const ArchetypeTable& table = cpu::archetypes();
  EXPECT_EQ(table.find(ops::table().get("amax"))->name, "reduce");
  EXPECT_EQ(table.find(ops::table().get("exp")), &table.map());
  EXPECT_EQ(table.find(ops::table().get("softmax")), nullptr);
  EXPECT_FALSE(table.keeps(ops::table().get("softmax")));
  Graph g;
  const Tensor x = g.input("x", {2});
  const ir::OpDef& leaf = *g.data()->node(x.id().node).op;
  EXPECT_EQ(table.find(leaf), nullptr);
  EXPECT_TRUE(table.keeps(leaf));
}

}  // namespace
}  // namespace pantala::schedule::decide_test
