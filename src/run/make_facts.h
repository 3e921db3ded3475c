// Facts of the data that a model is trained with: shapes, labels, and how values are normalised.
#pragma once

#include <cstdint>

#include "pantala/data.h"
#include "run/core/config.h"
#include "run/core/data_facts.h"

namespace pantala::run {

// All but the positions, the means for missing values and the hash. TypeError and ValueError where
// data.normalize does not fit the items.
DataFacts make_facts(const RunConfig& config, const data::Dataset& train, zoo::Task task,
                     std::int64_t classes);

}  // namespace pantala::run
