#include "tools/train/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "data/fingerprint.h"
#include "io/json.h"
#include "pantala/error.h"
#include "tools/train/labels.h"
#include "tools/train/statistics.h"

namespace pantala::tools {

namespace {

// Arrays by the names that people give them.
Source read_npz_source(const std::filesystem::path& path) {
  const std::vector<std::string> names = data::npz_names(path);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto read = [&](const std::string& x, const std::string& y) {
    return data::make_dataset(data::read_npz(path, x), data::read_npz(path, y),
                              fmt::format("{} ({}, {})", path.filename().string(), x, y));
  };
  if (has("x_train") && has("y_train"))
    return {.train = read("x_train", "y_train"),
            .test = has("x_test") && has("y_test") ? std::optional(read("x_test", "y_test"))
                                                   : std::nullopt};
  if (has("x") && has("y")) return {.train = read("x", "y"), .test = {}};
  throw TypeError(
      fmt::format("{}: has the arrays {}; expected x and y, or x_train and y_train (and x_test and "
                  "y_test)",
                  path.string(), fmt::join(names, ", ")));
}

// How the label of a table is found, and what its columns must be.
data::CsvOptions csv_options(const RunConfig& config, const DataProfile& profile,
                             bool label_may_lack) {
  return {.label = config.data.label, .like = profile.columns, .label_may_lack = label_may_lack};
}

// "csv:FILE" in its parts; a source without a colon has no path.
struct SourceName {
  std::string kind, path;
};
SourceName split_name(const std::string& source) {
  const std::size_t colon = source.find(':');
  if (colon == std::string::npos) return {source, ""};
  return {source.substr(0, colon), source.substr(colon + 1)};
}

data::ImageOptions image_options(const RunConfig& config) {
  return {.channels = config.data.channels == 1 ? 1 : 3};
}

Source read_source(const std::string& source, const RunConfig& config,
                   const data::CsvOptions& csv) {
  const auto [kind, path] = split_name(source);
  if (kind == "csv") return {.train = data::read_csv(path, csv), .test = {}};
  if (kind == "npz") return read_npz_source(path);
  if (kind == "images") {
    data::ImageSets sets = data::read_image_sets(path, image_options(config));
    return {.train = std::move(sets.train), .test = std::move(sets.test)};
  }
  data::TrainTest sets = kind == "idx" ? data::read_idx_folder(path) : data::fashion_mnist();
  return {.train = std::move(sets.train), .test = std::move(sets.test)};
}

void check_same_items(const data::Dataset& set, const RunConfig& config, const Shape& item) {
  if (const Shape has = item_shape(set, config); has != item)
    throw TypeError(fmt::format("{}: the items are {}; the model was made for items {}", set.name,
                                has.str(), item.str()));
}

// What brings the array to mean 0 and deviation 1.
void add_scale(const data::Array& array, const std::string& name, double factor,
               std::vector<double>& mean, std::vector<double>& std) {
  const Statistics statistics = statistics_of(array, name);
  for (std::size_t k = 0; k < statistics.mean.size(); ++k) {
    const double deviation = factor * statistics.deviation[k];
    mean.push_back(factor * statistics.mean[k]);
    std.push_back(deviation > 0 ? deviation : 1);  // a constant becomes 0
  }
}

// The mean and deviation by which torchvision's models have their images normalised.
void add_imagenet(const data::Dataset& train, DataProfile& profile) {
  if (train.item_form().dtype != u8 || profile.item.rank() != 3 || profile.item[0] != 3)
    throw TypeError(fmt::format(
        "data.normalize = \"imagenet\" is for images of bytes with 3 channels; the items of {} are "
        "{}{}",
        train.name, Type{train.item_form().dtype, profile.item}.str(),
        profile.item.rank() == 3 && profile.item[0] == 1 ? " (data.channels = 3 repeats one)"
                                                         : ""));
  profile.factor = 1.0 / 255;
  profile.mean = {0.485, 0.456, 0.406};
  profile.std = {0.229, 0.224, 0.225};
}

// The items that the mean and the deviation are taken of: all, or, where each of them must be made
// first, some from everywhere.
data::Array items_for_statistics(const data::Dataset& train, const RunConfig& config) {
  constexpr std::int64_t kMost = 512;
  const std::int64_t count = std::min(kMost, train.size());
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.push_back(k * train.size() / count);
  return data::make_loader(data::select(train, numbers),
                           {.batch_size = count,
                            .shuffle = false,
                            .threads = 0,
                            .transforms = geometry(train, config, Use::evaluation)})
      ->next_batch()
      ->data;
}

DataProfile make_profile(const RunConfig& config, const data::Dataset& train, zoo::Task task,
                         std::int64_t classes) {
  DataProfile profile;
  profile.item = item_shape(train, config);
  profile.classes = classes;
  profile.names = train.classes;
  profile.columns = train.columns;
  if (task == zoo::Task::regression) profile.targets = targets_of(train);
  if (train.labels->shape.rank() == 2 && task == zoo::Task::classification)
    profile.positions = train.labels->shape[1];
  if (config.data.normalize == "none") return profile;
  if (config.data.normalize == "imagenet") {
    add_imagenet(train, profile);
  } else {
    const bool as_they_are = train.data && geometry(train, config, Use::evaluation).empty();
    if (train.item_form().dtype == u8) profile.factor = 1.0 / 255;
    add_scale(as_they_are ? *train.data : items_for_statistics(train, config), train.name,
              profile.factor, profile.mean, profile.std);
  }
  if (task == zoo::Task::regression)
    add_scale(*train.labels, train.name, 1, profile.target_mean, profile.target_std);
  return profile;
}

// The items that data.subset leaves.
data::Dataset subset_of(const RunConfig& config, data::Dataset train) {
  if (config.data.subset > train.size())
    throw TypeError(fmt::format("data.subset is {}, but {} has {} only", config.data.subset,
                                train.name,
                                counted(static_cast<std::size_t>(train.size()), "item")));
  return config.data.subset > 0 ? data::slice(train, 0, config.data.subset) : train;
}

// The training set and what is kept back from it or comes from elsewhere.
RunData split_data(const RunConfig& config, Source source) {
  source.train = subset_of(config, std::move(source.train));
  RunData result;
  const auto* word = std::get_if<std::string>(&config.data.validation);
  if (word && *word == "test" && !source.test)
    throw TypeError(
        fmt::format("{} has no test set; data.validation can be a share of the training set such "
                    "as 0.1, or none",
                    config.data.source));
  if (word && (*word == "none" || source.test)) {
    result.train = std::move(source.train);
    if (*word != "none") result.validation = std::move(source.test);
    return result;
  }
  const double share = word ? 0.1 : std::get<double>(config.data.validation);
  const auto size = static_cast<double>(source.train.size());
  const auto kept = static_cast<std::int64_t>(std::max(1.0, std::round(share * size)));
  if (kept >= source.train.size())
    throw TypeError(fmt::format(
        "{} has {}; that is too few to keep {} back for validation (data.validation)",
        source.train.name, counted(static_cast<std::size_t>(source.train.size()), "item"), kept));
  std::tie(result.train, result.validation) =
      data::split(source.train, kept, static_cast<std::uint64_t>(config.seed));
  return result;
}

void check_is_utf8(const std::string& text, const std::string& what, const std::string& name) {
  if (!is_utf8(text)) throw TypeError(fmt::format("{}: {} is not text in UTF-8", name, what));
}

void check_columns(const data::Dataset& set) {
  for (const data::Column& column : set.columns) {
    check_is_utf8(column.name, "the name of a column", set.name);
    for (const std::string& text : column.texts) check_is_utf8(text, "a field", set.name);
  }
}

// IoError, ParseError, TypeError and ValueError say what is wrong with the files. Labels are
// classes (integers from 0, [items]) or finite numbers (f32 [items, targets]); `task` is a value of
// model.task.
Source open_source(const std::string& source, const RunConfig& config, const data::CsvOptions& csv,
                   const std::string& task) {
  Source result = read_source(source, config, csv);
  result.task = task_of(task, result.train);
  const std::int64_t positions =
      learns_positions(config) ? label_positions(config, item_shape(result.train, config)) : 0;
  for (data::Dataset* set : {&result.train, result.test ? &*result.test : nullptr}) {
    if (!set) continue;
    if (set->size() == 0) throw TypeError(fmt::format("{}: there are no items", set->name));
    check_columns(*set);
    if (result.task == zoo::Task::regression)
      *set = with_targets(*set);
    else
      check_classes(*set, positions);
  }
  if (!result.test) return result;
  check_same_items(*result.test, config, item_shape(result.train, config));
  if (result.task == zoo::Task::regression)
    check_same_targets(*result.test, targets_of(result.train));
  return result;
}

std::uint64_t hash_of(const RunData& data) {
  std::uint64_t hash = kHashSeed;
  for (const data::Dataset* set : {&data.train, data.validation ? &*data.validation : nullptr})
    if (set) hash = data::hash_dataset(*set, hash);
  return hash;
}

bool is_tokens(const std::string& source) {
  const std::string kind = split_name(source).kind;
  return kind == "tokens" || kind == "text";
}

// Language models learn from tokens, and nothing else does.
void check_kind(const RunConfig& config, const std::string& source) {
  const std::string& model = config.model.from.empty() ? config.model.name : config.model.from;
  const bool language = config.model.from.empty() && model_vocabulary(config) > 0;
  if (language == is_tokens(source)) return;
  throw TypeError(
      language ? fmt::format("model {} learns from tokens (tokens:FILE or text:FILE), "
                             "which {} are not",
                             model, source)
               : fmt::format("model {} does not learn from tokens as {} has them", model, source));
}

// `vocabulary`: of a trained model; 0: as the config or the model says.
data::TokenOptions token_options(const std::string& source, const RunConfig& config,
                                 std::int64_t vocabulary) {
  const bool text = split_name(source).kind == "text";
  if (vocabulary == 0) vocabulary = config.data.vocabulary;
  if (vocabulary == 0) vocabulary = text ? 256 : model_vocabulary(config);
  const std::string& type = config.data.token_type;
  return {.sequence = config.data.sequence,
          .stride = config.data.stride,
          .type = text || type == "u8" ? data::TokenType::u8
                  : type == "u16"      ? data::TokenType::u16
                                       : data::TokenType::i32,
          .vocabulary = vocabulary};
}

// The validation is kept back at the end of the file: windows that overlap would tell it.
RunData open_token_data(const RunConfig& config) {
  const std::string path = split_name(config.data.source).path;
  const data::TokenOptions options = token_options(config.data.source, config, 0);
  const auto* word = std::get_if<std::string>(&config.data.validation);
  if (word && *word == "test")
    throw TypeError(
        fmt::format("{} has no test set; data.validation can be a share of its tokens "
                    "such as 0.1, or none",
                    config.data.source));
  check_metrics(config, zoo::Task::classification, options.vocabulary, config.data.source);
  RunData result;
  if (word && *word == "none") {
    result.train = data::read_tokens(path, options);
  } else {
    data::TrainTest sets =
        data::read_tokens(path, options, word ? 0.1 : std::get<double>(config.data.validation));
    result.train = std::move(sets.train);
    result.validation = std::move(sets.test);
  }
  result.train = subset_of(config, std::move(result.train));
  result.profile.item = {options.sequence};
  result.profile.classes = options.vocabulary;
  result.profile.positions = options.sequence;
  result.profile.tokens = true;
  result.profile.hash = hash_of(result);
  return result;
}

// Of an .npz file: those of the test set, if there is one.
data::Dataset read_npz_items(const std::filesystem::path& path, const DataProfile& profile) {
  const std::vector<std::string> names = data::npz_names(path);
  for (const char* known : {"x_test", "x", "x_train"})
    if (std::find(names.begin(), names.end(), known) != names.end())
      return unlabeled(data::read_npz(path, known), profile,
                       fmt::format("{} ({})", path.filename().string(), known));
  throw TypeError(fmt::format("{}: has the arrays {}; expected x or x_test", path.string(),
                              fmt::join(names, ", ")));
}

}  // namespace

RunData open_run_data(const RunConfig& config) {
  check_kind(config, config.data.source);
  if (is_tokens(config.data.source)) return open_token_data(config);
  Source source =
      open_source(config.data.source, config, csv_options(config, {}, false), config.model.task);
  const zoo::Task task = source.task;
  check_task(config, task, source.train.name);
  const std::int64_t classes = task == zoo::Task::regression ? 0 : count_classes(source);
  check_metrics(config, task, classes, source.train.name);
  if (task == zoo::Task::classification && classes < 2)
    throw TypeError(fmt::format("{}: all items are of one class", source.train.name));
  RunData result = split_data(config, std::move(source));
  result.profile = make_profile(config, result.train, task, classes);
  result.profile.hash = hash_of(result);
  return result;
}

data::Dataset open_for_model(const std::string& source, const RunConfig& config,
                             const DataProfile& profile) {
  check_kind(config, source);
  if (is_tokens(source)) {
    const data::TokenOptions options = token_options(source, config, profile.classes);
    return data::read_tokens(split_name(source).path, options);
  }
  Source opened = open_source(source, config, csv_options(config, profile, false),
                              std::string(task_name(profile.task())));
  data::Dataset set = opened.test ? std::move(*opened.test) : std::move(opened.train);
  check_same_items(set, config, profile.item);
  if (profile.task() == zoo::Task::regression) {
    check_same_targets(set, profile.targets);
    return set;
  }
  if (!set.classes.empty() && !profile.names.empty()) set = with_classes(set, profile.names);
  check_same_naming(set, profile);
  check_classes_below(set, profile.classes);
  return set;
}

data::Dataset open_items_for_model(const std::string& source, const RunConfig& config,
                                   const DataProfile& profile) {
  if (profile.tokens || is_tokens(source))
    throw TypeError("predict gives a class or a number for each item; tokens are no such items");
  const auto [kind, path] = split_name(source);
  data::Dataset set;
  if (path.empty() && source.ends_with(".npy")) {
    set = unlabeled(data::read_npy(source), profile, source);
  } else if (path.empty() && data::is_image_name(source)) {
    set = data::read_images(source, image_options(config));
  } else if (kind == "images") {
    set = data::read_images(path, image_options(config));
  } else if (kind == "npz") {
    set = read_npz_items(path, profile);
  } else {
    Source opened = read_source(source, config, csv_options(config, profile, true));
    set = opened.test ? std::move(*opened.test) : std::move(opened.train);
    set = unlabeled(*set.data, profile, set.name);
  }
  if (set.size() == 0) throw TypeError(fmt::format("{}: there are no items", set.name));
  check_same_items(set, config, profile.item);
  return set;
}

ModelShape model_shape(const RunConfig& config, const DataProfile& profile) {
  return {.item = profile.tokens ? profile.item.vec() : model_item(config, profile.item),
          .task = profile.task(),
          .classes = profile.classes,
          .by_position = profile.positions > 0,
          .targets = profile.targets,
          .target_scale = {.mean = profile.target_mean, .deviation = profile.target_std}};
}

}  // namespace pantala::tools
