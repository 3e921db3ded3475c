// clang-format off: expected messages name the line of a call, which must not move.
// Errors are reported at the line that the user wrote, whatever lies between it and the rule that
// failed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using ::testing::EndsWith;
using tests::message_of;
using ::testing::StartsWith;

class SourceLocation : public ::testing::Test {
 protected:
  static std::string at(std::string_view op, int line) {
    return fmt::format("{} (source_location_test.cpp:{}): ", op, line);
  }
  Graph g;
  Tensor a = g.input("a", {2, 3});
  Tensor b = g.input("b", {4});
};

TEST_F(SourceLocation, of_an_operator) {
  EXPECT_THAT(message_of<TypeError>([&] { a + b; }), StartsWith(at("add", __LINE__)));
}

TEST_F(SourceLocation, of_a_function) {
  EXPECT_THAT(message_of<TypeError>([&] { matmul(a, b); }), StartsWith(at("matmul", __LINE__)));
}

TEST_F(SourceLocation, of_a_list_of_tensors) {
  EXPECT_THAT(message_of<TypeError>([&] { concat({a, b}); }), StartsWith(at("concat", __LINE__)));
  const int line = __LINE__ + 1;
  const std::string nothing = message_of<TypeError>([&] { concat({}); });
  EXPECT_EQ(nothing, at("concat", line) + "needs at least one tensor");
}

TEST_F(SourceLocation, of_a_leaf) {
  const Initializer flat = init::orthogonal();  // needs two axes
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { g.parameter("w", {3}, flat); });
  EXPECT_THAT(message, StartsWith(at("parameter", line)));
}

TEST_F(SourceLocation, of_both_uses_of_a_name) {
  const int first = __LINE__ + 1;
  g.input("twice", {1});
  const std::string second = message_of<TypeError>([&] { g.state("twice", {1}); });
  EXPECT_EQ(second,
            at("state", first + 1) +
                fmt::format(
                    "the name 'twice' is used twice, first by input (source_location_test.cpp:{})",
                    first));
}

// The function that a user's library offers passes its own caller's line on.
Tensor residual(const Tensor& x, const Tensor& y, Where where = Where::current()) {
  return add({x, where}, y);
}
TEST_F(SourceLocation, can_be_passed_on) {
  EXPECT_THAT(message_of<TypeError>([&] { residual(a, b); }), StartsWith(at("add", __LINE__)));
}

TEST_F(SourceLocation, of_nodes_made_by_sugar_is_the_users) {
  const int line = __LINE__ + 1;
  const Tensor y = matmul(a, g.input("c", {3, 4}));
  const ir::Node& node = g.data()->node(y.id().node);
  EXPECT_EQ(node.op->name, "contract");
  EXPECT_EQ(node.where.file, "source_location_test.cpp");
  EXPECT_EQ(node.where.line, static_cast<std::uint32_t>(line));
}

TEST_F(SourceLocation, of_gradients_is_that_of_the_forward_node) {
  const Tensor p = g.parameter("p", {2, 3});
  const int line = __LINE__ + 1;
  const Tensor loss = sum(gelu(p) * p);
  const Gradients d = differentiate(g, loss, {p});
  for (std::uint32_t id = static_cast<std::uint32_t>(g.size()); id < d.graph.size(); ++id) {
    const ir::Node& node = d.graph.data()->node(id);
    if (node.op == &ir::constant_op() || d.gradients[0].id().node == id) continue;
    EXPECT_EQ(node.where.file, "source_location_test.cpp") << node.op->name;
    EXPECT_EQ(node.where.line, static_cast<std::uint32_t>(line)) << node.op->name;
  }
}

TEST_F(SourceLocation, labels_stand_beside_the_op) {
  ir::GraphData::Scope outer(*g.data(), {"", 0, "block1"}), inner(*g.data(), {"", 0, "fc2"});
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { matmul(a, a); });
  EXPECT_EQ(message,
            fmt::format("matmul \"fc2\" (source_location_test.cpp:{}): inner sizes differ: a "
                        "f32[2,3], b f32[2,3]",
                        line));
}

TEST_F(SourceLocation, of_the_outermost_scope_is_the_users) {
  ir::GraphData::Scope outer(*g.data(), {"net.cpp", 41, "fc2"}),
      inner(*g.data(), {"library.cpp", 7, ""});
  EXPECT_THAT(message_of<TypeError>([&] { a + b; }), StartsWith("add \"fc2\" (net.cpp:41): "));
}

TEST_F(SourceLocation, ends_with_its_scope) {
  { ir::GraphData::Scope scope(*g.data(), {"net.cpp", 41, "fc2"}); }
  EXPECT_THAT(message_of<TypeError>([&] { a + b; }), StartsWith(at("add", __LINE__)));
}

TEST_F(SourceLocation, of_a_text_is_its_line) {
  const std::string text =
      "graph {\n  %0 = input {name=\"x\", shape=[2]}\n\n  %1 = sum(%0) {axes=[3]}\n}\n";
  EXPECT_EQ(message_of<TypeError>([&] { parse_graph(text, "/some/where/net.pn"); }),
            "sum (net.pn:4): axis 3 is out of range [-1, 1) (x f32[2])");
}

TEST_F(SourceLocation, is_printed_as_a_comment_on_demand) {
  Graph small;
  const int line = __LINE__ + 1;
  const Tensor x = small.input("x", {2});
  ir::GraphData::Scope scope(*small.data(), {"", 0, "fc\n2"});
  const int last = __LINE__ + 1;
  small.output("y", relu(x));
  const std::string text = to_text(small, {.locations = true});
  EXPECT_EQ(text, fmt::format("graph {{\n  %0 = input {{name=\"x\", dtype=f32, shape=[2]}} : "
                              "f32[2]  # source_location_test.cpp:{}\n"
                              "  %1 = relu(%0) : f32[2]  # source_location_test.cpp:{} "
                              "\"fc\\x0a2\"\n  output \"y\" = %1\n}}\n",
                              line, last));
  EXPECT_EQ(to_text(parse_graph(text)), to_text(small));
}

TEST_F(SourceLocation, a_label_without_a_place_is_still_a_comment) {
  Graph small;
  ir::GraphData::Scope scope(*small.data(), {"", 0, "ones"});
  small.data()->append(ir::constant_op(), {}, {1.0, f32, ir::Ints{}}, {});
  const std::string text = to_text(small, {.locations = true});
  EXPECT_THAT(text, EndsWith(": f32[]  # \"ones\"\n}\n"));
  EXPECT_EQ(to_text(parse_graph(text)), to_text(small));
}

}  // namespace
}  // namespace pantala
