// Extraction: selections are acyclic, name nodes of their own classes, cost no more than what was
// given, and come close to the best there is, which small e-graphs can be searched for.
#include "rewrite/extraction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/hash.h"
#include "ops/arithmetic.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/saturation.h"
#include "support/random_graph.h"

namespace pantala::rewrite {
namespace {

using tests::Random;

// A graph of a few nodes. Which of them are equal is said at random: extraction does not ask
// whether it is true.
Graph random_terms(Random& r) {
  Graph g;
  std::vector<Tensor> values = {g.input("a", {}), g.input("b", {})};
  const auto any = [&] { return r.pick(values); };
  for (int k = 0; k < 8; ++k) {
    switch (r.below(4)) {
      case 0:
        values.push_back(exp(any()));
        break;
      case 1:
        values.push_back(sin(any()));
        break;
      case 2:
        values.push_back(any() + any());
        break;
      default:
        values.push_back(any() * any());
    }
  }
  g.output("y", values.back());
  g.output("z", any());
  return g;
}

struct Puzzle {
  explicit Puzzle(std::uint64_t seed) : r(seed), joint(random_terms(r)) {
    const std::size_t classes = joint.equal().class_ids();
    const auto some_class = [&] {
      return ClassId(static_cast<std::size_t>(r.below(static_cast<std::int64_t>(classes))));
    };
    for (std::int64_t k = r.between(1, 5); k > 0; --k) {
      const ClassId a = some_class(), b = some_class();
      joint.equal().unite(a, b);
      joint.equal().rebuild();
    }
  }
  // From 1 to 20, the same for nodes that have become the same.
  double cost(NodeId node) const {
    std::uint64_t hash = joint.equal().symbol(node).index();
    for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k)
      hash = hash_combine(hash, joint.equal().find(joint.equal().child(node, k)).index());
    return 1 + static_cast<double>(mix64(hash) % 20);
  }

  Random r;
  Joint joint;
};

// All selections there are, one class after another.
class BruteForce {
 public:
  explicit BruteForce(const Puzzle& puzzle) : p_(puzzle) {
    for (std::size_t k = 0; k < p_.joint.equal().node_ids(); ++k)
      if (p_.joint.equal().is_live(NodeId(k)))
        members_[p_.joint.equal().class_of(NodeId(k))].push_back(NodeId(k));
  }
  double least() {
    std::vector<ClassId> needed;
    for (const auto& [name, value] : p_.joint.graph().outputs())
      needed.push_back(p_.joint.equal().find(p_.joint.class_of(value.id())));
    decide(needed, 0);
    return least_;
  }

 private:
  void decide(std::vector<ClassId> needed, double sum) {
    while (!needed.empty() && chosen_.contains(needed.back())) needed.pop_back();
    if (sum >= least_) return;
    if (needed.empty()) {
      if (is_acyclic()) least_ = sum;
      return;
    }
    const ClassId id = needed.back();
    needed.pop_back();
    for (const NodeId node : members_.at(id)) {
      chosen_[id] = node;
      std::vector<ClassId> more = needed;
      for (std::uint32_t k = 0; k < p_.joint.equal().arity(node); ++k)
        more.push_back(p_.joint.equal().find(p_.joint.equal().child(node, k)));
      decide(std::move(more), sum + p_.cost(node));
    }
    chosen_.erase(id);
  }

  bool is_acyclic() {
    std::map<ClassId, int> state;
    const std::function<bool(ClassId)> visit = [&](ClassId id) {
      if (state[id] == 1) return false;
      if (state[id] == 2) return true;
      state[id] = 1;
      const NodeId node = chosen_.at(id);
      for (std::uint32_t k = 0; k < p_.joint.equal().arity(node); ++k)
        if (!visit(p_.joint.equal().find(p_.joint.equal().child(node, k)))) return false;
      state[id] = 2;
      return true;
    };
    return std::ranges::all_of(chosen_, [&](const auto& one) { return visit(one.first); });
  }

  const Puzzle& p_;
  std::map<ClassId, std::vector<NodeId>> members_;
  std::map<ClassId, NodeId> chosen_;
  double least_ = std::numeric_limits<double>::infinity();
};

TEST(Extraction, is_close_to_the_best_there_is) {
  constexpr int kPuzzles = 2000;
  double above = 0;
  int optimal = 0;
  for (int seed = 0; seed < kPuzzles; ++seed) {
    const Puzzle puzzle(static_cast<std::uint64_t>(seed));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, to_text(puzzle.joint.graph())));
    const NodeCost cost = [&](NodeId node) { return puzzle.cost(node); };
    const Selection given = given_selection(puzzle.joint);
    const Selection best = improved(puzzle.joint, given, cost);
    for (std::size_t k = 0; k < best.nodes.size(); ++k) {
      const bool is_right =
          !best.nodes[k].valid() || puzzle.joint.equal().class_of(best.nodes[k]) == ClassId(k);
      ASSERT_TRUE(is_right) << "a node of another class";
    }
    const double found = cost_of(puzzle.joint, best, cost);  // throws for a cycle
    ASSERT_LE(found, cost_of(puzzle.joint, given, cost));
    const double least = BruteForce(puzzle).least();
    ASSERT_GE(found, least * (1 - 1e-12));
    above += found / least - 1;
    optimal += found <= least * (1 + 1e-12);
    EXPECT_EQ(to_graph(puzzle.joint, best).outputs().size(), 2U);
  }
  EXPECT_LE(above / kPuzzles, 0.01);
  EXPECT_GE(optimal, kPuzzles * 9 / 10);
}

// A product is cheaper than a division, but the reciprocal has to be paid once: one division stays,
// several become products, though none of them alone would.
TEST(Extraction, exchanges_what_pays_only_together) {
  const auto divisions_left = [](int divisions) {
    Graph g;
    const Tensor s = g.input("s", {4});
    for (int k = 0; k < divisions; ++k)
      g.output(fmt::format("y{}", k), g.input(fmt::format("x{}", k), {4}) / s);
    const Saturation all(
        g, {{.name = "product", .left = node<op::Div>(any("x"), any("s")), .right = [](Fit& f) {
               return f["x"] * reciprocal(f["s"]);
             }}});
    const NodeCost cost = [&](NodeId node) {
      const std::string_view op = all.joint().op(node)->name;
      return op == "div" ? 10.0 : op == "mul" ? 7.0 : op == "reciprocal" ? 5.0 : 1.0;
    };
    const Joint& joint = all.joint();
    const Graph best = to_graph(joint, improved(joint, given_selection(joint), cost));
    return std::ranges::count(std::as_const(best).data()->nodes(), "div",
                              [](const ir::Node& node) { return node.op->name; });
  };
  EXPECT_EQ(divisions_left(1), 1);
  EXPECT_EQ(divisions_left(2), 0);
  EXPECT_EQ(divisions_left(5), 0);
}

TEST(Extraction, gives_the_graph_back_as_it_was) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const tests::RandomGraph random = tests::random_graph(seed);
    const Joint joint(random.graph);
    // Nodes that nothing needs are left out: the second time there are none.
    const Graph once = to_graph(joint, given_selection(joint));
    const Joint again(once);
    EXPECT_EQ(to_text(to_graph(again, given_selection(again))), to_text(once));
  }
}

TEST(Extraction, takes_the_applications_that_are_wanted) {
  Graph g;
  const Tensor x = g.input("x", {4});
  g.output("y", -exp(-sin(x)));
  const Saturation all(g, {{.name = "exp of a negation",
                            .left = node<op::Exp>(node<op::Neg>(any("x"))),
                            .right = [](Fit& f) { return reciprocal(exp(f["x"])); }},
                           {.name = "negated reciprocal",
                            .left = node<op::Neg>(node<op::Reciprocal>(any("x"))),
                            .right = [](Fit& f) { return reciprocal(-f["x"]); }}});
  ASSERT_EQ(all.applications().size(), 2U);
  const auto ops = [&](bool first, bool second) {
    const Selection selection = selection_with(all.joint(), all.applications(), {first, second});
    const Graph graph = to_graph(all.joint(), selection);
    std::string names;
    for (const ir::Node& node : graph.data()->nodes()) names += fmt::format("{} ", node.op->name);
    return names;
  };
  EXPECT_EQ(ops(false, false), "input sin neg exp neg ");
  EXPECT_EQ(ops(true, false), "input sin exp reciprocal neg ");
  EXPECT_EQ(ops(false, true), "input sin exp neg reciprocal ");
  EXPECT_EQ(ops(true, true), "input sin exp neg reciprocal ");
}

}  // namespace
}  // namespace pantala::rewrite
