#include "run/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/doing.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/fingerprint.h"
#include "pantala/error.h"
#include "run/make_facts.h"
#include "run/missing.h"
#include "run/sources/labels.h"
#include "run/sources/source.h"
#include "run/token_data.h"

namespace pantala::run {

namespace {

void check_same_items(const data::Dataset& set, const RunConfig& config, const Shape& item) {
  if (const Shape has = item_shape(set, config); has != item)
    throw TypeError(fmt::format("{}: the items are {}; the model was made for items {}", set.name,
                                has.str(), item.str()));
}

// The items that data.subset leaves.
data::Dataset subset_of(const RunConfig& config, data::Dataset train) {
  if (config.data.subset > train.size())
    throw TypeError(fmt::format("data.subset is {}, but {} has {} only", config.data.subset,
                                train.name,
                                counted(static_cast<std::size_t>(train.size()), "item")));
  return config.data.subset > 0 ? data::slice(train, 0, config.data.subset) : train;
}

std::uint64_t hash_of(const RunData& data) {
  std::uint64_t hash = kHashSeed;
  for (const data::Dataset* set : {&data.train, data.validation ? &*data.validation : nullptr})
    if (set) hash = data::hash_dataset(*set, hash);
  return hash;
}

// Language models learn from tokens alone; of the others only some take them.
void check_kind(const RunConfig& config, const std::string& text, const Source& source) {
  const ModelRow& row = model_of(config);
  const bool language = row.vocabulary > 0;
  if (language == source.tokens.has_value()) return;
  if (source.tokens && row.token_count && row.token_count(config) > 0) return;
  const std::string& model = is_from_file(config) ? config.model.from : config.model.name;
  throw TypeError(
      language ? fmt::format("model {} learns from tokens ({}), which {} are not", model,
                             token_source_rule(), text)
               : fmt::format("model {} does not learn from tokens as {} has them", model, text));
}

// The training set and what is kept back from it or comes from elsewhere.
RunData split_data(const RunConfig& config, SourceSets sets) {
  sets.train = subset_of(config, std::move(sets.train));
  RunData result;
  const auto* word = std::get_if<std::string>(&config.data.validation);
  if (word && *word == "test" && !sets.test)
    throw TypeError(
        fmt::format("{} has no test set; data.validation can be a share of the training set such "
                    "as 0.1, or none",
                    config.data.source));
  if (word && (*word == "none" || sets.test)) {
    result.train = std::move(sets.train);
    if (*word != "none") result.validation = std::move(sets.test);
    return result;
  }
  const double share = word ? 0.1 : std::get<double>(config.data.validation);
  const auto size = static_cast<double>(sets.train.size());
  const auto kept = static_cast<std::int64_t>(std::max(1.0, std::round(share * size)));
  if (kept >= sets.train.size())
    throw TypeError(fmt::format(
        "{} has {}; that is too few to keep {} back for validation (data.validation)",
        sets.train.name, counted(static_cast<std::size_t>(sets.train.size()), "item"), kept));
  std::tie(result.train, result.validation) =
      data::split(sets.train, kept, static_cast<std::uint64_t>(config.seed));
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

// Sets whose labels were checked: classes (integers from 0, [items]) or finite numbers (f32 [items,
// targets]).
struct LabelledSets : SourceSets {
  zoo::Task task = zoo::Task::classification;
  Shape positions = {};  // of classes
};

// `task` is a value of model.task.
LabelledSets open_labelled(const Source& source, const SourceRequest& request,
                           const std::string& task) {
  const RunConfig& config = request.config;
  LabelledSets result{source.open(request)};
  result.task = task_of(task, result.train);
  const ModelRow& model = model_of(config);
  if (model.positions && result.task == zoo::Task::classification)
    result.positions =
        model.positions(config, item_shape(result.train, config),
                        request.facts ? request.facts->positions : result.train.label_form().shape);
  for (data::Dataset* set : {&result.train, result.test ? &*result.test : nullptr}) {
    if (!set) continue;
    if (set->size() == 0) throw TypeError(fmt::format("{}: there are no items", set->name));
    check_columns(*set);
    if (result.task == zoo::Task::regression)
      *set = with_targets(*set);
    else
      *set = with_checked_classes(*set, result.positions);
  }
  if (!result.test) return result;
  check_same_items(*result.test, config, item_shape(result.train, config));
  if (result.task == zoo::Task::regression)
    check_same_targets(*result.test, targets_of(result.train));
  return result;
}

RunData open_item_data(const RunConfig& config, const NamedSource& named) {
  LabelledSets sets =
      open_labelled(named.source, {.path = named.path, .config = config}, config.model.task);
  const zoo::Task task = sets.task;
  model_of(config).check_task(config, task, sets.train.name);
  const std::int64_t classes = task == zoo::Task::regression ? 0 : count_classes(sets);
  check_metrics(config,
                task == zoo::Task::regression ? metrics::Kind::numbers : metrics::Kind::classes,
                classes, sets.train.name);
  if (task == zoo::Task::classification && classes < 2)
    throw TypeError(fmt::format("{}: all items are of one class", sets.train.name));
  const Shape positions = sets.positions;
  RunData result = split_data(config, std::move(sets));
  // Of the training set alone: the validation must not tell anything of itself.
  const std::vector<double> fill =
      config.data.missing == "mean" ? column_means(result.train) : std::vector<double>();
  if (!fill.empty()) {
    result.train = with_means(result.train, fill);
    if (result.validation) result.validation = with_means(*result.validation, fill);
  }
  result.facts = make_facts(config, result.train, task, classes);
  result.facts.positions = positions;
  result.facts.fill = fill;
  return result;
}

// The test set, if there is one.
data::Dataset tested(SourceSets sets) {
  return sets.test ? std::move(*sets.test) : std::move(sets.train);
}

// Items of any source, for predictions.
data::Dataset open_items(const std::string& text, const RunConfig& config, const DataFacts& facts,
                         bool truth) {
  if (is_items_file(text))
    return data::is_image_name(text)
               ? with_folder_labels(data::read_images(text, image_options(config)), facts)
               : unlabeled(data::read_npy(text), facts, text);
  const NamedSource named = named_source(text);
  if (named.source.tokens)
    throw TypeError("predict gives a class or a number for each item; tokens are no such items");
  const SourceRequest request{
      .path = named.path, .config = config, .facts = &facts, .items_alone = true, .truth = truth};
  if (named.source.open_items) return named.source.open_items(request);
  data::Dataset set = tested(named.source.open(request));
  if (truth && !set.rows) return set;
  data::Dataset items = unlabeled(*set.data, facts, set.name);
  items.columns = std::move(set.columns);
  items.rows = std::move(set.rows);
  return items;
}

// Items that are there, as many and as large as the model takes them.
data::Dataset fitting(data::Dataset set, const RunConfig& config, const DataFacts& facts) {
  if (set.size() == 0) throw TypeError(fmt::format("{}: there are no items", set.name));
  check_same_items(set, config, facts.item);
  return facts.fill.empty() ? set : with_means(set, facts.fill);
}

}  // namespace

RunData open_run_data(const RunConfig& config) {
  const Doing doing(fmt::format("reading the data {}", config.data.source));
  const NamedSource named = named_source(config.data.source);
  check_kind(config, config.data.source, named.source);
  RunData result;
  if (named.source.tokens) {
    result = open_token_data(config, named);
    result.train = subset_of(config, std::move(result.train));
  } else {
    result = open_item_data(config, named);
  }
  result.facts.hash = hash_of(result);
  return result;
}

data::Dataset open_for_model(const std::string& source, const RunConfig& config,
                             const DataFacts& facts) {
  const NamedSource named = named_source(source);
  check_kind(config, source, named.source);
  if (named.source.tokens)
    return data::read_tokens(named.path,
                             token_options(*named.source.tokens, config, facts.classes));
  data::Dataset set =
      tested(open_labelled(named.source, {.path = named.path, .config = config, .facts = &facts},
                           std::string(task_name(facts.task()))));
  check_same_items(set, config, facts.item);
  if (!facts.fill.empty()) set = with_means(set, facts.fill);
  if (facts.task() == zoo::Task::regression) {
    check_same_targets(set, facts.targets);
    return set;
  }
  if (!set.classes.empty() && !facts.names.empty()) set = with_classes(set, facts.names);
  check_same_naming(set, facts);
  check_classes_below(set, facts.classes);
  return set;
}

data::Dataset open_items_for_model(const std::string& source, const RunConfig& config,
                                   const DataFacts& facts, bool truth) {
  if (facts.tokens)
    throw TypeError("predict gives a class or a number for each item; tokens are no such items");
  return fitting(open_items(source, config, facts, truth), config, facts);
}

data::Dataset open_images_for_model(const std::vector<std::string>& files, const RunConfig& config,
                                    const DataFacts& facts) {
  for (const std::string& file : files)
    if (!data::is_image_name(file))
      throw TypeError(fmt::format("several --data are images, a file each; {} is none", file));
  const data::Dataset set = data::read_images(
      std::vector<std::filesystem::path>(files.begin(), files.end()), image_options(config));
  return fitting(with_folder_labels(set, facts), config, facts);
}

metrics::Kind measured_kind(const RunConfig& config, const DataFacts& facts) {
  if (facts.task() == zoo::Task::regression) return metrics::Kind::numbers;
  if (!facts.tokens) return metrics::Kind::classes;
  const std::optional<TokenForm>& form = named_source(config.data.source).source.tokens;
  return form && form->bytes ? metrics::Kind::bytes : metrics::Kind::tokens;
}

ModelShape model_shape(const RunConfig& config, const DataFacts& facts) {
  return {.item = facts.tokens ? facts.item.vec() : model_of(config).item(config, facts.item),
          .task = facts.task(),
          .classes = facts.classes,
          .positions = facts.positions,
          .measured = measured_kind(config, facts),
          .targets = facts.targets,
          .target_scale = {.mean = facts.target_mean, .deviation = facts.target_std}};
}

}  // namespace pantala::run
