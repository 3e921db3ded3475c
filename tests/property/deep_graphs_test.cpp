// Deep graphs whose values are shared in every way: a level asks for several elements of the level
// below, so that code which is written out wherever it is read grows exponentially. What must hold:
//  - the work of every stage grows no faster than the graph: elements that the emitter is asked
//    for, instructions of the kernels, nodes of gradients, text;
//  - the results are those of the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "support/compiled.h"

namespace pantala::tests {
namespace {

constexpr std::int64_t kRows = 4, kColumns = 6;

// A level from [4, 6] to [4, 6], with numbers of the size of those below.
struct Family {
  std::string name;
  std::function<Tensor(Graph&, const Tensor&)> level;
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

Tensor mean_of(const Tensor& a, const Tensor& b) { return 0.5 * (a + b); }
// The same elements in other places, across the rows.
Tensor turned(const Tensor& y) { return reshape(transpose(y), {kRows, kColumns}); }
Tensor as_image(const Tensor& y) { return reshape(y, {1, 1, kRows, kColumns}); }
Tensor as_matrix(const Tensor& y) { return reshape(y, {kRows, kColumns}); }
Tensor rows(const Tensor& y, std::int64_t begin, std::int64_t end) {
  return slice_axis(y, 0, begin, end);
}
Tensor every_second_row(const Tensor& y) { return slice_axis(y, 0, 0, y.dim(0), 2); }
Tensor index(Graph& g, std::vector<std::int64_t> numbers) {
  const std::int64_t count = std::ssize(numbers);
  return g.constant(Literal::ints({count}, std::move(numbers)));
}

std::vector<Family> choosing_families() {
  return {
      {"concat", [](Graph&, const Tensor& y) { return every_second_row(concat({y, y}, 0)); }},
      {"concat_of_halves",
       [](Graph&, const Tensor& y) { return concat({rows(y, 0, 2), 0.9 * rows(y, 2, 4)}, 0); }},
      {"concat_turned",
       [](Graph&, const Tensor& y) {
         const Tensor t = turned(y);
         return every_second_row(concat({t, flip(t, {0})}, 0));
       }},
      {"pad",
       [](Graph&, const Tensor& y) {
         return mean_of(pad(rows(y, 1, 4), {0, 0}, {1, 0}), pad(rows(y, 0, 3), {1, 0}, {0, 0}));
       }},
      {"pad_in_place",
       [](Graph&, const Tensor& y) { return mean_of(y, pad(rows(y, 0, 2), {0, 0}, {2, 0})); }},
      {"take",
       [](Graph& g, const Tensor& y) {
         const Tensor t = turned(y);
         return mean_of(take(t, index(g, {3, 1, 2, 0}), 0), take(t, index(g, {1, 1, 0, 2}), 0));
       }},
      {"take_computed",
       [](Graph&, const Tensor& y) {
         const Tensor t = turned(y), order = argmax(slice_axis(y, 1, 0, kRows), 1);
         return mean_of(take(t, order, 0), take(flip(t, {1}), order, 0));
       }},
      {"update_slice",
       [](Graph& g, const Tensor& y) {
         return update_slice(flip(y, {0}), rows(turned(y), 0, 2), g.constant(1, {}, i64), 0);
       }},
  };
}

std::vector<Family> other_families() {
  return {
      {"add", [](Graph&, const Tensor& y) { return 0.5 * (y + y); }},
      {"where",
       [](Graph&, const Tensor& y) {
         const Tensor t = turned(y);
         return where(lt(t, flip(t, {1})), t, y);
       }},
      {"flip", [](Graph&, const Tensor& y) { return mean_of(y, flip(y, {0, 1})); }},
      {"flip_turned",
       [](Graph&, const Tensor& y) {
         const Tensor t = turned(y);
         return mean_of(t, flip(t, {0}));
       }},
      {"cast",
       [](Graph&, const Tensor& y) {
         const Tensor t = cast(turned(y), y.dtype() == f32 ? f64 : f32);
         return mean_of(cast(t, y.dtype()), cast(flip(t, {0}), y.dtype()));
       }},
      {"broadcast",
       [](Graph&, const Tensor& y) {
         const Tensor t = turned(y);
         return mean_of(broadcast_to(rows(t, 0, 1), y.shape()),
                        broadcast_to(slice_axis(t, 1, 0, 1), y.shape()));
       }},
      {"max_pool",
       [](Graph&, const Tensor& y) {
         return as_matrix(max_pool2d(as_image(y), {3}, {.stride = {1}, .padding = {1}}));
       }},
      {"large_avg_pool",
       [](Graph&, const Tensor& y) {
         return as_matrix(avg_pool2d(as_image(y), {5}, {.stride = {1}, .padding = {2}}));
       }},
      {"reduce",
       [](Graph&, const Tensor& y) { return y - 0.5 * mean(y, {1}, true) + 0.1 * turned(y); }},
      {"rows_again_and_again",
       [](Graph&, const Tensor& y) { return tanh(y - mean(y, {1}, true)) + mean(y, {1}, true); }},
      {"product", [](Graph&, const Tensor& y) { return 0.1 * matmul(matmul(y, transpose(y)), y); }},
  };
}

std::vector<Family> all_families() {
  std::vector<Family> all = choosing_families();
  for (Family& family : other_families()) all.push_back(std::move(family));
  return all;
}

struct Tower {
  Graph graph;
  Tensor x, loss;
};
Tower tower(const Family& family, int depth, DType dtype = f64) {
  Tower made;
  made.x = made.graph.input("x", {kRows, kColumns}, dtype);
  Tensor y = made.x;
  for (int k = 0; k < depth; ++k) y = family.level(made.graph, y);
  made.loss = mean(y * y);
  made.graph.output("y", y);
  return made;
}

Tower with_gradient(const Tower& made) {
  Gradients d = differentiate(made.graph, made.loss, {made.x});
  d.graph.output("dx", d.gradients[0]);
  return {d.graph, d.at(made.x), d.at(made.loss)};
}

std::size_t instructions(const kir::Block& block) {
  std::size_t count = block.body.size();
  for (const kir::Inst& inst : block.body)
    for (const kir::Block& inner : inst.blocks) count += instructions(inner);
  return count;
}

struct Work {
  double nodes = 0, text = 0, emitted = 0, searched = 0, code = 0;
};
Work work_of(const Graph& graph) {
  const schedule::Machine machine{schedule::cpu::archetypes(), {.vector_bytes = 32}};
  const Graph lowered = schedule::lower(graph, machine.archetypes);
  const schedule::Program program = schedule::schedule(lowered, machine, {});
  Work work{static_cast<double>(lowered.size()), static_cast<double>(to_text(graph).size()),
            static_cast<double>(program.emitted), static_cast<double>(program.searched)};
  for (const schedule::ProgramLaunch& launch : program.launches)
    work.code += static_cast<double>(instructions(program.kernels[launch.kernel].body));
  return work;
}

// Twice the levels are about twice the work, and a node is never much work.
void expect_about_linear(const std::function<Graph(int depth)>& graph) {
  const Work half = work_of(graph(20)), whole = work_of(graph(40));
  constexpr double kGrowth = 2.6;
  EXPECT_LT(whole.nodes, kGrowth * half.nodes);
  EXPECT_LT(whole.text, kGrowth * half.text);
  EXPECT_LT(whole.emitted, kGrowth * half.emitted + 2000);
  EXPECT_LT(whole.searched, kGrowth * half.searched + 2000);
  EXPECT_LT(whole.code, kGrowth * half.code + 2000);
  EXPECT_LT(whole.emitted, 600 * whole.nodes);
  EXPECT_LT(whole.code, 600 * whole.nodes);
}

class DeepGraphs : public ::testing::TestWithParam<Family> {};

TEST_P(DeepGraphs, take_work_that_grows_with_their_depth) {
  expect_about_linear([](int depth) { return tower(GetParam(), depth).graph; });
}

TEST_P(DeepGraphs, take_work_that_grows_with_their_depth_with_gradients) {
  expect_about_linear([](int depth) { return with_gradient(tower(GetParam(), depth)).graph; });
}

TEST_P(DeepGraphs, are_computed_right) {
  const Graph graph = with_gradient(tower(GetParam(), 12)).graph;
  std::vector<double> numbers;
  for (int k = 0; k < kRows * kColumns; ++k) numbers.push_back(0.25 + (k * 7 % 24) / 16.0);
  const ref::Bindings bindings{{"x", Literal::floats({kRows, kColumns}, numbers, f64)}};
  const std::vector<Literal> expected = ref::evaluate(graph, results_of(graph), bindings);
  EXPECT_EQ(differing(expected, run_compiled(graph, bindings, {.device = "kir"}), 1e-6), "");
}

INSTANTIATE_TEST_SUITE_P(Families, DeepGraphs, ::testing::ValuesIn(all_families()),
                         [](const auto& test) { return test.param.name; });

// The graphs that showed it: a result of half a megabyte whose every element stands under fourteen
// choices.
TEST(DeepGraph, of_fourteen_concats_of_a_value_with_itself_is_compiled_in_pieces) {
  Graph g;
  Tensor y = g.input("x", {8}, f32);
  for (int k = 0; k < 14; ++k) y = concat({y, y}, 0);
  g.output("y", y);
  const Work work = work_of(g);
  EXPECT_LT(work.code, 5000);
  const ref::Bindings bindings{{"x", Literal::floats({8}, {1, 2, 3, 4, 5, 6, 7, 8}, f32)}};
  const std::vector<Literal> expected = ref::evaluate(g, results_of(g), bindings);
  EXPECT_EQ(differing_bits(expected, run_compiled(g, bindings)), "");
}

// Nothing is repeated in a long chain, and still no kernel may grow without limit.
TEST(DeepGraph, of_thousands_of_ops_is_cut_into_kernels) {
  Graph g;
  Tensor y = g.input("x", {8}, f64);
  for (int k = 0; k < 6000; ++k) y = y * 0.999 + 0.001 * k;
  g.output("y", y);
  const Work work = work_of(g);
  EXPECT_LT(work.emitted, 20 * work.nodes);
  EXPECT_LT(work.code, 20 * work.nodes);
}

// Any two of them might share a kernel.
TEST(DeepGraph, of_thousands_of_reductions_of_one_value_asks_few_of_them) {
  const auto graph = [](int reductions) {
    Graph g;
    const Tensor x = g.input("x", {kRows, kColumns}, f64);
    for (int k = 0; k < reductions; ++k) g.output(fmt::format("y{}", k), sum(x * (1.0 + k), {1}));
    return g;
  };
  const Work half = work_of(graph(1000)), whole = work_of(graph(2000));
  EXPECT_LT(whole.searched, 2.2 * half.searched);
  EXPECT_LT(whole.emitted, 2.2 * half.emitted);
  EXPECT_LT(whole.searched, 20 * whole.nodes);
}

// Every element of a concat stands under as many conditions as it has parts.
TEST(DeepGraph, of_a_thousand_parts_is_joined_in_small_steps) {
  Graph g;
  std::vector<Tensor> parts;
  ref::Bindings bindings;
  for (int k = 0; k < 1000; ++k) {
    parts.push_back(g.input(fmt::format("x{}", k), {1 + k % 3}, f32));
    bindings.emplace(fmt::format("x{}", k),
                     Literal::floats({1 + k % 3}, std::vector<double>(1 + k % 3, 0.5 * k)));
  }
  g.output("y", concat(parts, 0));
  const Work work = work_of(g);
  EXPECT_LT(work.emitted, 20 * work.nodes);
  EXPECT_LT(work.code, 60 * work.nodes);
  const std::vector<Literal> expected = ref::evaluate(g, results_of(g), bindings);
  EXPECT_EQ(differing_bits(expected, run_compiled(g, bindings, {.device = "kir"})), "");
}

}  // namespace
}  // namespace pantala::tests
