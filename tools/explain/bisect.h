// Which rules make a result look wrong: a step is run as the compiler chose it and as it was given,
// and where they differ, with ever fewer rules.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/inspect/subject.h"

namespace pantala::tools {

// A set without anything that it can do without: `holds` of it, and of no set with one name less.
// `holds` must be true of `names`; it is never asked about the empty set.
using Holds = std::function<bool(const std::vector<std::string>&)>;
std::vector<std::string> smallest_set(std::vector<std::string> names, const Holds& holds);

struct Difference {
  std::string name;  // "output loss", "parameter fc1.weight", "state adam.m.fc1.weight"
  // The norm of the difference by that of the value, or by a thousandth of the largest norm of its
  // kind: what is nothing but rounding is no difference. 0: equal bits; infinite: not a number, or
  // infinite itself, in one of the two.
  double relative = 0;
};

struct Bisection {
  std::vector<std::string> rules;       // that fired
  std::vector<Difference> differences;  // with all rules against none, largest first
  // Sets of rules, each of which makes a difference without the others, and no part of it does.
  std::vector<std::vector<std::string>> causes;
  int runs = 0;  // steps that were compiled and run
};
// After one step on made-up inputs from the same first values. TypeError if nothing is searched
// for, or for a negative tolerance.
Bisection bisect(const Inspected& inspected, double tolerance);

std::string bisection_text(const Bisection& found, double tolerance);
std::string bisection_json(const Bisection& found, double tolerance);

}  // namespace pantala::tools
