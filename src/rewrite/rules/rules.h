// The tables of rules, a file per family, in the order in which they are listed and tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewrite/rule.h"

namespace pantala::rewrite {

// A row that keeps derivatives; `when` may be empty.
Rule canonical_rule(std::string name, Promise promise, Pattern left, std::function<bool(Fit&)> when,
                    std::function<Tensor(Fit&)> right);

// Whether a variable has a number for each channel of the left side, which is axis 1.
bool is_per_channel(Fit& f, std::string_view name);

// What makes a lowered step faster.
std::vector<Rule> algebra_rules();
std::vector<Rule> pool_rules();
std::vector<Rule> choice_rules();
std::vector<Rule> conv_rules();
std::vector<Rule> pad_rules();
// What recognises the ops of the library in what exporters write.
std::vector<Rule> number_rules();
std::vector<Rule> movement_rules();
std::vector<Rule> product_rules();
std::vector<Rule> norm_rules();
std::vector<Rule> batch_norm_rules();
std::vector<Rule> activation_rules();
std::vector<Rule> softmax_rules();
std::vector<Rule> attention_rules();
std::vector<Rule> loss_rules();

// For the search, on a whole step after lowering.
const std::vector<Rule>& step_rules();
// For canonicalisation, on the user's graph before it is differentiated: all that keep derivatives.
const std::vector<Rule>& canonical_rules();
const std::vector<Rule>& all_rules();

}  // namespace pantala::rewrite
