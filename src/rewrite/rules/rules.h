// The tables of rules, a file per family, in the order in which they are listed and tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewrite/rule.h"

namespace pantala::rewrite {

// A row that keeps derivatives; `when` may be empty.
Rule canonical_rule(std::string name, Promise promise, Pattern left, std::vector<Condition> when,
                    std::function<Tensor(Fit&)> right);

// --- conditions that several families ask for

// A variable has the same number everywhere.
Condition is_number(std::string variable);
// What a variable is, if it is a number.
Condition number_is(std::string name, std::string variable, bool (*holds)(double));
// A variable has a number for each channel of the left side, which is axis 1.
Condition is_per_channel(std::string variable);
// What a norm adds to a variance.
Condition is_epsilon(std::string variable);
// Whether a type has the number with all its digits: neither 0, nor infinite, nor subnormal.
bool is_ordinary(double value, DType dtype);

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
