// Transforms, checked against the items of a data set and made ready to run: a list of steps from
// one item type to the next. Making a batch changes nothing here, so threads may share one.
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
  ItemForm from, to;
};

class Preparation {
 public:
  // TypeError for a transform that does not fit what the ones before it leave, and for items of any
  // size that they do not bring to one; ValueError for a label that OneHot has no class for.
  Preparation(const Dataset& dataset, const std::vector<Transform>& transforms);

  Type item_type() const { return {form_.dtype, form_.shape}; }
  // The items with these numbers.
  Batch make(std::span<const std::int64_t> numbers, const DrawKey& key) const;
  // Of data, labels and transforms.
  std::uint64_t hash() const;

 private:
  void add(const Transform& transform, std::uint32_t number);
  Array make_data(std::span<const std::int64_t> numbers, const DrawKey& key) const;
  Array make_labels(std::span<const std::int64_t> numbers) const;
  Array take_data(std::span<const std::int64_t> numbers) const;

  Dataset dataset_;
  std::vector<Transform> transforms_;
  std::vector<Step> steps_;   // that move elements; Reshape only changes form_
  ItemForm form_;             // after the last one
  std::int64_t classes_ = 0;  // of OneHot; 0: labels stay what they are
};

// "normalize(mean [0.5], std [0.25])": the same text for the same transform only.
std::string describe(const Transform& transform);

// What a transform of the data makes of items of this form; TypeError if it does not fit.
ItemForm transformed(const Transform& transform, const ItemForm& from);

// One item on its way through one step: its own types, and what random steps draw from.
struct StepRun {
  const Step& step;
  Type from, to;
  DrawKey key;
  std::int64_t item = 0;
};
// `to` has room for run.to.
void run_step(const StepRun& run, const std::byte* from, std::byte* to);

}  // namespace pantala::data
