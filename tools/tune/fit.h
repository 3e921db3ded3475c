// From measured launches to the constants of a cost table.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/cost_table.h"
#include "tools/tune/measure.h"

namespace pantala::tools {

// How well a table predicts launches, of those that take long enough to be measured.
struct Score {
  std::size_t launches = 0;
  double rank_correlation = 0;
  double median_error = 0;  // 0.2: half of them are predicted within 20 %
};
Score score(std::span<const Measured> measured, const schedule::CostTable& table);

// A constant of the table and how many launches follow it most; 0: none does, or it is not fitted.
struct Constant {
  std::string_view name;
  double before = 0, after = 0;
  std::size_t launches = 0;
};
struct Fitted {
  schedule::CostTable table;
  std::vector<Constant> constants;  // in the order of the table
};

// The table that predicts the launches best, of those that are not needlessly far from the one that
// it begins with: all constants may be larger or smaller together, since machines differ in their
// speed; that one of them leaves the others has to explain some launches. None leaves its range.
Fitted fit(const schedule::CostTable& start, std::span<const Measured> measured);

// What a launch takes beside its work, in microseconds, from two chains that differ in their length
// alone; where a device takes the times it is a part of them.
double overhead_of_launch(const Measured& shorter, const Measured& longer);

// Three digits, which is more than a measurement says.
double rounded(double value);

}  // namespace pantala::tools
