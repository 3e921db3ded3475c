// pantala predict: the class of every item, by the model of a run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"
#include "tools/command.h"
#include "tools/train/result.h"
#include "tools/train/trained.h"

namespace pantala::tools {

namespace {

struct PredictOptions {
  std::string run, checkpoint = "last", data, out;
  std::int64_t limit = 0;
  int threads = 0;
  bool json = false, csv = false;
};

struct Prediction {
  std::int64_t item = 0, klass = 0;
  std::string name;
  double probability = 0;
};

data::Dataset open_items(const PredictOptions& options, const Trained& trained) {
  const bool items_alone =
      options.data.ends_with(".npy") && options.data.find(':') == std::string::npos;
  if (!items_alone) make_config({{"data.source", options.data, "--data"}});  // checks it
  return open_items_for_model(options.data, trained.config, trained.profile);
}

// The most likely class; of equal ones the first. A row with a NaN has none.
Prediction predict_item(std::int64_t item, std::span<const float> logits,
                        const DataProfile& profile) {
  Prediction result{.item = item, .klass = -1, .name = "", .probability = 0};
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    return result;
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *best);
  result.klass = best - logits.begin();
  result.probability = 1 / sum;
  if (const auto k = static_cast<std::size_t>(result.klass); k < profile.names.size())
    result.name = profile.names[k];
  return result;
}

// A field as CSV readers want it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string line_of(const Prediction& p, const PredictOptions& options) {
  if (options.json) {
    OrderedJson json{{"item", p.item}, {"class", p.klass}};
    if (!p.name.empty()) json["name"] = p.name;
    json["probability"] = p.probability;
    return json.dump() + "\n";
  }
  if (options.csv)
    return fmt::format("{},{},{},{}\n", p.item, p.klass, csv_field(p.name), exact(p.probability));
  return fmt::format("{:6}  {:3} {:<16} {:6.2f} %\n", p.item, p.klass, p.name, 100 * p.probability);
}

std::string predict(const PredictOptions& options) {
  Trained trained = open_trained(open_run_folder(options.run), options.checkpoint, options.threads);
  data::Dataset set = open_items(options, trained);
  if (options.limit > 0 && options.limit < set.size()) set = data::slice(set, 0, options.limit);
  const auto loader = open_loader(set, trained.config, trained.profile, Use::evaluation);
  std::string text = options.csv ? "item,class,name,probability\n" : "";
  std::int64_t item = 0;
  while (const std::optional<data::Batch> batch = loader->next_batch()) {
    const data::Array logits = trained.trainer.predict(batch->data);
    const auto& values = std::get<std::vector<float>>(logits.values);
    const std::size_t classes = values.size() / static_cast<std::size_t>(batch->items());
    for (std::size_t k = 0; k < values.size(); k += classes)
      text += line_of(predict_item(item++, std::span(values).subspan(k, classes), trained.profile),
                      options);
  }
  return text;
}

}  // namespace

Run predict_verb(CLI::App& verb) {
  const auto options = std::make_shared<PredictOptions>();
  verb.add_option("RUN", options->run, "The folder of a run")->required();
  verb.add_option(
          "--data", options->data,
          "fashion-mnist, idx:DIR, csv:FILE or npz:FILE (a test set if there is one; labels "
          "are not looked at, and may lack in csv and npz), or FILE.npy with items alone")
      ->required();
  verb.add_option("--checkpoint", options->checkpoint,
                  "last, best (by the run's checkpoint.metric), or the name of one")
      ->capture_default_str();
  verb.add_option("--limit", options->limit, "The first so many items; 0: all")
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
      "probability. Class -1 stands for an item whose numbers are not finite.\n"
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
