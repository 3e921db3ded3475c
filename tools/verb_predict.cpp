// pantala predict: the class, or the numbers, of every item, by the model of a run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>

#include "io/file.h"
#include "pantala/error.h"
#include "run/ranks.h"
#include "run/run_data.h"
#include "run/sources/labels.h"
#include "run/sources/source.h"
#include "run/trained.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/options.h"
#include "tools/predict/lines.h"
#include "tools/process.h"
#include "tools/ranks.h"

namespace pantala::tools {

namespace {

struct PredictOptions {
  std::string run, checkpoint = run::kReported, out;
  std::vector<std::string> data;
  std::int64_t limit = 0;
  std::string device, distributed = "auto";
  int threads = 0;
  LineOptions lines;
};

data::Dataset open_items(const PredictOptions& options, const run::Trained& trained) {
  if (options.data.size() > 1)
    return run::open_images_for_model(options.data, trained.config, trained.facts);
  const std::string& source = options.data[0];
  if (!run::is_items_file(source))
    run::make_config({{"data.source", source, "--data"}});  // checks it
  return run::open_items_for_model(source, trained.config, trained.facts, options.lines.truth);
}

// The fields of a table as they stand there, or the numbers of items that are rows.
class Inputs {
 public:
  explicit Inputs(const data::Dataset& set) : set_(set) {
    if (set.rows) {
      for (std::size_t k = 0; k < set.columns.size(); ++k)
        names_.push_back(set.columns[k].name.empty() ? fmt::format("input{}", k)
                                                     : set.columns[k].name);
      return;
    }
    if (!set.data || set.data->shape.rank() != 2)
      throw TypeError(fmt::format("--inputs shows the fields of rows; the items of {} are {}",
                                  set.name, set.item_form().str()));
    for (std::int64_t k = 0; k < set.data->shape[1]; ++k)
      names_.push_back(fmt::format("input{}", k));
  }

  const std::vector<std::string>& names() const { return names_; }
  std::vector<std::string> of(std::size_t item) const {
    std::vector<std::string> texts;
    for (std::size_t k = item * names_.size(); k < (item + 1) * names_.size(); ++k)
      texts.push_back(set_.rows ? set_.rows->fields[k]
                                : std::visit([&](const auto& v) { return fmt::to_string(v[k]); },
                                             set_.data->values));
    return texts;
  }

 private:
  const data::Dataset& set_;
  std::vector<std::string> names_;
};

// What is known of the items of a data set.
class KnownItems {
 public:
  KnownItems(const data::Dataset& set, const run::DataFacts& facts, const LineOptions& wanted)
      : set_(set) {
    if (wanted.inputs) inputs_.emplace(set);
    if (wanted.truth) truth_ = run::truth_texts(set, facts);
  }

  std::vector<std::string> input_names() const {
    return inputs_ ? inputs_->names() : std::vector<std::string>();
  }
  Item at(std::size_t item) const {
    const auto number = static_cast<std::int64_t>(item);
    const std::size_t width = truth_.size() / static_cast<std::size_t>(set_.size());
    const auto truth = truth_.begin() + static_cast<std::ptrdiff_t>(item * width);
    return {.number = set_.rows ? set_.rows->numbers[item] : number,
            .file = set_.data_source ? set_.data_source->item_name(number) : "",
            .truth = {truth, truth + static_cast<std::ptrdiff_t>(width)},
            .inputs = inputs_ ? inputs_->of(item) : std::vector<std::string>()};
  }

 private:
  const data::Dataset& set_;
  std::optional<Inputs> inputs_;
  std::vector<std::string> truth_;
};

// Lines of all items on rank 0, of its own on the others.
std::string predict(const PredictOptions& options, const run::RunRanks& ranks) {
  run::Trained trained = open_on_ranks(
      options.run, {options.checkpoint, options.threads, plan_cache(), options.device}, ranks);
  const run::DataFacts& facts = trained.facts;
  data::Dataset set = open_items(options, trained);
  if (options.limit > 0 && options.limit < set.size()) set = data::slice(set, 0, options.limit);
  agree_on_items(ranks, trained, set);
  LineOptions wanted = options.lines;
  wanted.files = set.data_source != nullptr;
  const KnownItems known(set, facts, wanted);
  const PredictionLines lines(facts, wanted, known.input_names());
  std::string text;
  OwnBatches own(ranks, run::open_loader(set, trained.config, facts, run::Use::evaluation));
  auto item = static_cast<std::size_t>(own.first_item());
  while (const std::optional<data::Batch> batch = own.next_batch()) {
    const data::Array outputs = trained.trainer.predict(batch->data);
    const auto& values = std::get<std::vector<float>>(outputs.values);
    const std::size_t width = values.size() / static_cast<std::size_t>(batch->items());
    for (std::size_t k = 0; k < values.size(); k += width)
      text += lines.lines(known.at(item++), std::span(values).subspan(k, width));
  }
  return lines.header() + ranks.joined(text);
}

}  // namespace

Run predict_verb(VerbOptions& verb) {
  const auto options = std::make_shared<PredictOptions>();
  verb.add_option("RUN", options->run, "The folder of a run")->required();
  verb.add_option("--data", options->data,
                  run::item_source_rule() + "; several images: --data for each")
      ->required()
      ->repeatable();
  verb.add_option("--checkpoint", options->checkpoint, run::checkpoint_help())
      ->capture_default_str();
  verb.add_option("--limit", options->limit, "How many items, the first ones; 0: all")
      ->between(std::int64_t{0}, std::int64_t{1} << 53)
      ->capture_default_str();
  add_device_flag(verb, options->device, "as in the run");
  verb.add_option("--threads", options->threads, "Threads that compute; 0: as in the run")
      ->between(0, 1024)
      ->capture_default_str();
  add_distributed_option(verb, options->distributed, "predict");
  verb.add_option("--top-k", options->lines.top_k, "So many classes, the most likely ones")
      ->between(std::int64_t{1}, run::DataFacts::kMaxClasses)
      ->capture_default_str();
  verb.add_flag("--probabilities", options->lines.probabilities,
                "The probabilities of all classes");
  verb.add_flag("--truth", options->lines.truth,
                "The label beside the prediction, where the data have one; of an image the class "
                "whose name a folder of its path has");
  verb.add_flag("--inputs", options->lines.inputs,
                "The fields of a table, or the numbers of rows, beside the prediction");
  const auto json = verb.add_flag("--json", options->lines.json, "One JSON object a line");
  verb.add_flag("--csv", options->lines.csv, "A table with a header")->excludes(json);
  verb.add_option("--out", options->out, "Write to this file instead of standard output");
  verb.footer(
      "A line per item: its number, the class, the name of the class if it has one, and its\n"
      "probability, and of images the file. Where the positions of an item have a class each, a\n"
      "line per position, with its number after the item's. Class -1 stands for an item whose "
      "numbers are not\n"
      "finite. A model that learnt numbers gives these, in the units of the labels it was trained\n"
      "with.\n"
      "Examples:\n"
      "  pantala predict runs/lenet-fashion-mnist --data fashion-mnist --limit 10\n"
      "  pantala predict runs/mlp-iris --data new.npy --csv --out classes.csv\n"
      "  pantala predict runs/resnet18-pets --data cat.jpg --top-k 3");
  return [options] {
    return in_ranks(options->distributed, {}, [&](const auto& communicator) {
      const run::RunRanks ranks(communicator);
      const std::string text = predict(*options, ranks);
      if (!ranks.writes()) return 0;
      if (options->out.empty())
        fmt::print("{}", text);
      else
        io::write_file(options->out, text);
      return 0;
    });
  };
}

}  // namespace pantala::tools
