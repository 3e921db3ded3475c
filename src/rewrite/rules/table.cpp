#include <algorithm>

#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

using Family = std::vector<Rule> (*)();

std::vector<Rule> rules_of(std::initializer_list<Family> families) {
  std::vector<Rule> all;
  for (const Family family : families)
    for (Rule& rule : family()) all.push_back(std::move(rule));
  return all;
}

}  // namespace

Rule canonical_rule(std::string name, Promise promise, Pattern left, std::vector<Condition> when,
                    std::function<Tensor(Fit&)> right) {
  return {.name = std::move(name),
          .promise = promise,
          .keeps_derivatives = true,
          .left = std::move(left),
          .when = std::move(when),
          .right = std::move(right)};
}

const std::vector<Rule>& step_rules() {
  static const std::vector<Rule> rules =
      rules_of({algebra_rules, pool_rules, choice_rules, conv_rules, pad_rules});
  return rules;
}

const std::vector<Rule>& canonical_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all =
        rules_of({number_rules, movement_rules, product_rules, norm_rules, batch_norm_rules,
                  activation_rules, softmax_rules, attention_rules, loss_rules});
    for (const Rule& rule : step_rules())
      if (rule.keeps_derivatives) all.push_back(rule);
    return all;
  }();
  return rules;
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all = step_rules();
    for (const Rule& rule : canonical_rules())
      if (std::ranges::find(all, rule.name, &Rule::name) == all.end()) all.push_back(rule);
    return all;
  }();
  return rules;
}

}  // namespace pantala::rewrite
