// Canonical forms of whole graphs: what is chosen where several forms are equal, and that it takes
// time that grows as the graph does.
#include "rewrite/canonical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/face.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/rules/rules.h"
#include "support/compiled.h"

namespace pantala::rewrite::canonical_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Graph canonical(const Graph& graph) { return canonical_form(graph, canonical_rules()).graph; }

// Each level is read several times by the next: its tree has more nodes than there are numbers.
Graph tower(int levels) {
  Graph g;
  Tensor y = g.input("x", {3});
  for (int k = 0; k < levels; ++k) {
    const Tensor same = ops::apply("reshape", {y}, {{"shape", y.shape().vec()}})[0];
    y = (same * sigmoid(y) + y) * 0.5;
  }
  g.output("y", y);
  return g;
}

TEST(Canonical, deep_graphs_that_share_everything) {
  const Graph found = canonical(tower(20'000));
  EXPECT_LT(found.size(), 4U * 20'000U);
  const std::string text = to_text(canonical(tower(40)));
  EXPECT_THAT(text, HasSubstr("silu("));
  EXPECT_THAT(text, Not(HasSubstr("reshape(")));
  EXPECT_THAT(text, Not(HasSubstr("sigmoid(")));
  const ref::Bindings bindings = {{"x", Literal::floats({3}, {-1, 0.5, 2})}};
  const Graph given = tower(40), made = canonical(given);
  EXPECT_EQ(tests::differing(ref::evaluate(given, tests::results_of(given), bindings),
                             ref::evaluate(made, tests::results_of(made), bindings), 1e-12),
            "");
}

TEST(Canonical, what_several_share_is_left_by_all_of_them) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 5, 8});
  const Tensor mask = broadcast_to(g.input("mask", {5, 5}), {2, 4, 5, 5});
  Tensor y = x;
  for (int k = 0; k < 3; ++k) y = attention(y, y, y, {}, mask);
  g.output("y", y);
  EXPECT_THAT(to_text(canonical(g)), Not(HasSubstr("broadcast_to(")));
}

TEST(Canonical, nothing_changes_where_nothing_becomes_shorter) {
  Graph g;
  const Tensor x = g.input("x", {4, 6});
  g.output("product", matmul(reshape(x, {2, 2, 6}), g.input("w", {6, 3})));
  g.output("scaled", transpose(x) / g.constant(7, {6, 4}));
  EXPECT_EQ(to_text(canonical(g)), to_text(g));
}

TEST(Canonical, is_its_own_canonical_form) {
  for (const int levels : {1, 7}) {
    const Graph once = canonical(tower(levels));
    EXPECT_EQ(to_text(canonical(once)), to_text(once));
  }
}

}  // namespace
}  // namespace pantala::rewrite::canonical_test
