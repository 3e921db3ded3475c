// The data of a run: opens what `data.source` names, keeps some of it back for validation, and says
// how items are brought into the form that the model takes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/shards.h"
#include "pantala/data.h"
#include "run/core/config.h"
#include "run/core/data_facts.h"
#include "run/models/model.h"

namespace pantala::run {

struct RunData {
  data::Dataset train;
  std::optional<data::Dataset> validation;
  DataFacts facts;
};
RunData open_run_data(const RunConfig& config);

// The data set that a trained model is to be tried on: the test set of a source that has one, else
// all of it. Class names and texts become the model's own numbers. TypeError if items or labels do
// not fit.
data::Dataset open_for_model(const std::string& source, const RunConfig& config,
                             const DataFacts& facts);
// The same without a need for labels; also the .npy file of items alone, an image, and any folder
// of images. With `truth` they are read where they are known (truth_texts()).
data::Dataset open_items_for_model(const std::string& source, const RunConfig& config,
                                   const DataFacts& facts, bool truth = false);
data::Dataset open_images_for_model(const std::vector<std::string>& files, const RunConfig& config,
                                    const DataFacts& facts);

// What is measured of the model.
metrics::Kind measured_kind(const RunConfig& config, const DataFacts& facts);
ModelShape model_shape(const RunConfig& config, const DataFacts& facts);

enum class Use : std::uint8_t { training, evaluation };
// What brings items to the size and the channels that the config wants, before all else. TypeError
// if they are no images.
std::vector<data::Transform> geometry(const data::Dataset& dataset, const RunConfig& config,
                                      Use use);
// The shape of items after that, in evaluation.
Shape item_shape(const data::Dataset& dataset, const RunConfig& config);
// With the items of these shards alone, of each batch.
std::unique_ptr<data::Loader> open_loader(const data::Dataset& dataset, const RunConfig& config,
                                          const DataFacts& facts, Use use,
                                          const std::optional<distributed::Range>& shards = {});

}  // namespace pantala::run
