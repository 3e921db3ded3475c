// Hashes of arrays, for telling one data set from another.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "pantala/data.h"

namespace pantala::data {

// Of dtype, shape and elements.
std::uint64_t hash_array(const Array& array, std::uint64_t hash = kHashSeed);
// Of data and labels; of a source what it says of itself.
std::uint64_t hash_dataset(const Dataset& dataset, std::uint64_t hash = kHashSeed);

}  // namespace pantala::data
