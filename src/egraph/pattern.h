// Patterns: terms with variables, as rules have them on both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/ids.h"
#include "egraph/symbols.h"

namespace pantala::egraph {

// A variable of a rule, numbered over all its patterns.
using VariableId = Id<struct VariableTag>;
using TermId = Id<struct TermTag>;

struct Term {
  VariableId variable;  // valid: any class, the same wherever the variable stands
  OpId op;              // otherwise: a node of this op
  // ... with this payload; without one, with any.
  std::optional<std::uint64_t> payload = {};
  std::vector<TermId> children = {};
  bool any_children = false;  // whatever and however many they are; left sides alone
};

// Children stand before those that use them; the last term is the root.
struct Pattern {
  IdVector<TermId, Term> terms;
  TermId root() const { return TermId(terms.size() - 1); }
};

// The names of a rule's variables, in order of first appearance.
struct Variables {
  std::vector<std::string> names;
  VariableId get(std::string_view name);
};

// Text such as `(+ ?a (* ?b 2))`: `?` begins a variable, a word in front of arguments or alone is
// an op without payload, a whole number is the op `const` with it as payload. Throws ParseError.
Pattern parse_pattern(std::string_view text, Symbols& symbols, Variables& variables);

}  // namespace pantala::egraph
