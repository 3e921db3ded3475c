// The data of a run: opens what `data.source` names, keeps some of it back for validation, and says
// how items are brought into the form that the model takes. What a model must know of its data (the
// profile) is kept in the run folder, so that evaluation and prediction treat other data the same
// way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pantala/data.h"
#include "tools/train/config.h"
#include "tools/train/model.h"

namespace pantala::tools {

struct DataProfile {
  static constexpr std::int64_t kMaxClasses = 1 << 20;

  Shape item;                         // as it is in the data, or after data.resize and the like
  std::int64_t classes = 0;           // 0: the labels are numbers
  std::int64_t targets = 0;           // so many per item; 0: the labels are classes
  std::int64_t positions = 0;         // of an item, with a class each; 0: one class per item
  std::vector<std::string> names;     // of the classes, if they have some
  std::vector<data::Column> columns;  // of a table
  double factor = 1;                  // of all values, before the rest
  std::vector<double> mean, std;      // by channel or column, or one for all; empty: none
  // Of the targets, by column; empty: they are learnt as they are. Labels and predictions stay in
  // their own units: the model's graph scales.
  std::vector<double> target_mean, target_std;
  bool tokens = false;     // items are windows of text; the classes are the vocabulary
  std::uint64_t hash = 0;  // of the data that were trained and validated with
  zoo::Task task() const { return targets > 0 ? zoo::Task::regression : zoo::Task::classification; }
  friend bool operator==(const DataProfile&, const DataProfile&) = default;
};
std::string profile_json(const DataProfile& profile);
// ParseError for a file that is no profile.
DataProfile read_profile(const std::filesystem::path& path);

struct Source {
  data::Dataset train;
  std::optional<data::Dataset> test;
  zoo::Task task = zoo::Task::classification;
};
struct RunData {
  data::Dataset train;
  std::optional<data::Dataset> validation;
  DataProfile profile;
};
RunData open_run_data(const RunConfig& config);

// The data set that a trained model is to be tried on: the test set of a source that has one, else
// all of it. Class names and texts become the model's own numbers. TypeError if items or labels do
// not fit.
data::Dataset open_for_model(const std::string& source, const RunConfig& config,
                             const DataProfile& profile);
// The same without a look at labels, which may be missing and are all 0; also the .npy file of
// items alone, an image, and any folder of images.
data::Dataset open_items_for_model(const std::string& source, const RunConfig& config,
                                   const DataProfile& profile);

ModelShape model_shape(const RunConfig& config, const DataProfile& profile);

enum class Use : std::uint8_t { training, evaluation };
// What brings items to the size and the channels that the config wants, before all else. TypeError
// if they are no images.
std::vector<data::Transform> geometry(const data::Dataset& dataset, const RunConfig& config,
                                      Use use);
// The shape of items after that, in evaluation.
Shape item_shape(const data::Dataset& dataset, const RunConfig& config);
std::unique_ptr<data::Loader> open_loader(const data::Dataset& dataset, const RunConfig& config,
                                          const DataProfile& profile, Use use);

}  // namespace pantala::tools
