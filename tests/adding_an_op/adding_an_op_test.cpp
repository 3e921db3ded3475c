// The worked example of docs/adding-an-op.md: two patched files, and every generated facility knows
// the op.
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/gradcheck.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

TEST(AddingAnOp, the_function_evaluates) {
  Graph g;
  const Tensor x = g.constant(floats({3}, {-1, 0, 3}));
  expect_close(value_of(g, softsign(x)), {-0.5, 0, 0.75}, 1e-15);
}

TEST(AddingAnOp, the_table_documents_it) {
  const ir::OpDef& op = ops::table().get("softsign");
  EXPECT_EQ(op.family, "activation");
  EXPECT_EQ(op.doc, "x / (1 + |x|).");
  EXPECT_EQ(op.onnx, "Softsign");
}

TEST(AddingAnOp, the_generated_gradient_checks_cover_it) {
  const ir::OpDef& op = ops::table().get("softsign");
  for (const ir::Sample& sample : op.samples())
    for (const int order : {1, 2}) EXPECT_EQ(check_sample(op, sample, order), "");
}

TEST(AddingAnOp, the_text_form_round_trips) {
  Graph g;
  g.output("y", softsign(g.input("x", {2, 3})));
  EXPECT_EQ(to_text(parse_graph(to_text(g))), to_text(g));
}

TEST(AddingAnOp, body_and_expansion_agree) {
  const ir::OpDef& op = ops::table().get("softsign");
  Graph g;
  const Tensor x = g.input("x", {5});
  const Tensor direct = softsign(x), expanded = ops::expand(op, {}, std::vector{x}, {})[0];
  const ref::Bindings at{{"x", floats({5}, {-2, -0.5, 0, 0.25, 7})}};
  EXPECT_EQ(value_of(g, direct, at), value_of(g, expanded, at));
}

}  // namespace
}  // namespace pantala::tests
