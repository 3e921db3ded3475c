// What groups compute and move, from the decisions: bytes are those that really move.
#include "schedule/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "schedule/contents.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"

namespace pantala::schedule::work_test {
namespace {

using testing::ElementsAre;

Machine machine() { return {cpu::archetypes(), {.vector_bytes = 32}}; }

Decisions decided(const Graph& graph) {
  return decide(lower(graph, cpu::archetypes()), machine(), {});
}

// The work of a graph that is one group.
Work work(const Graph& graph) {
  const std::vector<Work> all = work_of(decided(graph), machine(), {});
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

// What the group does to the buffer of this name.
MemoryUse use_of(const Graph& graph, const std::string& name, bool is_write = false) {
  const Decisions decisions = decided(graph);
  const Work all = work(graph);
  for (const MemoryUse& use : all.uses)
    if (decisions.buffers[use.buffer].name == name && use.is_write == is_write) return use;
  ADD_FAILURE() << "nothing uses " << name;
  return {};
}

Program built(const Graph& graph) { return build(decided(graph), machine()); }

TEST(Work, of_a_gather_is_the_rows_that_are_chosen) {
  Graph g;
  const Tensor table = g.parameter("table", {50000, 64}), index = g.input("index", {128}, i64);
  g.output("rows", take(table, index));
  const MemoryUse use = use_of(g, "table");
  EXPECT_EQ(use.elements, 128 * 64);
  EXPECT_EQ(use.bytes, 128 * 64 * 4);
  EXPECT_EQ(use.stride, Stride::unit);  // elements of a row are neighbours
  EXPECT_EQ(work(g).read_bytes(), 128 * 64 * 4 + 128 * 8);
  EXPECT_EQ(work(g).written_bytes(), 128 * 64 * 4);
  ASSERT_EQ(built(g).launches.size(), 1u);
  EXPECT_EQ(built(g).launches[0].read_bytes, 128 * 64 * 4 + 128 * 8);
}

TEST(Work, of_single_elements_from_memory_is_a_cache_line_each) {
  Graph g;
  const Tensor table = g.parameter("table", {50000}), index = g.input("index", {128}, i64);
  g.output("elements", take(table, index));
  EXPECT_EQ(use_of(g, "table").elements, 128);
  EXPECT_EQ(use_of(g, "table").bytes, 128 * 64);
  EXPECT_EQ(use_of(g, "table").stride, Stride::gathered);
}

TEST(Work, of_sums_by_columns_jumps_from_line_to_line) {
  const auto summed = [](std::int64_t axis) {
    Graph g;
    g.output("y", sum(g.input("x", {512, 256}), {axis}, false));
    return use_of(g, "x");
  };
  EXPECT_TRUE(summed(0).jumps);
  EXPECT_FALSE(summed(1).jumps);
  EXPECT_EQ(summed(0).bytes, 512 * 256 * 4);
}

TEST(Work, of_the_gradients_of_attention_is_told_apart_by_kernel) {
  Graph g;
  const Shape heads{1, 2, 32, 16};
  const Tensor q = g.input("q", heads), k = g.input("k", heads), v = g.input("v", heads);
  const Tensor loss = sum(square(attention(q, k, v)));
  const Gradients found = differentiate(g, loss, {q, k, v});
  const Graph graph = found.graph.with_outputs(
      {{"dq", found.gradients[0]}, {"dk", found.gradients[1]}, {"dv", found.gradients[2]}});
  const Decisions decisions = decided(graph);
  const std::vector<Work> all = work_of(decisions, machine(), {});
  std::set<std::string> of_dots;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (decisions.groups[n].anchors.size() == 1 &&
        decisions.graph->data()->node(decisions.groups[n].anchors[0]).op->name == "attention_grad")
      for (const MemoryUse& use : all[n].uses) {
        EXPECT_NE(use.kernel, kEveryKernel);
        if (use.kernel == 0) of_dots.insert(decisions.buffers[use.buffer].name);
      }
  EXPECT_EQ(of_dots.size(), 2u);  // the gradient and what came out
  EXPECT_FALSE(of_dots.contains("q"));
}

TEST(Work, of_a_slice_is_the_slice) {
  Graph g;
  const Tensor packed = g.input("packed", {16, 3 * 64});
  g.output("keys", relu(slice(packed, {0, 64}, {16, 128})));
  EXPECT_EQ(use_of(g, "packed").bytes, 16 * 64 * 4);
  EXPECT_EQ(use_of(g, "packed").stride, Stride::unit);
}

TEST(Work, of_elements_that_lie_apart_is_what_lies_between_them_too) {
  Graph g;
  const Tensor x = g.input("x", {1024});
  g.output("y", relu(slice(x, {0}, {1024}, {4})));
  EXPECT_EQ(use_of(g, "x").elements, 256);
  EXPECT_EQ(use_of(g, "x").bytes, 256 * 16);
  EXPECT_EQ(use_of(g, "x").stride, Stride::strided);
}

TEST(Work, of_an_update_in_place_is_a_read_and_a_write) {
  Graph g;
  const Tensor state = g.state("state", {1000});
  g.update(state, state * 0.5 + g.input("x", {1000}));
  EXPECT_EQ(use_of(g, "state").bytes, 4000);
  EXPECT_EQ(use_of(g, "state", true).bytes, 4000);
  EXPECT_EQ(work(g).read_bytes(), 8000);
  EXPECT_EQ(built(g).launches.at(0).written_bytes, 4000);
}

TEST(Work, of_a_window_that_is_updated_in_place_is_the_window) {
  Graph g;
  const Tensor cache = g.state("cache", {512, 8});
  const Tensor at = g.input("at", {}, i64);
  g.update(cache, update_slice(cache, g.input("x", {2, 8}), at, 0));
  EXPECT_EQ(work(g).written_bytes(), 2 * 8 * 4);
}

TEST(Work, of_a_value_that_is_broadcast_counts_it_once) {
  Graph g;
  g.output("y", g.input("x", {32, 128}) + g.parameter("bias", {128}));
  EXPECT_EQ(use_of(g, "bias").elements, 128);
  EXPECT_EQ(use_of(g, "bias").accesses, 32 * 128);
  EXPECT_EQ(use_of(g, "bias").bytes, 128 * 4);
}

TEST(Work, of_a_transposed_read_is_whole_and_strided) {
  Graph g;
  g.output("y", relu(transpose(g.input("x", {48, 80}))));
  EXPECT_EQ(use_of(g, "x").bytes, 48 * 80 * 4);
  EXPECT_EQ(use_of(g, "x").stride, Stride::strided);
  EXPECT_EQ(use_of(g, "y", true).stride, Stride::unit);
}

TEST(Work, of_a_concatenation_is_every_operand_once) {
  Graph g;
  const Tensor a = g.input("a", {3, 16}), b = g.input("b", {5, 16});
  g.output("y", concat({a, b}));
  EXPECT_EQ(use_of(g, "a").bytes, 3 * 16 * 4);
  EXPECT_EQ(use_of(g, "b").bytes, 5 * 16 * 4);
}

TEST(Work, of_a_pool_is_its_input_once) {
  for (const std::int64_t window : {2, 8}) {  // unrolled, and as a loop
    Graph g;
    g.output("y", max_pool2d(g.input("x", {2, 4, 16, 16}), {window, window}));
    EXPECT_EQ(use_of(g, "x").bytes, 2 * 4 * 16 * 16 * 4) << window;
    EXPECT_EQ(use_of(g, "x").accesses, 2 * 4 * 16 * 16) << window;
  }
}

TEST(Work, of_a_product_is_its_operands_and_the_epilogue) {
  Graph g;
  const Tensor x = g.input("x", {8, 12}), w = g.parameter("w", {16, 12});
  g.output("y", relu(matmul(x, transpose(w)) + g.parameter("b", {16})));
  EXPECT_EQ(work(g).read_bytes(), 4 * (8 * 12 + 16 * 12 + 16));
  EXPECT_EQ(work(g).written_bytes(), 4 * 8 * 16);
  EXPECT_GE(work(g).flops, 2 * 8 * 12 * 16);
  EXPECT_EQ(use_of(g, "w").accesses, 8 * 16 * 12);
}

TEST(Work, of_a_row_that_is_passed_several_times_counts_it_once) {
  Graph g;
  g.output("y", softmax(g.input("x", {64, 100}), -1));
  EXPECT_EQ(work(g).read_bytes(), 4 * 64 * 100);
  EXPECT_EQ(work(g).written_bytes(), 4 * 64 * 100);
}

TEST(Work, of_a_scatter_are_the_rows_that_it_touches) {
  Graph g;
  const Tensor index = g.input("index", {8}, i64), rows = g.input("rows", {8, 32});
  g.output("y", scatter_add(g.input("base", {1000, 32}), index, rows));
  const Program program = built(g);
  ASSERT_EQ(program.launches.size(), 2u);
  EXPECT_EQ(program.launches[0].written_bytes, 1000 * 32 * 4);
  EXPECT_EQ(program.launches[1].read_bytes, 8 * 8 + 2 * 8 * 32 * 4);
  EXPECT_EQ(program.launches[1].written_bytes, 8 * 32 * 4);
}

// The launch of a program whose name begins so.
ProgramLaunch launch_of(const Program& program, std::string_view name) {
  for (const ProgramLaunch& launch : program.launches)
    if (launch.name.starts_with(name)) return launch;
  ADD_FAILURE() << "no launch " << name;
  return {};
}

TEST(Work, of_a_recurrent_layer_is_all_that_it_reads_and_its_products) {
  constexpr double kSteps = 5, kBatch = 3, kHidden = 16;
  struct Case {
    const char* name;
    double gates, biases, states, saved_gates, saved_states;
  };
  for (const Case& c :
       {Case{"lstm", 4, 0, 2, 4, 1}, Case{"gru", 3, 1, 1, 4, 0}, Case{"rnn", 1, 0, 1, 0, 0}}) {
    Graph g;
    const Tensor x = g.input("x", {5, 3, 8}), h0 = g.input("h0", {1, 3, 16});
    const std::string kind = c.name;
    const Tensor y = kind == "lstm"
                         ? nn::lstm("a", x, 16, {.h0 = h0, .c0 = g.input("c0", {1, 3, 16})}).output
                     : kind == "gru" ? nn::gru("a", x, 16, {.h0 = h0}).output
                                     : nn::rnn("a", x, 16, nn::Activation::tanh, {.h0 = h0}).output;
    const Gradients d = differentiate(g, sum(square(y)), {g.leaf("a.weight_hh_l0"), h0});
    const Program program =
        built(d.graph.with_outputs({{"weight", d.gradients[0]}, {"state", d.gradients[1]}}));
    const double states = kSteps * kBatch * kHidden, state = kBatch * kHidden,
                 weight = c.gates * kHidden * kHidden, flops = 2 * kSteps * kBatch * weight;
    const ProgramLaunch forward = launch_of(program, kind + ".");
    EXPECT_EQ(forward.flops, flops) << kind;
    EXPECT_EQ(forward.read_bytes,
              4 * (c.gates * states + weight + c.biases * kHidden + c.states * state))
        << kind;
    EXPECT_EQ(forward.written_bytes, 4 * states * (1 + c.saved_gates + c.saved_states)) << kind;
    const ProgramLaunch backward = launch_of(program, kind + "_grad.");
    EXPECT_EQ(backward.flops, flops) << kind;
    EXPECT_GE(backward.read_bytes, 4 * (states + weight)) << kind;
    EXPECT_GE(backward.written_bytes, 4 * c.gates * states) << kind;
  }
}

TEST(Work, of_a_launch_has_its_own_scratch_as_a_whole) {
  Graph g;
  g.output("total", sum(g.input("x", {1 << 16})));
  const Program program = built(g);
  ASSERT_EQ(program.launches.size(), 2u);  // blocks, and their sum
  EXPECT_EQ(program.launches[0].read_bytes, 4 << 16);
  EXPECT_GT(program.launches[0].written_bytes, 0);
  EXPECT_EQ(program.launches[1].read_bytes, program.launches[0].written_bytes);
  EXPECT_EQ(program.launches[1].written_bytes, 4);
}

TEST(Contents, are_layers_and_the_ops_that_are_computed) {
  Graph g;
  const Tensor x = g.input("x", {8, 12});
  g.output("y", relu(nn::linear("fc1", x, 16)));
  const Program program = built(g);
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_EQ(program.launches[0].layers, "fc1");
  EXPECT_THAT(program.launches[0].ops, testing::HasSubstr("contract, add"));
  EXPECT_THAT(program.launches[0].ops, testing::Not(testing::HasSubstr("permute")));
}

TEST(Contents, without_a_layer_are_those_of_the_parameters) {
  Graph g;
  g.output("y", matmul(g.input("x", {8, 12}), g.parameter("block.3.up.weight", {12, 16})));
  EXPECT_EQ(built(g).launches.at(0).layers, "block.3.up");
}

TEST(Contents, without_any_layer_are_what_is_stored) {
  Graph g;
  const Tensor state = g.state("average", {16});
  g.update(state, state * 0.5);
  EXPECT_EQ(built(g).launches.at(0).layers, "average");
  EXPECT_EQ(built(g).launches.at(0).ops, "mul");
}

}  // namespace
}  // namespace pantala::schedule::work_test
