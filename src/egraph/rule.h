// Rules: what to look for, under which condition, and what it is equal to.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "egraph/egraph.h"
#include "egraph/pattern.h"

namespace pantala::egraph {

// One place where a rule's left side fits.
class Match {
 public:
  Match(std::span<const std::uint32_t> nodes, std::span<const std::uint32_t> classes)
      : nodes_(nodes), classes_(classes) {}
  // The node at a term: terms that are nodes count, those without variables aside, over all
  // patterns of the left side, each pattern from its root on, operands from left to right.
  NodeId node(std::size_t term) const { return NodeId(nodes_[term]); }
  ClassId operator[](VariableId variable) const { return ClassId(classes_[variable.index()]); }

 private:
  std::span<const std::uint32_t> nodes_, classes_;
};

struct Rule {
  std::string name;
  Variables variables;
  // Several patterns are matched together, over the same variables. What the rule makes is united
  // with the root of the first; the root of another stands at a variable of its own only through
  // `apply`.
  std::vector<Pattern> left;
  std::optional<Pattern> right = {};
  std::function<bool(const EGraph&, const Match&)> condition = {};
  // Instead of `right`: what to add and unite, with `reason`. Returns whether it did anything.
  std::function<bool(EGraph&, const Match&, const Reason& reason)> apply = {};
};

// `right` and the patterns of `left` as text (pattern.h).
Rule rewrite(Symbols& symbols, std::string name, std::string_view left, std::string_view right);

}  // namespace pantala::egraph
