// Missing values of a table (NaN, where data.missing is "mean"), and the means that stand in for
// them.
#pragma once

#include <vector>

#include "pantala/data.h"

namespace pantala::run {

// Of what is there, by column of data. ValueError for a column in which nothing is.
std::vector<double> column_means(const data::Dataset& train);
// The same items with these means where a value is missing.
data::Dataset with_means(const data::Dataset& set, const std::vector<double>& means);

}  // namespace pantala::run
