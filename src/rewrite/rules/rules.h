// The tables of rules, a file per family, and all of them together in the order in which they are
// listed and tried.
#pragma once

#include <span>
#include <vector>

#include "rewrite/rule.h"

namespace pantala::rewrite {

std::vector<Rule> algebra_rules();
std::vector<Rule> pool_rules();
std::vector<Rule> choice_rules();
std::vector<Rule> conv_rules();

const std::vector<Rule>& all_rules();

}  // namespace pantala::rewrite
