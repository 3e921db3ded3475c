// Transforms, checked against the items of a data set and made ready to run: a list of steps from
// one item type to the next. Making a batch changes nothing here, so threads may share a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pantala/data.h"

namespace pantala::data {

// What random transforms draw from, with the number of the item.
struct DrawKey {
  std::uint64_t seed = 0, epoch = 0;
};

// One transform of the data, at its place in the list.
struct Step {
  Transform transform;
  std::uint32_t number = 0;
  Type from, to;
};

class Pipeline {
 public:
  // TypeError for a transform that does not fit what the ones before it leave; ValueError for a
  // label that OneHot has no class for.
  Pipeline(const Dataset& dataset, const std::vector<Transform>& transforms);

  const Type& item_type() const { return item_type_; }
  // The items with these numbers.
  Batch make(std::span<const std::int64_t> numbers, const DrawKey& key) const;
  // Of data, labels and transforms.
  std::uint64_t hash() const;

 private:
  void add(const Transform& transform, std::uint32_t number);
  Array make_data(std::span<const std::int64_t> numbers, const DrawKey& key) const;
  Array make_labels(std::span<const std::int64_t> numbers) const;

  Dataset dataset_;
  std::vector<Transform> transforms_;
  std::vector<Step> steps_;   // that move elements; Reshape only changes item_type_
  Type item_type_;            // after the last one
  std::int64_t classes_ = 0;  // of OneHot; 0: labels stay what they are
};

// "normalize(mean [0.5], std [0.25])": the same text for the same transform only.
std::string describe(const Transform& transform);

// The type that a transform of the data makes of `from`; TypeError if it does not fit.
Type transformed(const Transform& transform, const Type& from);
// `to` has room for step.to.
void run_step(const Step& step, const DrawKey& key, std::int64_t item, const std::byte* from,
              std::byte* to);

}  // namespace pantala::data
