// How items become what the model takes: size and channels of images, random changes in training,
// normalisation.
#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"
#include "run/run_data.h"

namespace pantala::run {

namespace {

// A batch of evaluation has at most so many items, and fewer where these have many elements.
constexpr std::int64_t kEvaluationBatch = 256;
constexpr std::int64_t kEvaluationElements = 1 << 22;
constexpr std::int64_t kImageResize = 256, kImageCrop = 224;  // of folders, if nothing is said

// The side that images are resized to, and that of the window; 0: neither.
struct Sides {
  std::int64_t resize = 0, crop = 0;
};
Sides sides_of(const data::ItemForm& form, const RunConfig& config) {
  const Sides wanted{config.data.resize, config.data.crop};
  if (form.any_size && wanted.resize == 0 && wanted.crop == 0) return {kImageResize, kImageCrop};
  if (wanted.resize > 0 && wanted.crop > wanted.resize)
    throw TypeError(fmt::format("data.crop is {}, but data.resize makes images of {} pixels",
                                wanted.crop, wanted.resize));
  return wanted;
}

void add_window(const Shape& item, const Sides& sides, const RunConfig& config, Use use,
                std::vector<data::Transform>& steps) {
  const bool training = use == Use::training;
  if (training && config.data.random_area > 0) {
    const std::int64_t side = sides.crop > 0 ? sides.crop : sides.resize;
    steps.emplace_back(data::RandomResizedCrop{.height = side > 0 ? side : item[1],
                                               .width = side > 0 ? side : item[2],
                                               .min_area = config.data.random_area});
    return;
  }
  if (sides.resize > 0)
    steps.emplace_back(data::Resize{sides.resize, sides.crop > 0 ? 0 : sides.resize});
  if (sides.crop > 0 && training) steps.emplace_back(data::RandomCrop{sides.crop, sides.crop});
  if (sides.crop > 0 && !training) steps.emplace_back(data::CenterCrop{sides.crop, sides.crop});
}

// Rows with a class for each of their positions are sounds or texts.
bool are_images(const DataFacts& facts) {
  const int rank = facts.item.rank();
  return rank > 2 || (rank == 2 && facts.positions.rank() != 1);
}

// What moves the positions of an item would have to move their labels too.
void check_labels_stay(const RunConfig& config, const DataFacts& facts, const std::string& name) {
  if (facts.positions.rank() == 0) return;
  const auto& data = config.data;
  const bool moves = are_images(facts) && (data.rotate > 0 || data.crop_pad > 0 || data.flip);
  if (moves || data.resize > 0 || data.crop > 0 || data.random_area > 0)
    throw TypeError(fmt::format(
        "{}: every position of an item has a label; data.resize, data.crop, data.random_area, "
        "data.rotate, data.crop_pad and data.flip would move the positions alone",
        name));
}

bool has_jitter(const RunConfig& config) {
  const auto& data = config.data;
  return data.jitter_brightness > 0 || data.jitter_contrast > 0 || data.jitter_saturation > 0 ||
         data.jitter_hue > 0;
}

// Random changes that see the pixels as they are in the data, before they are scaled.
void add_pixel_changes(const data::Dataset& dataset, const RunConfig& config,
                       const DataFacts& facts, std::vector<data::Transform>& steps) {
  const auto& data = config.data;
  if (!has_jitter(config) && data.rotate == 0) return;
  if (!are_images(facts))
    throw TypeError(
        fmt::format("data.rotate and data.jitter_* are for images; the items of {} are "
                    "{}",
                    dataset.name, facts.item.str()));
  if (data.rotate > 0) steps.emplace_back(data::RandomRotation{data.rotate});
  if (has_jitter(config))
    steps.emplace_back(data::ColorJitter{data.jitter_brightness, data.jitter_contrast,
                                         data.jitter_saturation, data.jitter_hue});
}

std::vector<data::Transform> transforms(const data::Dataset& dataset, const RunConfig& config,
                                        const DataFacts& facts, Use use) {
  if (facts.tokens) return {};
  std::vector<data::Transform> steps = geometry(dataset, config, use);
  check_labels_stay(config, facts, dataset.name);
  const auto& takes_integers = model_of(config).takes_integers;
  const bool integers = takes_integers && takes_integers(config);
  if (use == Use::training) add_pixel_changes(dataset, config, facts, steps);
  if (!integers && (facts.factor != 1 || dataset.item_form().dtype != f32))
    steps.emplace_back(data::Scale{facts.factor});
  if (use == Use::training && (config.data.crop_pad > 0 || config.data.flip)) {
    const int rank = facts.item.rank();
    if (!are_images(facts))
      throw TypeError(
          fmt::format("data.flip and data.crop_pad are for images; the items of {} are {}",
                      dataset.name, facts.item.str()));
    if (config.data.crop_pad > 0) {
      steps.emplace_back(data::Pad{config.data.crop_pad});
      steps.emplace_back(data::RandomCrop{facts.item[rank - 2], facts.item[rank - 1]});
    }
    if (config.data.flip) steps.emplace_back(data::RandomFlip{});
  }
  if (!facts.mean.empty()) steps.emplace_back(data::Normalize{facts.mean, facts.std});
  const std::vector<std::int64_t> item = model_of(config).item(config, facts.item);
  if (item != facts.item.vec()) steps.emplace_back(data::Reshape{item});
  return steps;
}

// A size that leaves no short last batch, if there is one that is not small.
std::int64_t evaluation_batch(std::int64_t items, const RunConfig& config, const DataFacts& facts) {
  // There are outputs for every position: a language model has as many as there are words.
  if (facts.positions.rank() > 0) return std::min(config.batch_size, items);
  const std::int64_t most =
      std::min(kEvaluationBatch,
               std::max(config.batch_size,
                        kEvaluationElements / std::max<std::int64_t>(facts.item.numel(), 1)));
  for (std::int64_t size = std::min(most, items); 2 * size >= most; --size)
    if (items % size == 0) return size;
  return std::min(most, items);
}

}  // namespace

std::vector<data::Transform> geometry(const data::Dataset& dataset, const RunConfig& config,
                                      Use use) {
  const data::ItemForm form = dataset.item_form();
  const Sides sides = sides_of(form, config);
  std::vector<data::Transform> steps;
  if (sides.resize == 0 && sides.crop == 0 && config.data.channels == 0 &&
      config.data.random_area == 0)
    return steps;
  Shape item = form.shape;
  if (item.rank() != 2 && item.rank() != 3)
    throw TypeError(
        fmt::format("data.resize, data.crop, data.random_area and data.channels are "
                    "for images; the items of {} are {}",
                    dataset.name, form.str()));
  if (item.rank() == 2) {
    item = item.insert(0, 1);
    steps.emplace_back(data::Reshape{item.vec()});
  }
  add_window(item, sides, config, use, steps);
  if (config.data.channels > 0 && item[0] != config.data.channels)
    steps.emplace_back(data::Channels{config.data.channels});
  return steps;
}

Shape item_shape(const data::Dataset& dataset, const RunConfig& config) {
  return data::item_type(dataset, geometry(dataset, config, Use::evaluation)).shape;
}

std::unique_ptr<data::Loader> open_loader(const data::Dataset& dataset, const RunConfig& config,
                                          const DataFacts& facts, Use use,
                                          const std::optional<distributed::Range>& shards) {
  const bool training = use == Use::training;
  return data::make_loader(
      dataset,
      {.batch_size = training ? config.batch_size : evaluation_batch(dataset.size(), config, facts),
       .shuffle = training,
       .drop_last = training && config.data.drop_last,
       .seed = static_cast<std::uint64_t>(config.seed),
       .threads = static_cast<int>(config.data.threads),
       .prefetch = config.data.prefetch,
       .transforms = transforms(dataset, config, facts, use),
       .shards = shards ? std::max<std::int64_t>(config.distributed.shards, 1) : 1,
       .first_shard = shards ? shards->first : 0,
       .last_shard = shards ? shards->last : 1});
}

}  // namespace pantala::run
