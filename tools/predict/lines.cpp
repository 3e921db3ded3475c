#include "tools/predict/lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "io/json.h"
#include "pantala/error.h"

namespace pantala::tools {

using io::OrderedJson;

struct PredictionLines::Guess {
  std::int64_t klass = -1;  // -1: the numbers of the item are not finite
  std::string name = {};
  double probability = 0;
};

namespace {

// Of the classes; empty for a row with a NaN or without a largest number.
std::vector<double> softmax(std::span<const float> logits) {
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) return {};
  const float best = *std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(best)) return {};
  std::vector<double> shares;
  double sum = 0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit) - static_cast<double>(best)));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

// A field as CSV readers want it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string csv_fields(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) line += "," + csv_field(text);
  return line;
}

// What reads as a finite number is one; the rest is text.
OrderedJson json_value(const std::string& text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = !text.empty() && status == std::errc{} && end == text.data() + text.size();
  if (!is_number || !std::isfinite(number)) return text;
  std::int64_t whole = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc{} && stop == text.data() + text.size()) return whole;
  return number;
}

// One value, or a list of several; null where it is not known.
OrderedJson json_values(const std::vector<std::string>& texts) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& text : texts)
    list.push_back(text.empty() ? OrderedJson(nullptr) : json_value(text));
  return list.size() == 1 ? list[0] : list;
}

std::string json_line(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// "prediction", or of several "prediction0,prediction1"
std::string numbered(const std::string& title, std::int64_t count) {
  if (count == 1) return "," + title;
  std::string text;
  for (std::int64_t k = 0; k < count; ++k) text += fmt::format(",{}{}", title, k);
  return text;
}

// What every line has behind its prediction.
struct Rest {
  const Item& item;
  const LineOptions& options;
  const std::vector<std::string>& inputs;

  std::string csv() const {
    std::string text = options.files ? "," + csv_field(item.file) : "";
    if (options.truth) text += csv_fields(item.truth);
    if (options.inputs) text += csv_fields(item.inputs);
    return text + "\n";
  }
  void add(OrderedJson& json) const {
    if (options.files) json["file"] = item.file;
    if (options.truth) json["truth"] = json_values(item.truth);
    for (std::size_t k = 0; options.inputs && k < inputs.size(); ++k)
      json["inputs"][inputs[k]] = json_value(item.inputs[k]);
  }
  std::string text() const {
    std::string text = options.files ? "  " + item.file : "";
    if (options.truth) text += fmt::format("  truth {}", fmt::join(item.truth, " "));
    for (std::size_t k = 0; options.inputs && k < inputs.size(); ++k)
      text += fmt::format("  {}={}", inputs[k], item.inputs[k]);
    return text + "\n";
  }
};

void check_classes_wanted(const run::DataFacts& facts, const LineOptions& options) {
  const bool asks = options.top_k != 1 || options.probabilities;
  if (asks && facts.task() == zoo::Task::regression)
    throw TypeError("--top-k and --probabilities are of classes; this model learnt numbers");
  if (facts.task() == zoo::Task::classification && options.top_k > facts.classes)
    throw TypeError(
        fmt::format("--top-k is {}, but the model has {} classes", options.top_k, facts.classes));
}

}  // namespace

PredictionLines::PredictionLines(const run::DataFacts& facts, LineOptions options,
                                 std::vector<std::string> inputs)
    : facts_(facts), options_(options), inputs_(std::move(inputs)) {
  check_classes_wanted(facts, options);
}

std::string PredictionLines::class_name(std::int64_t klass) const {
  const auto k = static_cast<std::size_t>(klass);
  return klass >= 0 && k < facts_.names.size() ? facts_.names[k] : "";
}

std::string PredictionLines::header() const {
  if (!options_.csv) return "";
  std::string text = "item";
  if (facts_.task() == zoo::Task::regression) {
    text += numbered("prediction", facts_.targets);
  } else {
    if (facts_.position_count() > 0) text += ",position";
    text += ",class,name,probability";
    for (std::int64_t k = 2; k <= options_.top_k; ++k)
      text += fmt::format(",class{},name{},probability{}", k, k, k);
    for (std::int64_t k = 0; options_.probabilities && k < facts_.classes; ++k)
      text +=
          "," + csv_field("probability:" + run::class_title(facts_, static_cast<std::size_t>(k)));
  }
  if (options_.files) text += ",file";
  if (options_.truth)
    text += numbered("truth", facts_.task() == zoo::Task::regression ? facts_.targets : 1);
  if (options_.inputs) text += csv_fields(inputs_);
  return text + "\n";
}

// The most likely ones; of equals the first.
std::vector<PredictionLines::Guess> PredictionLines::guesses(
    std::span<const double> probabilities) const {
  if (probabilities.empty()) return std::vector<Guess>(static_cast<std::size_t>(options_.top_k));
  std::vector<std::int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<std::ptrdiff_t>(options_.top_k, std::ssize(order));
  const auto at = [&](std::int64_t k) { return probabilities[static_cast<std::size_t>(k)]; };
  std::partial_sort(
      order.begin(), order.begin() + count, order.end(),
      [&](std::int64_t a, std::int64_t b) { return at(a) > at(b) || (at(a) == at(b) && a < b); });
  std::vector<Guess> best;
  for (auto k = order.begin(); k != order.begin() + count; ++k)
    best.push_back({*k, class_name(*k), at(*k)});
  return best;
}

std::string PredictionLines::class_line(const Item& item, std::span<const float> logits) const {
  const std::vector<double> shares = softmax(logits);
  const std::vector<Guess> best = guesses(shares);
  const Rest rest{item, options_, inputs_};
  // A model may have outputs beside those of the classes of its data.
  const auto classes = static_cast<std::size_t>(facts_.classes);
  const std::size_t shown = std::min(shares.size(), classes);
  const auto as_json = [](const Guess& guess) {
    OrderedJson json{{"class", guess.klass}};
    if (!guess.name.empty()) json["name"] = guess.name;
    json["probability"] = guess.probability;
    return json;
  };
  if (options_.json) {
    OrderedJson json{{"item", item.number}};
    if (item.position) json["position"] = *item.position;
    json.update(as_json(best[0]));
    for (const Guess& guess : best)
      if (options_.top_k > 1) json["top"].push_back(as_json(guess));
    for (std::size_t k = 0; options_.probabilities && k < shown; ++k)
      json["probabilities"][run::class_title(facts_, k)] = shares[k];
    rest.add(json);
    return json_line(json);
  }
  if (options_.csv) {
    std::string line = fmt::to_string(item.number);
    if (item.position) line += fmt::format(",{}", *item.position);
    for (const Guess& guess : best)
      line +=
          fmt::format(",{},{},{}", guess.klass, csv_field(guess.name), exact(guess.probability));
    for (std::size_t k = 0; options_.probabilities && k < classes; ++k)
      line += k < shown ? "," + exact(shares[k]) : ",";
    return line + rest.csv();
  }
  std::string line = fmt::format("{:6}", item.number);
  if (item.position) line += fmt::format(" {:6}", *item.position);
  for (const Guess& guess : best)
    line +=
        fmt::format("  {:3} {:<16} {:6.2f} %", guess.klass, guess.name, 100 * guess.probability);
  for (std::size_t k = 0; options_.probabilities && k < shown; ++k)
    line += fmt::format("  {} {:.2f} %", run::class_title(facts_, k), 100 * shares[k]);
  return line + rest.text();
}

// Floats are written with as many digits as they need; JSON has null for those that are not finite.
std::string PredictionLines::number_line(const Item& item, std::span<const float> numbers) const {
  const Rest rest{item, options_, inputs_};
  if (options_.json) {
    OrderedJson json{{"item", item.number}};
    if (numbers.size() == 1)
      json["prediction"] = numbers[0];
    else
      json["prediction"] = std::vector<float>(numbers.begin(), numbers.end());
    rest.add(json);
    return json_line(json);
  }
  if (options_.csv) return fmt::format("{},{}", item.number, fmt::join(numbers, ",")) + rest.csv();
  std::string line = fmt::format("{:6} ", item.number);
  for (const float number : numbers) line += fmt::format(" {:12}", number);
  return line + rest.text();
}

std::string PredictionLines::lines(Item item, std::span<const float> outputs) const {
  if (facts_.task() == zoo::Task::regression) return number_line(item, outputs);
  const std::int64_t positions = facts_.position_count();
  if (positions == 0) return class_line(item, outputs);
  std::string text;
  const std::vector<std::string> truth = std::move(item.truth);
  const std::size_t classes = outputs.size() / static_cast<std::size_t>(positions);
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto at = static_cast<std::size_t>(position);
    item.position = position;
    if (options_.truth) item.truth = {truth.at(at)};
    text += class_line(item, outputs.subspan(at * classes, classes));
  }
  return text;
}

}  // namespace pantala::tools
