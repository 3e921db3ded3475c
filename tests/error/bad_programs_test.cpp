// clang-format off: expected messages name the line of a call, which must not move.
// Mistakes in C++ programs and the exact messages that answer them, with the line on which they
// were made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

// "op (bad_programs_test.cpp:LINE): message".
std::string at(std::string_view op, int line, std::string_view message) {
  return fmt::format("{} (bad_programs_test.cpp:{}): {}", op, line, message);
}

// The call is on the line of the macro, which is the line that the message must name.
#define EXPECT_BAD(CALL, OP, MESSAGE) \
  EXPECT_EQ(message_of<TypeError>([&] { CALL; }), at(OP, __LINE__, MESSAGE))

class BadPrograms : public ::testing::Test {
 protected:
  Graph g, other;
  Tensor x = g.input("x", {2, 3});
  Tensor y = g.input("y", {4});
  Tensor n = g.input("n", {2}, i32);
  Tensor w = g.parameter("w", {4, 5});
  Tensor foreign = other.input("x", {2, 3});
};

TEST_F(BadPrograms, shapes) {
  EXPECT_BAD(x + y, "add", "shapes do not broadcast: a f32[2,3], b f32[4]");
  EXPECT_BAD(maximum(x, w), "maximum", "shapes do not broadcast: a f32[2,3], b f32[4,5]");
  EXPECT_BAD(where(gt(x, 0.0), x, y), "where",
             "shapes do not broadcast: condition bool[2,3], a f32[2,3], b f32[4]");
  EXPECT_BAD(matmul(x, w), "matmul", "inner sizes differ: a f32[2,3], b f32[4,5]");
  EXPECT_BAD(linear(x, w), "linear",
             "the last axis of x is not the input size of the weight: x f32[2,3], weight f32[4,5]");
  EXPECT_BAD(reshape(x, {4, 2}), "reshape", "x f32[2,3] has 6 elements, [4,2] has 8");
  EXPECT_BAD(broadcast_to(x, {3, 3}), "broadcast_to", "x f32[2,3] does not broadcast to [3,3]");
  EXPECT_BAD(concat({x, y}), "concat", "shapes differ beside axis 0: xs[0] f32[2,3], xs[1] f32[4]");
  EXPECT_BAD(stack({x, y}), "stack", "types differ: xs[0] f32[2,3], xs[1] f32[4]");
  EXPECT_BAD(add_n({x, y}), "add_n", "shapes differ: xs[0] f32[2,3], xs[1] f32[4]");
  EXPECT_BAD(split(x, {1, 1}, 1), "split", "sizes [1,1] do not add up to axis 1 of x f32[2,3]");
  EXPECT_BAD(squeeze(x, 0), "squeeze", "the size of axis 0 is not 1 (x f32[2,3])");
  EXPECT_BAD(conv2d(x, w), "conv2d", "x must have 4 axes, got f32[2,3]");
  EXPECT_BAD(mse_loss(x, y), "mse_loss",
             "shapes do not broadcast: prediction f32[2,3], target f32[4]");
}

TEST_F(BadPrograms, dtypes) {
  EXPECT_BAD(exp(n), "exp", "x must be a float tensor, got i32[2]");
  EXPECT_BAD(n + g.input("f", {2}), "add", "dtypes differ: a i32[2], b f32[2]");
  EXPECT_BAD(n * 0.5, "mul", "the number 0.5 does not fit the dtype of i32[2]");
  EXPECT_BAD(gt(g.input("bytes", {2}, u8), -1), "gt",
             "the number -1 does not fit the dtype of u8[2]");
  EXPECT_BAD(where(gt(x, 0.0), 2.0, 0.5), "where",
             "the number 2 has no dtype, for no other input tells it; full_beside makes a tensor "
             "of numbers");
  EXPECT_BAD(where(x, x, x), "where", "condition must be bool, got f32[2,3]");
  EXPECT_BAD(sum(gt(x, 0.0)), "sum", "needs numbers: x bool[2,3]");
  EXPECT_BAD(embedding(w, x), "embedding", "index must be i32 or i64, got f32[2,3]");
  EXPECT_BAD(g.constant(0.5, {2}, i64), "constant", "i64 cannot hold 0.5");
  EXPECT_BAD(g.parameter("p", {2}, init::normal(), i64), "parameter",
             "normal needs a float type, got i64[2]");
}

TEST_F(BadPrograms, more_than_the_memory) {
  EXPECT_BAD(ref::evaluate(g, {sum(g.constant(1, {std::int64_t{1} << 40}))}, {}), "constant",
             "a host tensor of type f32[1099511627776] is too large for the memory");
  EXPECT_BAD(ref::evaluate(g, {tile(g.constant(1, {3}), {std::int64_t{1} << 40})}, {}),
             "broadcast_to",
             "a host tensor of type f32[1,1099511627776,3] is too large for the memory");
}

TEST_F(BadPrograms, axes_and_attributes) {
  EXPECT_BAD(sum(x, {2}), "sum", "axis 2 is out of range [-2, 2) (x f32[2,3])");
  EXPECT_BAD(sum(x, {1, -1}), "sum", "axes [1,-1] name one axis twice (x f32[2,3])");
  EXPECT_BAD(softmax(g.scalar("s", 1)), "softmax", "axis -1 given for a scalar (x f64[])");
  EXPECT_BAD(transpose(y), "transpose", "axis -2 is out of range [-1, 1) (x f32[4])");
  EXPECT_BAD(permute(x, {0}), "permute", "1 axes given for x f32[2,3]");
  EXPECT_BAD(slice_axis(x, 2, 0, 1), "slice", "axis 2 is out of range for f32[2,3]");
  EXPECT_BAD(slice(x, {0}, {1}, {-1}), "slice",
             "steps must be at least 1, got -1 for axis 0; flip reverses");
  EXPECT_BAD(pad(x, {1}, {1}), "pad",
             "before, after and interior need 2 entries each (x f32[2,3])");
  EXPECT_BAD(pad(n, {1}, {1}, 0.5), "pad", "the value 0.5 does not fit x i32[2]");
  EXPECT_BAD(clamp(x, 2, 1), "clamp", "low 2 must not be above high 1");
  EXPECT_BAD(unsqueeze(g.input("deep", {1, 1, 1, 1, 1, 1, 1, 1}), 0), "unsqueeze",
             "x f32[1,1,1,1,1,1,1,1] has 8 axes already");
  EXPECT_BAD(dropout(x, 1.5), "dropout", "p must be in [0, 1), got 1.5");
}

TEST_F(BadPrograms, sizes) {
  const Tensor long_row = g.input("row", {1, std::int64_t{1} << 40}),
               long_column = g.input("column", {std::int64_t{1} << 40, 1});
  EXPECT_BAD(long_row + long_column, "add",
             "too many elements: [1099511627776,1099511627776] (a f32[1,1099511627776], b "
             "f32[1099511627776,1])");
  EXPECT_BAD(matmul(long_column, long_row), "matmul",
             "too many elements: [1099511627776,1099511627776]");
  EXPECT_EQ(message_of<TypeError>([&] {
              g.input("z", {2, -1});
            }),
            "a size cannot be negative: [2,-1]");
}

TEST_F(BadPrograms, names) {
  const int line = __LINE__ + 1;
  g.state("s", {1});
  EXPECT_BAD(
      g.parameter("s", {1}), "parameter",
      fmt::format("the name 's' is used twice, first by state (bad_programs_test.cpp:{})", line));
  EXPECT_BAD(g.input("", {1}), "input", "a name cannot be empty");
  g.output("loss", x);
  EXPECT_BAD(g.output("loss", y), "output", "the name 'loss' is used twice");
  EXPECT_EQ(message_of<TypeError>([&] { ops::apply("sofmax", {x}); }),
            "there is no op 'sofmax'; did you mean 'softmax'?");
  EXPECT_EQ(message_of<TypeError>([&] {
              ops::apply("softmax", {x}, {{"axes", std::int64_t{0}}});
            }),
            "softmax has no attribute 'axes'; did you mean 'axis'?");
}

TEST_F(BadPrograms, graphs_that_are_mixed) {
  EXPECT_BAD(x + foreign, "add", "the inputs belong to different graphs");
  EXPECT_BAD(matmul(x, transpose(foreign)), "matmul", "the inputs belong to different graphs");
  EXPECT_BAD(concat({x, foreign}), "concat", "the inputs belong to different graphs");
  EXPECT_BAD(g.output("z", foreign), "output", "the value belongs to another graph");
  EXPECT_BAD(g.update(w, foreign), "update", "the value belongs to another graph");
  EXPECT_EQ(other.size(), 2u);  // x and its transpose: what failed left nothing behind
}

TEST_F(BadPrograms, empty_handles) {
  EXPECT_BAD(x + Tensor(), "add", "input 1 is an empty handle");
  EXPECT_BAD(Tensor() * 2.0, "mul", "input 0 is an empty handle");
  EXPECT_BAD(concat({x, Tensor()}), "concat", "input 1 is an empty handle");
  EXPECT_BAD(g.output("z", Tensor()), "output", "the value is an empty handle");
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { reshape(Tensor(), {1}); });
  EXPECT_EQ(
      message,
      fmt::format(
          "bad_programs_test.cpp:{}: a tensor is needed here, not a number or an empty handle",
          line));
  EXPECT_EQ(message_of<TypeError>([&] { (void)Tensor().type(); }),
            "an empty tensor handle has no type");
}

TEST_F(BadPrograms, arity) {
  EXPECT_BAD(ops::apply("add", {x}), "add", "takes 2 inputs (a, b) -> y, got 1");
  EXPECT_BAD(ops::apply("relu", {x, y}), "relu", "takes 1 input (x) -> y, got 2");
  EXPECT_BAD(ops::apply("add", {x, y, w}), "add", "takes 2 inputs (a, b) -> y, got 3");
  EXPECT_BAD(ops::apply("linear", {x}), "linear",
             "takes 2 to 3 inputs (x, weight, bias?) -> y, got 1");
  EXPECT_BAD(concat({}), "concat", "needs at least one tensor");
  EXPECT_BAD(add_n({}), "add_n", "needs at least one tensor");
  EXPECT_BAD(add(1.0, 2.0), "add", "needs at least one tensor");
}

TEST_F(BadPrograms, updates) {
  EXPECT_BAD(g.update(x, x), "update",
             "only a parameter or a state can be updated, not the result of input");
  EXPECT_BAD(g.update(w, x), "update", "'w' is f32[4,5], its new value is f32[2,3]");
  g.update(w, w);
  EXPECT_BAD(g.update(w, w), "update", "'w' is updated twice");
}

TEST_F(BadPrograms, initialisers) {
  EXPECT_BAD(g.parameter("a", {3}, init::orthogonal()), "parameter",
             "orthogonal: needs at least 2 axes, got [3]");
  EXPECT_BAD(g.parameter("b", {3}, init::kaiming_normal()), "parameter",
             "xavier and kaiming initialisers need at least 2 axes, got [3]");
  EXPECT_BAD(g.parameter("c", {3}, init::uniform(1, 0)), "parameter",
             "uniform: low 1 must not be above high 0");
  EXPECT_BAD(g.parameter("d", {3}, init::from_data(Literal::scalar(1))), "parameter",
             "data of type f64[] given for f32[3]");
  EXPECT_BAD(g.state("e", {}, init::constant(1e300), i64), "state",
             "constant: i64 cannot hold 1e+300");
}

TEST_F(BadPrograms, differentiation) {
  const int line = __LINE__ + 1;
  const Tensor m = mod(w, 2.0), e = exp(w), c = cast(gt(w, 0.0), f32), a = cast(argmax(w), f32);
  const auto failure = [&](const Tensor& loss) {
    return message_of<TypeError>([&] { differentiate(g, loss, {w}); });
  };
  EXPECT_EQ(failure(sum(m)),
            at("mod", line, "has no derivative, but lies on the path w -> mod -> sum"));
  EXPECT_EQ(failure(sum(c)),
            at("gt", line, "has no derivative, but lies on the path w -> gt -> cast -> sum"));
  EXPECT_EQ(
      failure(sum(a)),
      at("argmax", line, "has no derivative, but lies on the path w -> argmax -> cast -> sum"));
  EXPECT_EQ(failure(e), fmt::format("differentiate: the loss must be a scalar, got f32[4,5] of exp "
                                    "(bad_programs_test.cpp:{})",
                                    line));
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, sum(w), {foreign}); }),
            "differentiate: wrt[0] is not a value of the graph");
  EXPECT_EQ(message_of<TypeError>([&] { differentiate(g, sum(w), {w}, {.seed = w}); }),
            "differentiate: the seed must be f32[], got f32[4,5]");
}

TEST_F(BadPrograms, values_at_run_time) {
  const int line = __LINE__ + 1;
  const Tensor rows = take(w, n), r = mod(n, n);
  EXPECT_EQ(message_of<ValueError>([&] {
              ref::evaluate(g, {rows}, {{"n", Literal::ints({2}, {0, 4}, i32)}});
            }),
            at("take", line, "index 4 at position [1] is out of range [0, 4)"));
  EXPECT_EQ(message_of<ValueError>([&] {
              ref::evaluate(g, {r}, {{"n", Literal::ints({2}, {1, 0}, i32)}});
            }),
            at("mod", line, "an integer is divided by zero"));
  EXPECT_EQ(message_of<TypeError>([&] { ref::evaluate(g, {x}, {}); }),
            "input 'x' f32[2,3] has no value");
  EXPECT_EQ(message_of<TypeError>([&] {
              ref::evaluate(g, {x}, {{"x", Literal::scalar(1)}});
            }),
            "'x' is f32[2,3], but f64[] was given");
}

TEST_F(BadPrograms, texts) {
  EXPECT_EQ(
      message_of<ParseError>([&] { parse_graph("graph {\n  %0 = rleu(%1)\n}", "dir/net.pn"); }),
      "dir/net.pn:2:8: there is no op 'rleu'; did you mean 'relu'?");
  EXPECT_EQ(message_of<TypeError>(
                [&] { parse_graph("graph {\n  %0 = iota {shape=[3], axis=1}\n}", "dir/net.pn"); }),
            "iota (net.pn:2): axis 1 is out of range [-1, 1)");
}

}  // namespace
}  // namespace pantala::tests
