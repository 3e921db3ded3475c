// Which of the given tensors go where: names, prefixes, patterns and types of weights against the
// entries of a store. Nothing is changed here.
#pragma once

#include <string>
#include <vector>

#include "pantala/weights.h"
#include "runtime/store.h"

namespace pantala::runtime {

// What takes part: `entries` are to be loaded; others of the store may be given, too, and are left
// alone (a file of a whole training run holds more than its model).
struct Receivers {
  const Store& store;
  std::vector<const Store::Entry*> entries;
  bool exact_types = false;  // no conversion
};

struct WeightsMatch {
  struct Pair {
    const Store::Entry* entry;
    std::string given;  // the name in the weights
  };
  std::vector<Pair> pairs;  // what fits
  LoadWeightsReport report;
};

// TypeError if two tensors are given for one entry.
WeightsMatch match_weights(const Receivers& receivers, const Weights& weights,
                           const LoadWeightsOptions& options);
// TypeError with everything that does not fit.
void require_fit(const WeightsMatch& match, const Weights& weights);
// Writes all pairs, or nothing: bytes and numbers are checked before the first one is written.
void write_weights(Store& store, const WeightsMatch& match, const Weights& weights);

}  // namespace pantala::runtime
