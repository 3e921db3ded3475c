// pantala predict: the class, or the numbers, of every item, by the model of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "pantala/error.h"
#include "run/run_data.h"
#include "run/sources/source.h"
#include "run/trained.h"
#include "tools/command.h"
#include "tools/process.h"

namespace pantala::tools {

namespace {

struct PredictOptions {
  std::string run, checkpoint = run::kReported, data, out;
  std::int64_t limit = 0;
  int threads = 0;
  bool json = false, csv = false;
};

// What a prediction is of.
struct Item {
  std::int64_t number = 0;
  std::string file;                      // of an image
  std::optional<std::int64_t> position;  // of an item whose positions have a class each
};

struct Prediction {
  std::int64_t klass = 0;
  std::string name;
  double probability = 0;
};

data::Dataset open_items(const PredictOptions& options, const run::Trained& trained) {
  if (!run::is_items_file(options.data))
    run::make_config({{"data.source", options.data, "--data"}});  // checks it
  return run::open_items_for_model(options.data, trained.config, trained.facts);
}

// The most likely class; of equal ones the first. A row with a NaN or without a largest number has
// none.
Prediction predict_item(std::span<const float> logits, const run::DataFacts& facts) {
  Prediction result{.klass = -1, .name = "", .probability = 0};
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    return result;
  const auto best = std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(*best)) return result;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *best);
  result.klass = best - logits.begin();
  result.probability = 1 / sum;
  if (const auto k = static_cast<std::size_t>(result.klass); k < facts.names.size())
    result.name = facts.names[k];
  return result;
}

// A field as CSV readers want it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string class_line(const Item& item, const Prediction& p, const PredictOptions& options) {
  if (options.json) {
    io::OrderedJson json{{"item", item.number}};
    if (item.position) json["position"] = *item.position;
    json["class"] = p.klass;
    if (!p.name.empty()) json["name"] = p.name;
    json["probability"] = p.probability;
    if (!item.file.empty()) json["file"] = item.file;
    return json.dump(-1, ' ', false, io::OrderedJson::error_handler_t::replace) + "\n";
  }
  const std::string file = item.file.empty() ? "" : "," + csv_field(item.file);
  if (options.csv)
    return fmt::format("{}{},{},{},{}{}\n", item.number,
                       item.position ? fmt::format(",{}", *item.position) : "", p.klass,
                       csv_field(p.name), exact(p.probability), file);
  return fmt::format("{:6}{}  {:3} {:<16} {:6.2f} %{}{}\n", item.number,
                     item.position ? fmt::format(" {:6}", *item.position) : "", p.klass, p.name,
                     100 * p.probability, item.file.empty() ? "" : "  ", item.file);
}

// Floats are written with as many digits as they need; JSON has null for those that are not finite.
std::string number_line(const Item& item, std::span<const float> numbers,
                        const PredictOptions& options) {
  if (options.json) {
    io::OrderedJson json{{"item", item.number}};
    if (numbers.size() == 1)
      json["prediction"] = numbers[0];
    else
      json["prediction"] = std::vector<float>(numbers.begin(), numbers.end());
    return json.dump() + "\n";
  }
  if (options.csv) return fmt::format("{},{}\n", item.number, fmt::join(numbers, ","));
  std::string line = fmt::format("{:6} ", item.number);
  for (const float number : numbers) line += fmt::format(" {:12}", number);
  return line + "\n";
}

std::string csv_header(const run::DataFacts& facts, bool files) {
  if (facts.positions > 0) return "item,position,class,name,probability\n";
  if (facts.task() == zoo::Task::classification)
    return files ? "item,class,name,probability,file\n" : "item,class,name,probability\n";
  if (facts.targets == 1) return "item,prediction\n";
  std::string header = "item";
  for (std::int64_t k = 0; k < facts.targets; ++k) header += fmt::format(",prediction{}", k);
  return header + "\n";
}

// The lines of one item.
std::string item_lines(Item item, std::span<const float> values, const run::DataFacts& facts,
                       const PredictOptions& options) {
  if (facts.task() == zoo::Task::regression) return number_line(item, values, options);
  if (facts.positions == 0) return class_line(item, predict_item(values, facts), options);
  std::string lines;
  const std::size_t classes = values.size() / static_cast<std::size_t>(facts.positions);
  for (std::int64_t position = 0; position < facts.positions; ++position) {
    item.position = position;
    const auto row = values.subspan(static_cast<std::size_t>(position) * classes, classes);
    lines += class_line(item, predict_item(row, facts), options);
  }
  return lines;
}

std::string predict(const PredictOptions& options) {
  run::Trained trained = run::open_trained(run::open_run_folder(options.run),
                                           {options.checkpoint, options.threads, plan_cache()});
  const run::DataFacts& facts = trained.facts;
  data::Dataset set = open_items(options, trained);
  if (options.limit > 0 && options.limit < set.size()) set = data::slice(set, 0, options.limit);
  const auto loader = run::open_loader(set, trained.config, facts, run::Use::evaluation);
  const data::ItemSource* files = set.data_source.get();
  std::string text = options.csv ? csv_header(facts, files != nullptr) : "";
  Item item;
  while (const std::optional<data::Batch> batch = loader->next_batch()) {
    const data::Array outputs = trained.trainer.predict(batch->data);
    const auto& values = std::get<std::vector<float>>(outputs.values);
    const std::size_t width = values.size() / static_cast<std::size_t>(batch->items());
    for (std::size_t k = 0; k < values.size(); k += width) {
      const std::span<const float> row = std::span(values).subspan(k, width);
      if (files) item.file = files->item_name(item.number);
      text += item_lines(item, row, facts, options);
      ++item.number;
    }
  }
  return text;
}

}  // namespace

Run predict_verb(CLI::App& verb) {
  const auto options = std::make_shared<PredictOptions>();
  verb.add_option("RUN", options->run, "The folder of a run")->required();
  verb.add_option("--data", options->data, run::item_source_rule())->required();
  verb.add_option("--checkpoint", options->checkpoint, run::checkpoint_help())
      ->capture_default_str();
  verb.add_option("--limit", options->limit, "How many items, the first ones; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53))
      ->capture_default_str();
  verb.add_option("--threads", options->threads, "Threads that compute; 0: as in the run")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  const auto json = verb.add_flag("--json", options->json, "One JSON object a line");
  verb.add_flag("--csv", options->csv, "A table with a header")->excludes(json);
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
      "  pantala predict runs/mlp-iris --data new.npy --csv --out classes.csv");
  return [options] {
    const std::string text = predict(*options);
    if (options->out.empty())
      fmt::print("{}", text);
    else
      io::write_file(options->out, text);
    return 0;
  };
}

}  // namespace pantala::tools
