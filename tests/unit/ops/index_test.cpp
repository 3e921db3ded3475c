// Reading and writing by index: values against PyTorch's, and every index out of range answered
// with its value and place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::index_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 0, 1, 2, ... in a shape
Literal counting(Shape shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0);
  return floats(std::move(shape), std::move(values));
}

class IndexOps : public ::testing::Test {
 protected:
  Tensor constant(Literal value) { return g.constant(std::move(value)); }
  Tensor index(Shape shape, std::vector<std::int64_t> values, DType dtype = i64) {
    return g.constant(ints(std::move(shape), std::move(values), dtype));
  }
  std::vector<double> value(const Tensor& t) { return value_of(g, t); }
  std::string value_error(const Tensor& t) {
    return message_of<ValueError>([&] { value(t); });
  }
  Graph g;
};

TEST_F(IndexOps, take_puts_the_shape_of_the_index_in_the_place_of_the_axis) {
  const Tensor x = constant(counting({2, 3, 2})), y = take(x, index({2, 2}, {2, 0, 1, 1}, i32), 1);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(value(y), (std::vector<double>{4, 5, 0, 1, 2, 3, 2, 3, 10, 11, 6, 7, 8, 9, 8, 9}));
  const Tensor one = take(x, index({}, {1}), -1);
  EXPECT_EQ(one.shape(), (Shape{2, 3}));
  EXPECT_EQ(value(one), (std::vector<double>{1, 3, 5, 7, 9, 11}));
}

TEST_F(IndexOps, take_keeps_any_dtype) {
  EXPECT_EQ(take(index({3}, {1, 0, 1}, boolean), index({1}, {2})).type(), (Type{boolean, {1}}));
  EXPECT_EQ(value(take(index({3}, {7, 8, 9}, i32), index({2}, {2, 0}))),
            (std::vector<double>{9, 7}));
}

TEST_F(IndexOps, embedding_reads_rows_and_becomes_a_take) {
  const Tensor table = g.parameter("table", {3, 2}),
               y = embedding(table, index({2, 2}, {0, 2, 2, 1}));
  EXPECT_EQ(g.data()->node(y.id().node).op->name, "take");
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  // Row 2 is read twice, row 1 once, row 0 once.
  EXPECT_EQ(gradients_of(g, sum(y), {table})[0], (std::vector<double>{1, 1, 1, 1, 2, 2}));
}

TEST_F(IndexOps, gather_reads_as_torch_does) {
  const Tensor x = constant(counting({3, 4}));
  EXPECT_EQ(value(gather(x, index({3, 2}, {2, 0, 1, 1, 3, 2}), 1)),
            (std::vector<double>{2, 0, 5, 5, 11, 10}));
  EXPECT_EQ(value(gather(x, index({2, 3}, {2, 0, 1, 0, 0, 2}), 0)),
            (std::vector<double>{8, 1, 6, 0, 1, 10}));
}

TEST_F(IndexOps, scatter_add_adds_slices_and_repeated_indices_add_up) {
  const Tensor y = scatter_add(constant(counting({2, 3, 2})) * 0.0, index({2, 2}, {2, 0, 1, 1}),
                               constant(counting({2, 2, 2, 2})), 1);
  EXPECT_EQ(value(y), (std::vector<double>{2, 3, 10, 12, 0, 1, 10, 11, 26, 28, 8, 9}));
}

TEST_F(IndexOps, scatter_add_wraps_integers) {
  EXPECT_EQ(value(scatter_add(index({2}, {INT32_MAX, 0}, i32), index({2}, {0, 0}),
                              index({2}, {1, 1}, i32))),
            (std::vector<double>{static_cast<double>(INT32_MIN) + 1, 0}));
  EXPECT_EQ(value(scatter_add(index({1}, {250}, u8), index({1}, {0}), index({1}, {10}, u8))),
            (std::vector<double>{4}));
}

TEST_F(IndexOps, scatter_add_elements_and_scatter_write_as_torch_does) {
  const Tensor x = constant(counting({3, 4})),
               source = constant(floats({3, 2}, {10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(value(scatter_add_elements(x, index({3, 2}, {2, 0, 1, 1, 3, 2}), source, 1)),
            (std::vector<double>{20, 1, 12, 3, 4, 75, 6, 7, 8, 9, 70, 61}));
  EXPECT_EQ(value(scatter(x, index({3, 2}, {2, 0, 1, 3, 3, 2}), source, 1)),
            (std::vector<double>{20, 1, 10, 3, 4, 30, 6, 40, 8, 9, 60, 50}));
}

TEST_F(IndexOps, of_repeated_indices_scatter_keeps_the_last_and_gives_it_the_gradient) {
  const Tensor x = g.parameter("x", {3}), source = g.parameter("source", {3}, init::constant(5));
  const Tensor y = scatter(x, index({3}, {1, 2, 1}), source * constant(floats({3}, {1, 2, 3})), 0);
  EXPECT_EQ(value(y), (std::vector<double>{0, 15, 10}));
  const auto d = gradients_of(g, sum(y), {x, source});
  EXPECT_EQ(d[0], (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(d[1], (std::vector<double>{0, 2, 3}));
}

TEST_F(IndexOps, one_hot_adds_an_axis) {
  const Tensor y = one_hot(index({2}, {2, 0}, u8), 3);
  EXPECT_EQ(y.type(), (Type{i64, {2, 3}}));
  EXPECT_EQ(value(y), (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(index({}, {0}), 1, f32).type(), (Type{f32, {1}}));
  EXPECT_THROW(one_hot(index({2}, {0, 0}), 0), TypeError);
  EXPECT_THROW(one_hot(index({2}, {0, 0}), INT64_MAX), TypeError);
}

TEST_F(IndexOps, windows_are_read_and_written_at_a_run_time_position) {
  const Tensor at = g.input("at", {}, i32), x = constant(counting({2, 4}));
  const Tensor window = dynamic_slice(x, at, 1, 2),
               written = update_slice(x, constant(floats({2, 2}, {-1, -2, -3, -4})), at, -1);
  const auto run = [&](const Tensor& t, std::int64_t position) {
    return value_of(g, t, {{"at", ints({}, {position}, i32)}});
  };
  EXPECT_EQ(run(window, 0), (std::vector<double>{0, 1, 4, 5}));
  EXPECT_EQ(run(window, 2), (std::vector<double>{2, 3, 6, 7}));
  EXPECT_EQ(run(written, 1), (std::vector<double>{0, -1, -2, 3, 4, -3, -4, 7}));
  for (const std::int64_t bad : {-1, 3}) {
    EXPECT_THAT(message_of<ValueError>([&] { run(window, bad); }),
                AllOf(HasSubstr("dynamic_slice"), HasSubstr(std::to_string(bad)),
                      HasSubstr("2 elements"), HasSubstr("size 4")));
    EXPECT_THAT(message_of<ValueError>([&] { run(written, bad); }),
                AllOf(HasSubstr("update_slice"), HasSubstr(std::to_string(bad)),
                      HasSubstr("2 elements"), HasSubstr("size 4")));
  }
}

TEST_F(IndexOps, an_index_out_of_range_is_named_with_its_position_and_the_range) {
  const Tensor x = constant(counting({3, 4})), high = index({2, 1}, {0, 3}),
               negative = index({2, 1}, {-1, 0}), source = constant(floats({2, 1}, {1, 1}));
  EXPECT_THAT(value_error(take(x, high, 0)),
              AllOf(HasSubstr("take (index_test.cpp:"),
                    HasSubstr("index 3 at position [1,0] is out of range [0, 3)")));
  EXPECT_THAT(
      value_error(gather(x, negative, 0)),
      AllOf(HasSubstr("gather"), HasSubstr("index -1 at position [0,0] is out of range [0, 3)")));
  EXPECT_THAT(value_error(scatter_add(x, high, constant(counting({2, 1, 4})), 0)),
              AllOf(HasSubstr("scatter_add"), HasSubstr("index 3")));
  EXPECT_THAT(value_error(scatter_add_elements(x, negative, source, 0)),
              AllOf(HasSubstr("scatter_add_elements"), HasSubstr("index -1")));
  EXPECT_THAT(value_error(scatter(x, high, source, 0)),
              AllOf(HasSubstr("scatter"), HasSubstr("index 3")));
  EXPECT_THAT(
      value_error(one_hot(high, 3)),
      AllOf(HasSubstr("one_hot"), HasSubstr("index 3 at position [1,0] is out of range [0, 3)")));
}

TEST_F(IndexOps, every_index_into_an_empty_axis_is_out_of_range) {
  EXPECT_THAT(value_error(take(constant(counting({0, 2})), index({1}, {0}))),
              HasSubstr("out of range [0, 0)"));
  EXPECT_TRUE(value(take(constant(counting({0, 2})), index({0}, {}))).empty());
  // Also where the result has no elements.
  EXPECT_THAT(value_error(take(constant(counting({2, 0})), index({1}, {2}))), HasSubstr("index 2"));
}

TEST_F(IndexOps, wrong_shapes_and_dtypes_are_type_errors) {
  const Tensor x = constant(counting({3, 4})), real = constant(counting({3, 2})),
               i = index({3, 2}, {0, 0, 0, 0, 0, 0});
  EXPECT_THAT(message_of<TypeError>([&] { take(x, real); }),
              HasSubstr("index must be i32 or i64, got f32[3,2]"));
  EXPECT_THROW(take(x, i, 2), TypeError);
  EXPECT_THROW(take(constant(floats({}, {1})), i), TypeError);
  EXPECT_THROW(take(constant(counting({1, 1, 1, 1, 1, 1, 1, 1})), index({1, 1}, {0})), TypeError);
  EXPECT_THAT(message_of<TypeError>([&] { gather(x, index({3}, {0, 0, 0}), 0); }),
              HasSubstr("x f32[3,4], index i64[3]"));
  EXPECT_THAT(message_of<TypeError>([&] { gather(x, index({4, 1}, {0, 0, 0, 0}), 1); }),
              HasSubstr("axis 0 of the index is longer"));
  EXPECT_THAT(message_of<TypeError>([&] { scatter_add(x, index({2}, {0, 0}), real, 0); }),
              HasSubstr("source must have shape [2,4]"));
  EXPECT_THROW(scatter_add_elements(x, i, x, 1), TypeError);
  EXPECT_THROW(scatter(x, i, index({3, 2}, {0, 0, 0, 0, 0, 0}), 1), TypeError);
  EXPECT_THROW(scatter_add(index({1}, {1}, boolean), index({1}, {0}), index({1}, {1}, boolean)),
               TypeError);
  EXPECT_THAT(message_of<TypeError>([&] { embedding(constant(counting({3})), i); }),
              HasSubstr("embedding"));
  const Tensor at = index({}, {0});
  EXPECT_THROW(dynamic_slice(x, at, 1, 5), TypeError);
  EXPECT_THROW(dynamic_slice(x, at, 1, INT64_MIN), TypeError);
  EXPECT_THROW(dynamic_slice(x, index({1}, {0}), 1, 1), TypeError);
  EXPECT_THROW(update_slice(x, constant(counting({2, 2})), at, 1), TypeError);
  EXPECT_THROW(update_slice(x, constant(counting({3, 5})), at, 1), TypeError);
}

}  // namespace
}  // namespace pantala::tests::index_test
