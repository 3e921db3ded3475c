// What the labels of a data set must be, and how they become what a model learns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/data.h"
#include "run/core/data_facts.h"
#include "run/sources/source.h"

namespace pantala::run {

// `wanted` is a value of model.task.
zoo::Task task_of(const std::string& wanted, const data::Dataset& train);

// Classes are whole numbers from 0, one per item or one for each of the positions of an item, which
// come back in one row: [items, positions]. TypeError.
data::Dataset with_checked_classes(const data::Dataset& set, const Shape& positions);
// TypeError for a class from `classes` on.
void check_classes_below(const data::Dataset& set, std::int64_t classes);
// How many classes there are: one more than the largest label, or as many as have names.
std::int64_t count_classes(const SourceSets& sets);
// Labels by the class names of another data set. TypeError with the nearest one.
data::Dataset with_classes(const data::Dataset& set, const std::vector<std::string>& names);

// TypeError if only one of the two, the set or the model's data, has names for its classes: which
// name is which number is not known.
void check_same_naming(const data::Dataset& set, const DataFacts& facts);

// Labels as what a regression learns: f32 [items, targets], all finite.
data::Dataset with_targets(const data::Dataset& set);
std::int64_t targets_of(const data::Dataset& set);
void check_same_targets(const data::Dataset& set, std::int64_t targets);

// --- for predictions, where labels need not be known
inline constexpr std::int64_t kUnknownLabel = -1;  // of classes; of numbers it is NaN
// Items without labels, in the form of the facts.
data::Dataset unlabeled(data::Array items, const DataFacts& facts, std::string name);
// Images in a folder with the name of a class, however deep, are of this class.
data::Dataset with_folder_labels(const data::Dataset& set, const DataFacts& facts);
// The labels as people know them, one per item, position or target: the name of a class, or a
// number; "" where it is not known. Of a table they are what stands there.
std::vector<std::string> truth_texts(const data::Dataset& set, const DataFacts& facts);

}  // namespace pantala::run
