// Rewriting graphs: what a copy keeps, and what a rule may change.
#include "ir/rewriter.h"

#include <gtest/gtest.h>

#include "ops/arithmetic.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala {
namespace {

using ir::Rewriter;
using tests::message_of;

// Nodes that are used and one that is not, an output, an update, a random op, a label.
Graph dropout_step() {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), p = g.parameter("p", {2, 3}, init::normal(0, 1));
  const ir::GraphData::Scope scope(*g.data(), {"net.cpp", 41, "fc2"});
  const Tensor unused = exp(x);
  const Tensor y = dropout(x * p, 0.25);
  g.output("loss", sum(y));
  g.update(p, p + y);
  return g;
}

TEST(Rewriter, copies_every_node_to_an_equal_graph) {
  const Graph g = dropout_step();
  Graph copy;
  Rewriter rewriter(*g.data(), copy.data());
  rewriter.copy_all();
  rewriter.write_outputs();
  rewriter.write_updates();
  EXPECT_EQ(to_text(copy, {.locations = true}), to_text(g, {.locations = true}));
  for (std::uint32_t id = 0; id < g.size(); ++id) {
    EXPECT_EQ(rewriter.at({id, 0}).id(), (ValueId{id, 0}));
    EXPECT_EQ(copy.data()->node(id).where.label, g.data()->node(id).where.label);
  }
  verify(copy);
}

TEST(Rewriter, leaves_out_what_no_output_or_update_needs) {
  const Graph g = dropout_step();
  const Graph copy = ir::rewrite(g, {});
  EXPECT_EQ(copy.size(), g.size() - 1);
  for (const ir::Node& node : copy.data()->nodes()) EXPECT_NE(node.op->name, "exp");
  EXPECT_EQ(copy.outputs().size(), 1u);
  EXPECT_EQ(copy.updates().size(), 1u);
  verify(copy);
}

TEST(Rewriter, writes_only_the_updates_that_are_kept) {
  Graph g;
  const Tensor p = g.parameter("p", {2}, init::zeros()), s = g.state("s", {2}, init::zeros());
  g.update(p, p + 1.0);
  g.update(s, s + p);
  Graph copy;
  Rewriter rewriter(*g.data(), copy.data());
  rewriter.copy_all();
  rewriter.write_updates([&](std::uint32_t leaf) { return leaf != p.id().node; });
  ASSERT_EQ(copy.updates().size(), 1u);
  EXPECT_EQ(copy.updates()[0].first, copy.leaf("s"));
  verify(copy);
}

TEST(Rewriter, gives_no_stream_out_twice) {
  Graph g = dropout_step();
  const std::int64_t dropped = g.data()->next_stream();
  Graph copy = ir::rewrite(g, {});
  EXPECT_GT(copy.data()->next_stream(), dropped);
}

TEST(Rewriter, a_rule_replaces_a_nodes_results_under_its_place_and_label) {
  const Graph g = dropout_step();
  // Every product is written as a sum of logarithms.
  const Graph changed = ir::rewrite(
      g, [](Rewriter&, const ir::Node& node, const std::vector<Tensor>& in) -> Rewriter::Results {
        if (!ops::is<op::Mul>(node)) return {};
        return {exp(log(in[0]) + log(in[1]))};
      });
  int logarithms = 0;
  for (const ir::Node& node : changed.data()->nodes()) {
    if (!ops::is<op::Log>(node)) continue;
    ++logarithms;
    EXPECT_EQ(node.where.file, "net.cpp");
    EXPECT_EQ(node.where.line, 41u);
    EXPECT_EQ(node.where.label, "fc2");
  }
  EXPECT_EQ(logarithms, 2);
  verify(changed);
}

TEST(Rewriter, values_that_are_set_are_read_instead) {
  Graph g;
  const Tensor x = g.input("x", {2}), y = x + 1.0, z = y * y;
  Graph target;
  const Tensor given = target.constant(3, {2});
  Rewriter rewriter(*g.data(), target.data());
  rewriter.set(y.id(), given);
  rewriter.copy(std::vector{z.id()});
  EXPECT_FALSE(target.find("x"));
  EXPECT_EQ(tests::value_of(target, rewriter.at(z.id())), (std::vector<double>{9, 9}));
  EXPECT_EQ(message_of<InternalError>([&] { rewriter.at(x.id()); }),
            "rewriter: %0:0 (input) was not copied");
}

TEST(Rewriter, a_rule_must_keep_types) {
  Graph g;
  g.output("y", square(g.input("x", {2, 3})));
  const auto becomes = [&](const std::function<Tensor(const Tensor&)>& f) {
    return message_of<InternalError>([&] {
      ir::rewrite(
          g,
          [&](Rewriter&, const ir::Node& node, const std::vector<Tensor>& in) -> Rewriter::Results {
            return node.inputs.empty() ? Rewriter::Results{} : Rewriter::Results{f(in[0])};
          });
    });
  };
  EXPECT_EQ(becomes([](const Tensor& x) { return sum(x); }),
            "rewriter: result 0 of square became f32[] instead of f32[2,3]");
  EXPECT_EQ(becomes([](const Tensor& x) { return cast(x, f64); }),
            "rewriter: result 0 of square became f64[2,3] instead of f32[2,3]");
}

TEST(Rewriter, refuses_to_write_a_graph_into_itself) {
  Graph g = dropout_step();
  EXPECT_THROW(Rewriter(*g.data(), g.data()), InternalError);
}

}  // namespace
}  // namespace pantala
