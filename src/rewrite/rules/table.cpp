#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (std::vector<Rule> (*family)() : {algebra_rules, pool_rules, choice_rules, conv_rules})
      for (Rule& rule : family()) all.push_back(std::move(rule));
    return all;
  }();
  return rules;
}

}  // namespace pantala::rewrite
