// Mean and deviation of the items of a data set, in double and in one order, so that they have the
// same bits every time.
#pragma once

#include <string>
#include <vector>

#include "pantala/data.h"

namespace pantala::run {

struct Statistics {
  std::vector<double> mean, deviation;
};
// Of items [n]: by column. Of [channels, height, width]: by channel. Otherwise one number for all.
// ValueError naming the first value that is not finite.
Statistics statistics_of(const data::Array& items, const std::string& name);

}  // namespace pantala::run
