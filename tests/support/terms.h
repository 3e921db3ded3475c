// Terms and rules as text, for tests of the e-graph.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "egraph/rule.h"

namespace pantala::tests {

// Adds a term without variables, such as `(+ x (* 2 y))`.
inline egraph::ClassId add_term(egraph::EGraph& graph, const egraph::Pattern& pattern,
                                egraph::TermId id) {
  const egraph::Term& term = pattern.terms[id];
  std::vector<egraph::ClassId> children;
  for (const egraph::TermId child : term.children)
    children.push_back(add_term(graph, pattern, child));
  const auto arity = static_cast<std::uint32_t>(children.size());
  return graph.add(graph.symbols().intern(term.op, arity, term.payload.value_or(0)), children);
}
inline egraph::ClassId add_term(egraph::EGraph& graph, std::string_view text) {
  egraph::Variables none;
  const egraph::Pattern pattern = egraph::parse_pattern(text, graph.symbols(), none);
  return add_term(graph, pattern, pattern.root());
}

}  // namespace pantala::tests
