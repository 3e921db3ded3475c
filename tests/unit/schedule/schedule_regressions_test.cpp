// Graphs that kernels once computed wrongly or could not be made for, each in its smallest form:
// all must give the interpreter's numbers, with the same bits fused or not, on the processor and on
// the interpreter of kernels, which checks every access.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/compile.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/compiled.h"
#include "support/fill.h"

namespace pantala::schedule_regressions_test {
namespace {

// Leaves that are not bound are filled by their names: floats in [-1, 1), integers in [0, 5).
ref::Bindings filled(const Graph& graph, ref::Bindings bindings) {
  for (const Leaf& leaf : graph.leaves()) {
    const Type type = leaf.value.type();
    if (leaf.kind == LeafKind::scalar || bindings.contains(leaf.name)) continue;
    if (is_float(type.dtype)) {
      std::vector<double> values = tests::fill(leaf.name, type.shape).to_doubles();
      for (double& x : values) x = round_to(type.dtype, x);
      bindings[leaf.name] = Literal::floats(type.shape, values, type.dtype);
    } else {
      bindings[leaf.name] = tests::fill_int(leaf.name, type.shape, 0, 5);
    }
  }
  return bindings;
}

void expect_right(const Graph& graph, const ref::Bindings& given = {}, double tolerance = 1e-5) {
  const ref::Bindings bindings = filled(graph, given);
  std::vector<Tensor> values;
  for (const auto& [name, value] : graph.outputs()) values.push_back(value);
  const std::vector<Literal> expected = ref::evaluate(graph, values, bindings);
  const std::vector<Literal> fused = tests::run_compiled(graph, bindings);
  EXPECT_EQ(tests::differing(expected, fused, tolerance), "");
  for (const tests::CompiledRun& how :
       {tests::CompiledRun{.fuse = false}, tests::CompiledRun{.threads = 3},
        tests::CompiledRun{.device = "kir"}})
    EXPECT_EQ(tests::differing_bits(fused, tests::run_compiled(graph, bindings, how)), "")
        << how.device << ", fused " << how.fuse << ", threads " << how.threads;
}

// --- products

TEST(ScheduleRegressions, products_of_constants_and_numbers_of_the_host) {
  Graph graph;
  const Tensor x = graph.input("x", {5, 7});
  const Tensor ones = graph.constant(1.0, {5, 5}), rate = cast(graph.scalar("rate", 0.5), f32);
  graph.output("ones", matmul(ones, x));
  graph.output("constants", matmul(ones, ones));
  graph.output("rate", contract(rate, x, {}));
  graph.output("two", contract(graph.constant(2.0), x, {}));
  expect_right(graph);
}

TEST(ScheduleRegressions, epilogues_give_other_dtypes_than_their_products) {
  Graph graph;
  const Tensor x = graph.input("x", {9, 8}), w = graph.parameter("w", {8, 5});
  graph.output("positive", gt(matmul(x, w), 0.0));
  graph.output("half", cast(matmul(x, w * 2.0), DType::f16) * 3.0);
  const Tensor image = graph.input("image", {2, 3, 6, 6});
  graph.output("bright", gt(conv2d(image, graph.parameter("k", {4, 3, 3, 3})), 0.0));
  expect_right(graph, {}, 1e-2);
}

TEST(ScheduleRegressions, products_and_attention_beside_convolutions_are_row_major) {
  Graph graph;
  const Tensor a = graph.input("a", {2, 4, 6, 7}), b = graph.input("b", {7, 8});
  const Tensor image = graph.input("image", {2, 4, 6, 8}), k = graph.parameter("k", {4, 4, 3, 3});
  const ConvOptions same{.padding = {1}};
  graph.output("of_product", conv2d(matmul(a, b), k));
  graph.output("beside_product", conv2d(relu(conv2d(image, k, {}, same) + matmul(a, b * 2.0)), k));
  graph.output("beside_attention",
               conv2d(conv2d(image, k * 2.0, {}, same) + attention(image, image, image), k));
  expect_right(graph, {}, 1e-4);
}

TEST(ScheduleRegressions, heads_are_parted_and_joined_in_memory) {
  Graph graph;
  const Tensor x = graph.input("x", {2, 20, 24});
  const auto heads = [&](const char* name) {
    return permute(reshape(matmul(x, graph.parameter(name, {24, 24})) + 0.5, {2, 20, 3, 8}),
                   {0, 2, 1, 3});
  };
  const auto joined = [](const Tensor& y) {
    return reshape(permute(y, {0, 2, 1, 3}), {2, 20, 24});
  };
  const Tensor one = attention(heads("q"), heads("k"), heads("v"));
  graph.output("product", matmul(joined(one), graph.parameter("o", {24, 7})));
  graph.output("columns", sum(joined(one), {0, 1}));
  graph.output("pair", concat({joined(one), joined(one) * 2.0}, 2));
  // Readers that want the heads apart.
  const Tensor other = attention(heads("q2"), heads("k2"), heads("v2"), {.causal = true});
  graph.output("apart", other * 2.0);
  graph.output("joined", joined(other) + 1.0);
  expect_right(graph, {}, 1e-4);
}

TEST(ScheduleRegressions, sums_of_columns_of_any_width) {
  Graph graph;
  for (const std::int64_t width : {5, 16, 37, 130, 300})
    for (const std::int64_t rows : {3, 4500}) {
      const Tensor x = graph.input(fmt::format("x{}_{}", rows, width), {2, rows, width});
      graph.output(fmt::format("sum{}_{}", rows, width), sum(x, {0, 1}) * 0.5);
      graph.output(fmt::format("largest{}_{}", rows, width), amax(x, {1}));
    }
  expect_right(graph, {}, 1e-3);
}

// --- numbers of narrow dtypes

TEST(ScheduleRegressions, results_of_reductions_are_rounded_before_they_are_used) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Graph graph;
    const Tensor x = graph.input("x", {9, 33}, dtype), r = sum(x, {1}, true), c = sum(x, {0});
    graph.output("rows", x * r);
    graph.output("columns", c * c + c);
    graph.output("softmax", softmax(softmax(x)));
    const Tensor pooled = avg_pool2d(reshape(x, {1, 1, 9, 33}), {3, 3}, {.stride = {1, 1}});
    graph.output("pooled", pooled * pooled - pooled);
    graph.output("host", x * cast(graph.scalar("rate", 0.1), dtype));
    expect_right(graph, {}, 5e-2);
  }
}

// Whether it is one number for all or given element by element, and whatever surrounds a tensor.
TEST(ScheduleRegressions, constants_are_rounded_before_they_are_used) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Graph graph;
    const Shape shape{9, 33};
    const Tensor x = graph.input("x", shape, dtype);
    const std::vector<double> tenths(static_cast<std::size_t>(shape.numel()), 0.1);
    graph.output("one", x * graph.constant(0.1, shape, dtype));
    graph.output("each", x * graph.constant(Literal::floats(shape, tenths, dtype)));
    graph.output("padded", pad(x, {1, 1}, {1, 1}, 0.1) * 3.0);
    expect_right(graph, {}, 5e-2);
    const std::vector<Literal> results = tests::run_compiled(graph, filled(graph, {}));
    EXPECT_EQ(tests::differing_bits({results[0]}, {results[1]}), "") << dtype_name(dtype);
  }
}

TEST(ScheduleRegressions, sums_of_bytes_wrap_before_they_are_used) {
  Graph graph;
  const Tensor x = graph.input("x", {9, 33}, u8);
  graph.output("rows", cast(sum(x, {1}), f32) * 0.5);
  graph.output("columns", cast(sum(x, {0}), f32));
  const std::vector<std::int64_t> values(9 * 33, 200);
  expect_right(graph, {{"x", Literal::ints({9, 33}, values, u8)}}, 0);
}

// --- masks

TEST(ScheduleRegressions, nothing_is_read_for_padding_that_all_lanes_share) {
  Graph graph;
  const Tensor r = graph.input("r", {6, 1}), table = graph.parameter("table", {5, 20});
  const Tensor index = graph.input("index", {6}, i64);
  graph.output("rows", pad(broadcast_to(r, {6, 20}), {1, 1}, {2, 3}, 7.0));
  // Indices that do not exist are not out of range.
  graph.output("taken", pad(take(table, mod(index, 5.0)), {40, 1}, {40, 3}, 7.0));
  expect_right(graph);
}

TEST(ScheduleRegressions, pools_of_what_all_lanes_share) {
  Graph graph;
  const Tensor x = broadcast_to(graph.input("x", {2, 3, 6, 1}), {2, 3, 6, 20});
  const PoolOptions options{.stride = {1, 1}, .padding = {1, 1}};
  graph.output("max", max_pool2d(x, {3, 3}, options));
  graph.output("average", avg_pool2d(x, {3, 3}, options));
  expect_right(graph);
}

TEST(ScheduleRegressions, nothing_joined_with_nothing) {
  Graph graph;
  const Tensor none = graph.input("none", {0, 4});
  graph.output("joined", concat({none, none}) * 2.0);
  graph.output("sum", sum(concat({none, none}), {0}));
  expect_right(graph);
}

// --- sessions

CompileOptions plain() {
  CompileOptions options;
  options.threads = 1;
  options.non_finite = NonFiniteGuard::none;
  return options;
}

TEST(ScheduleRegressions, only_the_indices_that_are_read_must_be_in_range) {
  Graph graph;
  const Tensor ids = graph.input("ids", {3, 2}, i64), flags = graph.input("flags", {3}, i64);
  const Tensor users = graph.parameter("users", {100}, init::ones()),
               items = graph.parameter("items", {5}, init::ones());
  const auto column = [&](std::int64_t k) { return reshape(slice_axis(ids, 1, k, k + 1), {3}); };
  graph.output("y", take(users, column(0)) + take(items, column(1)));
  graph.output("flagged", take(items, cast(cast(flags, boolean), i64)));
  Session session(compile(graph, plain()));
  session.set_input("flags", Literal::ints({3}, {0, 9, -1}));
  session.set_input("ids", Literal::ints({3, 2}, {99, 4, 50, 0, 7, 1}));
  session.step();
  EXPECT_EQ(session.output("y").to_doubles(), std::vector<double>(3, 2));
  session.set_input("ids", Literal::ints({3, 2}, {99, 4, 50, 5, 7, 1}));
  EXPECT_THROW(session.step(), ValueError);
}

TEST(ScheduleRegressions, a_number_that_is_replaced_elsewhere_is_out_of_range) {
  Graph graph;
  const Tensor ids = graph.input("ids", {4}, i64);
  const Tensor table = graph.parameter("table", {5}, init::ones());
  graph.output("y", take(table, where(flip(eq(ids, -100.0), {0}), 0.0, ids)));
  Session session(compile(graph, plain()));
  EXPECT_THROW(
      {
        session.set_input("ids", Literal::ints({4}, {-100, 1, 2, 3}));
        session.step();
      },
      ValueError);
}

TEST(ScheduleRegressions, outputs_of_the_host_have_their_dtypes) {
  Graph graph;
  const Tensor count = graph.state("count", {}, init::constant(3), i32);
  const Tensor rate = graph.scalar("rate", 0.1);
  graph.update(count, count + 1.0);
  graph.output("count", count);
  graph.output("rate", cast(rate, f32));
  graph.output("positive", gt(rate, 0.0));
  Session session(compile(graph, plain()));
  session.step();
  for (const auto& [name, value] : graph.outputs())
    EXPECT_EQ(session.output(name).type(), value.type()) << name;
  EXPECT_EQ(session.output("rate").at(0), static_cast<double>(0.1F));
}

TEST(ScheduleRegressions, counters_made_of_constants_are_guarded) {
  Graph graph;
  const Tensor w = graph.parameter("w", {2}, init::ones()), x = graph.input("x", {2});
  const Tensor count = graph.state("count", {}, init::constant(5), i64);
  graph.update(count, graph.constant(3.0, {}, i64) + graph.constant(4.0, {}, i64));
  const Tensor loss = sum(w * x);
  CompileOptions options = plain();
  options.non_finite = NonFiniteGuard::loss;
  Session session(compile_training_graph(graph, loss, options));
  session.set_input("x", Literal::floats({2}, {1, INFINITY}));
  session.step();
  EXPECT_FALSE(session.last_step_finite());
  EXPECT_EQ(session.state("count").at(0), 5);
  session.set_input("x", Literal::floats({2}, {1, 2}));
  session.step();
  EXPECT_EQ(session.state("count").at(0), 7);
}

}  // namespace
}  // namespace pantala::schedule_regressions_test
