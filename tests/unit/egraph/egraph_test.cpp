#include "egraph/egraph.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "support/random_graph.h"
#include "support/terms.h"

namespace pantala::egraph {
namespace {

using tests::add_term;

TEST(EGraph, equal_terms_are_one_node) {
  EGraph graph;
  const ClassId a = add_term(graph, "(+ x (* 2 y))");
  const ClassId b = add_term(graph, "(+ x (* 2 y))");
  EXPECT_EQ(a, b);
  EXPECT_EQ(graph.nodes(), 5u);
  EXPECT_EQ(graph.classes(), 5u);
}

TEST(EGraph, symbols_differ_by_payload_and_arity) {
  EGraph graph;
  const ClassId x = add_term(graph, "x");
  const OpId conv = graph.symbols().op("conv");
  const std::array<ClassId, 2> two = {x, x};
  const ClassId a = graph.add(graph.symbols().intern(conv, 1, 1), {&x, 1});
  const ClassId b = graph.add(graph.symbols().intern(conv, 1, 2), {&x, 1});
  const ClassId c = graph.add(graph.symbols().intern(conv, 2, 1), two);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(graph.nodes(), 4u);
}

TEST(EGraph, congruence_goes_all_the_way_up) {
  EGraph graph;
  const ClassId a = add_term(graph, "(f (g (h x)))");
  const ClassId b = add_term(graph, "(f (g (h y)))");
  EXPECT_NE(graph.find(a), graph.find(b));
  EXPECT_TRUE(graph.unite(add_term(graph, "x"), add_term(graph, "y")));
  EXPECT_FALSE(graph.is_rebuilt());
  graph.rebuild();
  EXPECT_EQ(graph.find(a), graph.find(b));
  EXPECT_EQ(graph.nodes(), 5u);  // x, y, h, g, f
  EXPECT_EQ(graph.classes(), 4u);
}

TEST(EGraph, a_term_that_contains_itself_is_a_cycle_of_classes) {
  EGraph graph;
  const ClassId x = add_term(graph, "x");
  const ClassId fx = add_term(graph, "(f x)");
  const ClassId fffx = add_term(graph, "(f (f (f x)))");
  graph.unite(x, fx);
  graph.rebuild();
  EXPECT_EQ(graph.find(x), graph.find(fffx));
  EXPECT_EQ(graph.classes(), 1u);
  EXPECT_EQ(graph.nodes(), 2u);
}

TEST(EGraph, lookup_finds_what_is_there_under_any_name) {
  EGraph graph;
  const ClassId fx = add_term(graph, "(f x)");
  const ClassId x = add_term(graph, "x"), y = add_term(graph, "y");
  const SymbolId f = graph.symbols().intern(graph.symbols().op("f"), 1);
  EXPECT_EQ(graph.lookup(f, {&x, 1}), fx);
  EXPECT_EQ(graph.lookup(f, {&y, 1}), std::nullopt);
  graph.unite(x, y);
  graph.rebuild();
  EXPECT_EQ(graph.lookup(f, {&y, 1}), graph.find(fx));
}

// The users of b become users of a; the second of them turns out to be equal to a and has more
// users than a, so that a loses its name while the users of b are being repaired.
TEST(EGraph, a_class_may_lose_its_name_again_while_users_are_repaired) {
  EGraph graph;
  const ClassId a = add_term(graph, "a"), b = add_term(graph, "b");
  graph.unite(a, add_term(graph, "(f a)"));
  graph.rebuild();
  for (const char* text : {"(p a)", "(q a)"}) add_term(graph, text);
  for (const char* op : {"1", "2", "3", "4", "5", "6", "7"})
    add_term(graph, "(r (f b) " + std::string(op) + ")");
  const ClassId gb = add_term(graph, "(g b)");
  graph.unite(a, b);
  graph.rebuild();
  EXPECT_EQ(graph.find(a), graph.find(add_term(graph, "(f b)")));
  const std::size_t nodes = graph.nodes();
  EXPECT_EQ(graph.find(add_term(graph, "(g a)")), graph.find(gb));
  EXPECT_EQ(graph.nodes(), nodes);
  for (std::size_t k = 0; k < graph.node_ids(); ++k) {
    const NodeId node(k);
    for (std::uint32_t n = 0; graph.is_live(node) && n < graph.arity(node); ++n)
      EXPECT_EQ(graph.child(node, n), graph.find(graph.child(node, n)));
  }
}

// Congruence closure by trying all pairs until nothing changes.
class SlowClosure {
 public:
  struct Node {
    int op;
    std::vector<std::size_t> children;
  };
  std::size_t add(int op, std::vector<std::size_t> children) {
    nodes_.push_back({op, std::move(children)});
    names_.push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }
  void unite(std::size_t a, std::size_t b) {
    const std::size_t from = names_[a], into = names_[b];
    for (std::size_t& name : names_)
      if (name == from) name = into;
  }
  bool are_equal(std::size_t a, std::size_t b) const { return names_[a] == names_[b]; }
  void close() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t a = 0; a < nodes_.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          if (!are_equal(a, b) && are_congruent(a, b)) unite(a, b), changed = true;
    }
  }

 private:
  bool are_congruent(std::size_t a, std::size_t b) const {
    if (nodes_[a].op != nodes_[b].op) return false;
    for (std::size_t k = 0; k < nodes_[a].children.size(); ++k)
      if (!are_equal(nodes_[a].children[k], nodes_[b].children[k])) return false;
    return true;
  }
  std::vector<Node> nodes_;
  std::vector<std::size_t> names_;
};

TEST(EGraph, random_unions_give_the_closure_that_trying_all_pairs_gives) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    tests::Random random(seed);
    EGraph graph;
    SlowClosure slow;
    std::vector<ClassId> classes;
    std::vector<std::size_t> terms;
    const auto add = [&](int op, const std::vector<std::size_t>& children) {
      std::vector<ClassId> of;
      std::vector<std::size_t> slow_of;
      for (const std::size_t child : children)
        of.push_back(classes[child]), slow_of.push_back(terms[child]);
      const OpId name = graph.symbols().op(std::to_string(op));
      classes.push_back(
          graph.add(graph.symbols().intern(name, static_cast<std::uint32_t>(of.size())), of));
      terms.push_back(slow.add(op, slow_of));
    };
    for (int leaf = 0; leaf < 6; ++leaf) add(leaf, {});
    for (int round = 0; round < 4; ++round) {
      for (int k = 0; k < 10; ++k) {
        const auto any = [&] {
          return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(terms.size())));
        };
        if (random.chance(0.4))
          add(10 + static_cast<int>(random.below(2)), {any()});
        else
          add(20 + static_cast<int>(random.below(2)), {any(), any()});
      }
      for (int k = 0; k < 2; ++k) {
        const auto a = static_cast<std::size_t>(random.below(12));
        const auto b = static_cast<std::size_t>(random.below(12));
        graph.unite(classes[a], classes[b]);
        slow.unite(terms[a], terms[b]);
      }
      graph.rebuild();
      slow.close();
      for (std::size_t a = 0; a < terms.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          ASSERT_EQ(graph.find(classes[a]) == graph.find(classes[b]),
                    slow.are_equal(terms[a], terms[b]))
              << "seed " << seed << ", terms " << a << " and " << b;
    }
  }
}

// A value per class: the number that it is known to be.
class Numbers : public Analysis {
 public:
  void make(const EGraph& graph, ClassId made, NodeId node) override {
    values_.resize(std::max(values_.size(), made.index() + 1));
    values_[made.index()] = value(graph, node);
  }
  bool join(const EGraph& graph, ClassId into, NodeId node) override {
    const std::optional<std::int64_t> known = value(graph, node);
    if (values_[into.index()] || !known) return false;
    values_[into.index()] = known;
    return true;
  }
  Merged merge(const EGraph&, ClassId into, ClassId from) override {
    const bool learns = !values_[into.index()] && values_[from.index()];
    const bool teaches = values_[into.index()] && !values_[from.index()];
    if (learns) values_[into.index()] = values_[from.index()];
    return {learns, teaches};
  }
  void modify(EGraph& graph, ClassId changed) override {
    const std::optional<std::int64_t> known = values_[graph.find(changed).index()];
    if (!known) return;
    const OpId op = graph.symbols().op("const");
    graph.unite(changed,
                graph.add(graph.symbols().intern(op, 0, static_cast<std::uint64_t>(*known)), {}));
  }
  std::optional<std::int64_t> of(const EGraph& graph, ClassId id) const {
    return values_[graph.find(id).index()];
  }

 private:
  std::optional<std::int64_t> value(const EGraph& graph, NodeId node) const {
    const std::string& name = graph.symbols().name(graph.op(node));
    if (name == "const")
      return static_cast<std::int64_t>(graph.symbols()[graph.symbol(node)].payload);
    if (name != "+" && name != "*") return std::nullopt;
    const auto a = of(graph, graph.child(node, 0)), b = of(graph, graph.child(node, 1));
    if (!a || !b) return std::nullopt;
    return name == "+" ? *a + *b : *a * *b;
  }
  std::vector<std::optional<std::int64_t>> values_;
};

TEST(EGraph, an_analysis_computes_constants_and_enters_them) {
  Numbers numbers;
  EGraph graph({.proofs = false, .analysis = &numbers});
  const ClassId sum = add_term(graph, "(+ (* 2 3) (+ 4 x))");
  const ClassId six = add_term(graph, "(* 2 3)");
  graph.rebuild();
  EXPECT_EQ(numbers.of(graph, six), 6);
  EXPECT_EQ(graph.find(six), graph.find(add_term(graph, "6")));
  EXPECT_EQ(numbers.of(graph, sum), std::nullopt);
  // What becomes known of x becomes known of all that is computed from it.
  graph.unite(add_term(graph, "x"), add_term(graph, "5"));
  graph.rebuild();
  EXPECT_EQ(numbers.of(graph, sum), 15);
  EXPECT_EQ(graph.find(sum), graph.find(add_term(graph, "15")));
}

}  // namespace
}  // namespace pantala::egraph
