#include "egraph/rule.h"

#include <fmt/format.h>

#include "pantala/error.h"

namespace pantala::egraph {

Rule rewrite(Symbols& symbols, std::string name, std::string_view left, std::string_view right) {
  Rule rule = {.name = std::move(name), .variables = {}, .left = {}};
  rule.left.push_back(parse_pattern(left, symbols, rule.variables));
  const std::size_t bound = rule.variables.names.size();
  rule.right = parse_pattern(right, symbols, rule.variables);
  if (rule.variables.names.size() > bound)
    throw ParseError(fmt::format("rule '{}': ?{} stands on the right side alone", rule.name,
                                 rule.variables.names[bound]));
  return rule;
}

}  // namespace pantala::egraph
