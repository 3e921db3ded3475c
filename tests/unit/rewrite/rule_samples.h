// Samples of the left sides of rules, for rules_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "support/random_graph.h"

namespace pantala::rewrite {

struct RuleSample {
  std::string rule;
  std::function<Graph(tests::Random&)> make;
  // Whether the condition refuses it. Then it must be wrong without the condition.
  bool refused = false;
  // Of the largest magnitude, in double: 0 where both sides compute the same numbers.
  double tolerance = 0;
};

// A shape of up to so many axes, some of size 0 and 1.
Shape some_shape(tests::Random& r, int most_axes = 4);

// Of the rules that canonicalise.
std::vector<RuleSample> canonical_samples();

}  // namespace pantala::rewrite
