// Searches, running sums and scatters through the whole compiler: on the interpreter of kernels and
// on the CPU, fused and op by op, with one worker and two, always the bits of the reference.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "support/compiled.h"

namespace pantala::schedule_anchors_test {
namespace {

using tests::CompiledRun;

// Small whole numbers, so that sums are exact in every dtype.
Literal whole_numbers(const Shape& shape, DType dtype, std::uint64_t seed, int low = -8,
                      int high = 8) {
  std::mt19937_64 random(seed);
  Literal values(Type{dtype, shape});
  for (std::int64_t k = 0; k < values.numel(); ++k) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    const auto n = static_cast<std::int64_t>(random() % span) + low;
    if (values.is_float())
      values.f()[static_cast<std::size_t>(k)] = static_cast<double>(n);
    else
      values.i()[static_cast<std::size_t>(k)] = dtype == DType::u8 ? (n & 255) : n;
  }
  return values;
}
Literal indices(const Shape& shape, std::int64_t limit, std::uint64_t seed, DType dtype = i64) {
  return whole_numbers(shape, dtype, seed, 0, static_cast<int>(limit) - 1);
}

const std::vector<CompiledRun>& ways() {
  static const std::vector<CompiledRun> all{
      {"kir", true, 1}, {"kir", false, 1}, {"cpu", true, 2}, {"cpu", false, 1}};
  return all;
}

void expect_reference(const Graph& graph, const ref::Bindings& bindings) {
  std::vector<Tensor> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs.push_back(value);
  const std::vector<Literal> expected = ref::evaluate(graph, outputs, bindings);
  for (const CompiledRun& how : ways())
    EXPECT_EQ(tests::differing_bits(expected, tests::run_compiled(graph, bindings, how)), "")
        << how.device << (how.fuse ? " fused" : " op by op");
}

std::string described(const Shape& shape, std::int64_t axis, DType dtype) {
  return fmt::format("{} axis {} {}", shape.str(), axis, dtype_name(dtype));
}

// --- searches

void expect_search(const Shape& shape, std::int64_t axis, DType dtype) {
  SCOPED_TRACE(described(shape, axis, dtype));
  Graph g;
  const Tensor x = g.input("x", shape, dtype);
  g.output("largest", argmax(x, axis));
  g.output("smallest", argmin(x, axis, true));
  expect_reference(g, {{"x", whole_numbers(shape, dtype, 1, -3, 3)}});
}

TEST(ScheduleSearch, every_axis) {
  for (const std::int64_t axis : {0, 1, 2}) expect_search({3, 5, 9}, axis, f32);
  expect_search({7}, 0, f32);
  expect_search({1}, 0, f32);
  expect_search({1, 1}, 1, f32);
  expect_search({5, 1}, 1, f32);
  expect_search({2, 3, 4, 5}, 2, f32);
}

TEST(ScheduleSearch, every_dtype) {
  for (const DType dtype : {f64, i32, i64, u8}) {
    expect_search({11, 10}, 1, dtype);
    expect_search({4, 70}, 1, dtype);
  }
}

TEST(ScheduleSearch, nothing_to_search) {
  expect_search({0, 3}, 1, f32);
  expect_search({3, 0}, 0, f32);
  expect_search({2, 4, 0}, 1, i64);
}

TEST(ScheduleSearch, long_lines_and_many) {
  expect_search({1000}, 0, f32);
  expect_search({3, 257}, 1, f32);
  expect_search({200, 10}, 1, f32);
  expect_search({10, 203}, 0, f32);
  expect_search({40, 129}, 1, f32);
}

// NaN beats every number, the first of equals is taken, zeros of both signs are equal.
TEST(ScheduleSearch, numbers_that_are_none) {
  const double nan = NAN, inf = INFINITY;
  const std::vector<std::vector<double>> rows{{1, nan, 2, nan}, {-inf, -inf, -inf, -inf},
                                              {inf, inf, 1, 2}, {-0.0, 0.0, -0.0, 0.0},
                                              {nan, 1, 2, 3},   {3, 2, 1, nan}};
  for (const std::int64_t repeats : {1, 17, 19}) {
    const auto count = static_cast<std::int64_t>(rows.size());
    std::vector<double> values;
    for (const auto& row : rows)
      for (std::int64_t k = 0; k < repeats; ++k)
        values.insert(values.end(), row.begin(), row.end());
    const Shape shape{count, repeats * 4};
    Graph g;
    const Tensor x = g.input("x", shape), t = permute(x, {1, 0});
    g.output("rows", argmax(x, 1));
    g.output("least of rows", argmin(x, 1));
    g.output("columns", argmax(t, 0));
    g.output("least of columns", argmin(t, 0));
    g.output("across", argmax(x, 0));
    expect_reference(g, {{"x", Literal::floats(shape, values)}});
  }
}

TEST(ScheduleSearch, operands_are_fused) {
  Graph g;
  const Tensor x = g.input("x", {9, 12}), y = g.input("y", {12}), i = g.input("i", {9, 5}, i64);
  g.output("sum", argmax(x * 2.0 + y, 1));
  g.output("square", argmin(x * x, 0));
  g.output("gathered", argmax(gather(x, i, 1), 1));
  g.output("flat", argmax(reshape(x - y, {108}), 0));
  g.output("same for all lines", argmax(broadcast_to(y, {9, 12}), 1));
  g.output("same for all columns", argmax(broadcast_to(y, {9, 12}), 0));
  g.output("constant", argmax(g.constant(3, {9, 12}), 1));
  expect_reference(g, {{"x", whole_numbers({9, 12}, f32, 1)},
                       {"y", whole_numbers({12}, f32, 2)},
                       {"i", indices({9, 5}, 12, 3)}});
  const schedule::Machine machine{schedule::cpu::archetypes(), {}};
  Graph alone;
  const Tensor a = alone.input("x", {9, 12}), b = alone.input("y", {12});
  alone.output("sum", argmax(exp(a) + b, 1));
  EXPECT_EQ(schedule::schedule(schedule::lower(alone, machine.archetypes), machine).launches.size(),
            1u);
}

TEST(ScheduleSearch, the_result_is_read_and_stored_twice) {
  Graph g;
  const Tensor x = g.input("x", {20, 10}), label = g.input("label", {20}, i64);
  const Tensor best = argmax(x, 1);
  g.output("best", best);
  g.output("again", best);
  g.output("right", sum(cast(eq(best, label), f32)));
  g.output("taken", gather(x, reshape(best, {20, 1}), 1));
  expect_reference(g, {{"x", whole_numbers({20, 10}, f32, 1)}, {"label", indices({20}, 10, 2)}});
}

// --- running sums

void expect_scan(const Shape& shape, std::int64_t axis, DType dtype) {
  SCOPED_TRACE(described(shape, axis, dtype));
  Graph g;
  const Tensor x = g.input("x", shape, dtype);
  g.output("forward", cumsum(x, axis));
  g.output("reverse", cumsum(x, axis, true));
  expect_reference(g, {{"x", whole_numbers(shape, dtype, 1)}});
}

TEST(ScheduleScan, every_axis) {
  for (const std::int64_t axis : {0, 1, 2}) expect_scan({3, 5, 9}, axis, f32);
  expect_scan({13}, 0, f32);
  expect_scan({1}, 0, f32);
  expect_scan({6, 1}, 1, f32);
  expect_scan({2, 3, 4, 5}, 1, f32);
}

TEST(ScheduleScan, every_dtype) {
  for (const DType dtype : {f64, i32, i64, u8}) {
    expect_scan({11, 40}, 1, dtype);
    expect_scan({40, 11}, 0, dtype);
  }
}

TEST(ScheduleScan, empty_and_large) {
  expect_scan({0}, 0, f32);
  expect_scan({0, 3}, 0, f32);
  expect_scan({3, 0}, 0, i32);
  expect_scan({300, 17}, 0, f32);
  expect_scan({17, 300}, 1, f32);
  expect_scan({5000}, 0, f64);
}

TEST(ScheduleScan, integers_wrap) {
  Graph g;
  const Tensor x = g.input("x", {3}, i32), y = g.input("y", {2, 3}, u8);
  g.output("x", cumsum(x, 0));
  g.output("y", cast(cumsum(y, 1), i64) * 2.0);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  expect_reference(g, {{"x", Literal::ints({3}, {most, 1, most}, i32)},
                       {"y", Literal::ints({2, 3}, {200, 100, 250, 255, 1, 7}, u8)}});
}

TEST(ScheduleScan, zeros_keep_their_sign) {
  Graph g;
  g.output("y", cumsum(g.input("x", {4}), 0));
  expect_reference(g, {{"x", Literal::floats({4}, {-0.0, -0.0, 0.0, -0.0})}});
}

TEST(ScheduleScan, operands_are_fused_and_results_are_read) {
  Graph g;
  const Tensor x = g.input("x", {6, 10}), y = g.input("y", {10});
  const Tensor running = cumsum(x * y + 1.0, 1);
  g.output("running", running);
  g.output("doubled", running * 2.0);
  g.output("twice", cumsum(running, 0, true));
  g.output("flipped", cumsum(flip(x, {1}), 1));
  g.output("of a constant", cumsum(g.constant(1, {6, 10}), 0));
  g.output("of a column", cumsum(broadcast_to(y, {6, 10}), 0));
  expect_reference(g, {{"x", whole_numbers({6, 10}, f32, 1)}, {"y", whole_numbers({10}, f32, 2)}});
}

// --- scatters

// What is scattered: an op, the shapes of x and of its index.
struct ScatterCase {
  std::string op;
  Shape x, index;
  std::int64_t axis = 0;
  DType dtype = f32;
};

Shape source_shape(const ScatterCase& c) {
  if (c.op != "scatter_add") return c.index;
  std::vector<std::int64_t> sizes(c.x.begin(), c.x.begin() + c.axis);
  sizes.insert(sizes.end(), c.index.begin(), c.index.end());
  sizes.insert(sizes.end(), c.x.begin() + c.axis + 1, c.x.end());
  return Shape(sizes);
}

Tensor scattered(const ScatterCase& c, const Tensor& x, const Tensor& index, const Tensor& source) {
  if (c.op == "scatter_add") return scatter_add(x, index, source, c.axis);
  if (c.op == "scatter_add_elements") return scatter_add_elements(x, index, source, c.axis);
  return scatter(x, index, source, c.axis);
}

// With an index that is an input, which is checked when it is set, and with one that the graph
// computes, which the kernel checks.
void expect_scatter(const ScatterCase& c) {
  SCOPED_TRACE(fmt::format("{} {} index {}", c.op, described(c.x, c.axis, c.dtype), c.index.str()));
  Graph g;
  const Tensor x = g.input("x", c.x, c.dtype), source = g.input("source", source_shape(c), c.dtype),
               index = g.input("index", c.index, i64), one = g.constant(1, c.index, i64);
  g.output("trusted", scattered(c, x, index, source));
  g.output("checked", scattered(c, x, index + one - one, source));
  const std::int64_t limit = c.x[static_cast<int>(c.axis)];
  expect_reference(g, {{"x", whole_numbers(c.x, c.dtype, 1)},
                       {"source", whole_numbers(source_shape(c), c.dtype, 2)},
                       {"index", indices(c.index, std::max<std::int64_t>(limit, 1), 3)}});
}

TEST(ScheduleScatter, slices) {
  expect_scatter({"scatter_add", {6, 16}, {9}, 0});
  expect_scatter({"scatter_add", {6, 13}, {2, 5}, 0});
  expect_scatter({"scatter_add", {3, 7, 5}, {4}, 1});
  expect_scatter({"scatter_add", {3, 7, 2}, {2, 3}, 1});
  expect_scatter({"scatter_add", {9, 6}, {11}, 1});
  expect_scatter({"scatter_add", {6}, {30}, 0});
  expect_scatter({"scatter_add", {2, 5, 3}, {}, 1});
  expect_scatter({"scatter_add", {1}, {3}, 0});
  expect_scatter({"scatter_add", {50, 200}, {40}, 0});
  expect_scatter({"scatter_add", {2, 3, 2, 9}, {5}, 1});
}

TEST(ScheduleScatter, elements) {
  for (const std::string op : {"scatter_add_elements", "scatter"}) {
    expect_scatter({op, {4, 6}, {4, 9}, 1});
    expect_scatter({op, {4, 6}, {9, 6}, 0});
    expect_scatter({op, {5, 8}, {7, 3}, 0});
    expect_scatter({op, {2, 5, 3}, {1, 12, 3}, 1});
    expect_scatter({op, {6}, {30}, 0});
    expect_scatter({op, {1}, {1}, 0});
    expect_scatter({op, {7, 150}, {20, 140}, 0});
  }
}

TEST(ScheduleScatter, every_dtype) {
  for (const DType dtype : {f64, i32, i64, u8}) {
    expect_scatter({"scatter_add", {6, 11}, {9}, 0, dtype});
    expect_scatter({"scatter_add_elements", {6, 4}, {9, 4}, 0, dtype});
    expect_scatter({"scatter", {6, 4}, {9, 4}, 0, dtype});
  }
}

TEST(ScheduleScatter, nothing_to_scatter) {
  expect_scatter({"scatter_add", {4}, {0}, 0});
  expect_scatter({"scatter_add", {0, 3}, {0}, 0});
  expect_scatter({"scatter_add", {3, 0}, {5}, 0});
  for (const std::string op : {"scatter_add_elements", "scatter"}) {
    expect_scatter({op, {2, 3}, {2, 0}, 1});
    expect_scatter({op, {3, 0}, {5, 0}, 0});
  }
}

TEST(ScheduleScatter, indices_of_32_bits_and_bools) {
  Graph g;
  const Tensor x = g.input("x", {5, 6}), i = g.input("i", {7}, i32), s = g.input("s", {7, 6}),
               e = g.input("e", {5, 6}, i32);
  g.output("slices", scatter_add(x, i, s, 0));
  g.output("elements", scatter(x, e, x * 2.0, 1));
  g.output("conditions", scatter(lt(x, 0.0), e, lt(x, 2.0), 1));
  expect_reference(g, {{"x", whole_numbers({5, 6}, f32, 1)},
                       {"i", indices({7}, 5, 2, i32)},
                       {"s", whole_numbers({7, 6}, f32, 3)},
                       {"e", indices({5, 6}, 6, 4, i32)}});
}

TEST(ScheduleScatter, operands_are_fused) {
  Graph g;
  const Tensor x = g.input("x", {6, 12}), s = g.input("s", {4, 5, 12}),
               i = g.input("i", {4, 5}, i64), e = g.input("e", {6, 12}, i64);
  g.output("embedding", scatter_add(zeros_like(x), i, s * 0.5, 0));
  g.output("flat", scatter_add(x + 1.0, reshape(i, {20}), reshape(s * 2.0, {20, 12}), 0));
  g.output("spread", scatter_add(x, i, broadcast_to(g.constant(1, {}), {4, 5, 12}), 0));
  g.output("shifted", scatter_add_elements(x * 3.0, minimum(e + e, 5), x - 1.0, 0));
  g.output("read back", gather(scatter(x, e, x * x, 1), e, 1) + x);
  expect_reference(g, {{"x", whole_numbers({6, 12}, f32, 1)},
                       {"s", whole_numbers({4, 5, 12}, f32, 2)},
                       {"i", indices({4, 5}, 6, 3)},
                       {"e", indices({6, 12}, 6, 4)}});
}

TEST(ScheduleScatter, one_result_in_several_places) {
  Graph g;
  const Tensor x = g.input("x", {6, 12}), s = g.input("s", {9, 12}), i = g.input("i", {9}, i64);
  const Tensor y = scatter_add(x, i, s, 0);
  g.output("y", y);
  g.output("again", y);
  g.output("sum", sum(y, {0}));
  expect_reference(g, {{"x", whole_numbers({6, 12}, f32, 1)},
                       {"s", whole_numbers({9, 12}, f32, 2)},
                       {"i", indices({9}, 6, 3)}});
}

// Additions are made in the order of the op, whoever makes them.
TEST(ScheduleScatter, sums_that_depend_on_the_order) {
  Graph g;
  const Tensor s = g.input("s", {400, 130}), i = g.input("i", {400}, i64);
  g.output("y", scatter_add(g.constant(0, {3, 130}), i, s, 0));
  Literal values(Type{f32, {400, 130}});
  std::mt19937_64 random(1);
  for (double& v : values.f())
    v = std::ldexp(static_cast<float>(random() % 4096), static_cast<int>(random() % 20));
  const ref::Bindings bindings{{"s", values}, {"i", indices({400}, 3, 2)}};
  std::vector<float> expected(3 * 130);
  for (std::int64_t t = 0; t < 400; ++t)
    for (std::int64_t d = 0; d < 130; ++d)
      expected[static_cast<std::size_t>(bindings.at("i").at(t) * 130 + static_cast<double>(d))] +=
          static_cast<float>(values.at(t * 130 + d));
  for (const CompiledRun& how : ways()) {
    const Literal y = tests::run_compiled(g, bindings, how)[0];
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_EQ(y.f()[k], static_cast<double>(expected[k])) << how.device << " element " << k;
  }
}

TEST(ScheduleScatter, indices_out_of_range_are_reported) {
  for (const ScatterCase& c :
       {ScatterCase{"scatter_add", {6, 11}, {9}, 0}, ScatterCase{"scatter_add", {5, 6}, {9}, 1},
        ScatterCase{"scatter_add", {0, 11}, {9}, 0},
        ScatterCase{"scatter_add_elements", {6, 11}, {9, 11}, 0},
        ScatterCase{"scatter", {5, 6}, {5, 9}, 1}, ScatterCase{"scatter", {0}, {2}, 0}}) {
    Graph g;
    const Tensor x = g.input("x", c.x), source = g.input("source", source_shape(c)),
                 index = g.input("index", c.index, i64), one = g.constant(1, c.index, i64);
    g.output("y", scattered(c, x, index + one - one, source));
    const std::int64_t limit = c.x[static_cast<int>(c.axis)];
    for (const std::int64_t bad :
         {limit, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
      SCOPED_TRACE(fmt::format("{} {} index {}", c.op, c.x.str(), bad));
      Literal index_values = indices(c.index, std::max<std::int64_t>(limit, 1), 3);
      index_values.i()[index_values.i().size() / 2] = bad;
      const ref::Bindings bindings{{"x", whole_numbers(c.x, f32, 1)},
                                   {"source", whole_numbers(source_shape(c), f32, 2)},
                                   {"index", index_values}};
      for (const CompiledRun& how : ways()) try {
          tests::run_compiled(g, bindings, how);
          ADD_FAILURE() << "no error on " << how.device;
        } catch (const ValueError& error) {
          EXPECT_THAT(error.what(),
                      ::testing::HasSubstr(fmt::format("an index is out of range [0, {})", limit)));
        }
    }
  }
}

}  // namespace
}  // namespace pantala::schedule_anchors_test
