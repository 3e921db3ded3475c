#include "rewrite/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "pantala/error.h"

namespace pantala::rewrite {

using egraph::Match;
using egraph::Reason;
using egraph::TermId;
using egraph::VariableId;

std::string_view to_string(Promise promise) {
  switch (promise) {
    case Promise::bits:
      return "bits";
    case Promise::zero_sign:
      return "bits but for the sign of zero";
    case Promise::order:
      return "bits where the order of summation is kept";
    case Promise::real:
      return "real numbers";
    case Promise::finite:
      break;
  }
  return "finite real numbers";
}

Pattern any(std::string name) {
  return Pattern({.kind = Pattern::Kind::any, .name = std::move(name)});
}
Pattern number(double value) {
  return Pattern({.kind = Pattern::Kind::number, .name = "", .number = value});
}
Pattern result(std::uint32_t number, const Pattern& of) {
  return Pattern({.kind = Pattern::Kind::result, .name = "", .result = number, .operands = {of}});
}

// The engine's form of a pattern, with the names by which conditions and right sides speak.
struct CompiledPattern {
  egraph::Pattern pattern;
  egraph::Variables variables;
  std::vector<std::string> nodes;  // names, in the order of Match::node
  std::vector<std::pair<VariableId, double>> numbers;

  TermId add(const Pattern& from, Joint& joint);
};

TermId CompiledPattern::add(const Pattern& from, Joint& joint) {
  const Pattern::Data& data = from.data();
  egraph::Symbols& symbols = joint.equal().symbols();
  switch (data.kind) {
    case Pattern::Kind::any:
      return pattern.terms.push_back({.variable = variables.get(data.name), .op = {}});
    case Pattern::Kind::number: {
      const VariableId variable = variables.get(fmt::format("number {}", numbers.size()));
      numbers.emplace_back(variable, data.number);
      return pattern.terms.push_back({.variable = variable, .op = {}});
    }
    case Pattern::Kind::node:
    case Pattern::Kind::result:
      break;
  }
  nodes.push_back(data.name);
  const bool is_result = data.kind == Pattern::Kind::result;
  egraph::Term term = {.variable = {}, .op = symbols.op(is_result ? "result" : data.op->name)};
  if (is_result) term.payload = data.result;
  for (const Pattern& operand : data.operands) term.children.push_back(add(operand, joint));
  term.any_children = data.any_operands;
  return pattern.terms.push_back(std::move(term));
}

ClassId Fit::class_of(std::string_view name) const {
  const auto& names = pattern_.variables.names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return joint_.equal().class_of(node_of(name));
  return match_[VariableId(static_cast<std::size_t>(found - names.begin()))];
}

NodeId Fit::node_of(std::string_view name) const {
  const auto found = std::find(pattern_.nodes.begin(), pattern_.nodes.end(), name);
  if (found == pattern_.nodes.end())
    throw InternalError(
        fmt::format("rewrite: a rule has neither a variable nor a node '{}'", name));
  return match_.node(static_cast<std::size_t>(found - pattern_.nodes.begin()));
}

std::vector<ClassId> Fit::operands(std::string_view name) const {
  const NodeId node = node_of(name);
  std::vector<ClassId> classes;
  for (std::uint32_t k = 0; k < joint_.equal().arity(node); ++k)
    classes.push_back(joint_.equal().find(joint_.equal().child(node, k)));
  return classes;
}

double Fit::number(std::string_view variable) const {
  const std::optional<double> value = splat(variable);
  if (!value) throw InternalError(fmt::format("rewrite: '{}' is no number", variable));
  return *value;
}

egraph::Rule compile(const Rule& rule, Joint& joint, std::vector<Application>& applications) {
  const auto compiled = std::make_shared<CompiledPattern>();
  compiled->add(rule.left, joint);
  egraph::Rule row = {.name = rule.name, .variables = compiled->variables, .left = {}};
  row.left.push_back(compiled->pattern);
  row.condition = [&joint, compiled, when = rule.when, worth = rule.worth](const egraph::EGraph&,
                                                                           const Match& match) {
    for (const auto& [variable, value] : compiled->numbers) {
      const std::optional<double> known = joint.splat(match[variable]);
      if (!known || std::bit_cast<std::uint64_t>(*known) != std::bit_cast<std::uint64_t>(value))
        return false;
    }
    Fit fit(joint, *compiled, match);
    const auto holds = [&](const Condition& one) { return one.holds(fit); };
    return std::ranges::all_of(when, holds) && (!worth || worth(fit));
  };
  row.apply = [&joint, &applications, compiled, right = rule.right, name = rule.name](
                  egraph::EGraph& graph, const Match& match, const Reason& reason) {
    Fit fit(joint, *compiled, match);
    joint.speak_for(reason, name);
    const ClassId made = graph.find(joint.add(right(fit)));
    const NodeId computes = graph.representative(made);
    if (!graph.unite(graph.class_of(match.node(0)), made, reason)) return false;
    applications.push_back({reason.rule, match.node(0), computes});
    return true;
  };
  return row;
}

}  // namespace pantala::rewrite
