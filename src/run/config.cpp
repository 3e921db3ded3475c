// How values become a config, and what a config means.
#include "run/core/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/metrics.h"
#include "run/core/key_types.h"
#include "run/models/model.h"
#include "run/sources/source.h"

namespace pantala::run {

namespace {

// "groups.N.pattern" for "groups.0.pattern".
std::string table_name(std::string_view name) {
  const KeyParts parts = key_parts(name);
  return parts.entry ? fmt::format("{}.N.{}", parts.section, parts.name) : std::string(name);
}

const Key* find_key(std::string_view name) {
  const std::string in_table = table_name(name);
  for (const Key& key : config_keys())
    if (!key.open() && key.name == in_table && key.entries.has_value() == (in_table != name))
      return &key;
  for (const Key& key : config_keys()) {
    const std::string prefix = key.section() + ".";
    if (key.open() && name.starts_with(prefix) && name.size() > prefix.size() &&
        name.find('.', prefix.size()) == std::string_view::npos)
      return &key;
  }
  return nullptr;
}

std::string last_part(std::string_view name) {
  return std::string(name.substr(name.find_last_of('.') + 1));
}

// What somebody may have meant by a key that does not exist.
std::string key_hint(const std::string& name) {
  std::vector<std::string> names, in_section;
  for (const Key& key : config_keys()) {
    if (key.section() == name) in_section.push_back(key.name);
    if (!key.open()) names.push_back(key.name);
  }
  if (!in_section.empty())
    return fmt::format("; it is a section with {}", fmt::join(in_section, ", "));
  names.emplace_back("optimizer.lr");
  // The right key in the wrong section is nearer than any slip of the pen.
  for (const std::string& known : names)
    if (last_part(known) == last_part(name)) return fmt::format("; did you mean '{}'?", known);
  // In a section that exists the slip is behind the dot: what stands before it tells nothing.
  const std::string section = name.substr(0, name.find('.')) + ".";
  std::vector<std::string> parts;
  for (const std::string& known : names)
    if (known.starts_with(section)) parts.push_back(known.substr(section.size()));
  if (parts.empty() || name.size() < section.size()) return did_you_mean(name, names);
  const std::string part = nearest(name.substr(section.size()), parts);
  return part.empty() ? "" : fmt::format("; did you mean '{}{}'?", section, part);
}

OptionValue option_value(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return *list;
  throw TypeError(fmt::format("a list of texts is no value of an option: {}", value_text(value)));
}

ConfigValue config_value(const OptionValue& value) {
  return std::visit([](const auto& held) { return ConfigValue(held); }, value);
}

void assign(RunConfig& config, const Assignment& given) {
  const Key* key = find_key(given.key);
  if (!key)
    throw TypeError(
        fmt::format("{}: unknown key '{}'{}", given.where, given.key, key_hint(given.key)));
  if (const auto* text = std::get_if<std::string>(&given.value); text && !is_utf8(*text))
    throw TypeError(fmt::format("{}: {} must be text in UTF-8", given.where, given.key));
  try {
    if (key->open())
      key->options(config)[last_part(given.key)] = option_value(given.value);
    else if (key->entries)
      key->entries->set(config, key_parts(given.key).entry.value(), given.value);
    else
      key->set(config, given.value);
  } catch (const TypeError& error) {
    throw TypeError(fmt::format("{}: {}", given.where, error.what()));
  }
}

bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [&](std::size_t k) {
    return k < text.size() && (std::isalnum(static_cast<unsigned char>(text[k])) || text[k] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (!(at > 0 && letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

// Where the value was given that a complaint about the section's options is about: the option that
// it names, or the section's name, if somebody gave one of them.
std::string blame(const std::vector<Assignment>& given, const std::string& section,
                  std::string_view complaint) {
  std::string where;
  for (const Assignment& one : given)
    if (one.key == section + ".name" && where.empty()) where = one.where;
  for (const Assignment& one : given)
    if (one.key.starts_with(section + ".") && one.key != section + ".name" &&
        has_word(complaint, last_part(one.key)))
      where = one.where;
  return where;
}

template <class F>
auto checked(const std::vector<Assignment>& given, const std::string& section, F&& f) {
  try {
    return f();
  } catch (const TypeError& error) {
    const std::string where = blame(given, section, error.what());
    throw TypeError(where.empty() ? error.what() : fmt::format("{}: {}", where, error.what()));
  }
}

std::string data_name(const std::string& source) {
  const std::size_t colon = source.find(':');
  if (colon == std::string::npos) return source;
  std::filesystem::path path(source.substr(colon + 1));
  if (!path.has_filename()) path = path.parent_path();  // "idx:folder/"
  const std::string name = path.stem().string();
  return name.empty() || name == "." || name == ".." ? source.substr(0, colon) : name;
}

void check_plateau_metric(const std::string& metric) {
  const std::vector<std::string> names = metrics::names();
  if (std::find(names.begin(), names.end(), metric) == names.end())
    throw TypeError(fmt::format("plateau: metric must be one of {}, got {}{}",
                                fmt::join(names, ", "), value_text(metric),
                                did_you_mean(metric, names)));
}

RateRule plateau_of(const RunConfig& config) {
  RateRule rule;
  NamedOptions options = config.rate_schedule.options;
  if (const auto metric = options.extract("metric")) {
    const auto* name = std::get_if<std::string>(&metric.mapped());
    if (!name) throw TypeError("plateau: metric must be a text");
    check_plateau_metric(*name);
    rule.plateau_metric = *name;
  }
  NamedOptions warmup;
  if (auto steps = options.extract("warmup_steps")) warmup.insert(std::move(steps));
  rule.rate_schedule = RateSchedule::from_options("constant", warmup);
  if (!options.contains("mode") && metrics::larger_is_better(rule.plateau_metric))
    options["mode"] = std::string("max");
  rule.plateau = Plateau::from_options(optimizer_of(config).lr(), options).options();
  return rule;
}

// Keys that mean nothing without each other, or together.
void check_weights(const RunConfig& config) {
  const auto& model = config.model;
  if (!model.weights.empty() && !model.from.empty())
    throw TypeError(
        "model.weights and model.from are both given; the file of model.from has weights of its "
        "own");
  if (model.loss != "auto" && model.from.empty())
    throw TypeError("model.loss (--loss) is given, but no model.from (--from) that it is of");
  for (const auto& [key, value] : {std::pair{"model.prefix", &model.prefix},
                                   {"model.fresh", &model.fresh},
                                   {"model.unused", &model.unused}})
    if (!value->empty() && model.weights.empty())
      throw TypeError(
          fmt::format("{} is given, but no model.weights (--weights) that it is of", key));
}

// A key of one source means nothing to another, which would ignore it without a word.
void check_source_keys(const RunConfig& config, const std::vector<Assignment>& given) {
  const Source& source = named_source(config.data.source).source;
  // A language model without tokens is the greater mistake, which is named when they are opened.
  if (model_of(config).vocabulary > 0 && !source.tokens) return;
  for (const Assignment& one : given) {
    const KeyReaders readers = readers_of(one.key, source);
    if (readers.forms.empty() || readers.read) continue;
    const Key& key = *find_key(one.key);
    if (key.get(config) == key.default_value()) continue;  // what a resolved config has
    throw TypeError(fmt::format("{}: {} is of {}, but data.source is {}", one.where, one.key,
                                one_of(readers.forms), config.data.source));
  }
}

void check_sizes(const RunConfig& config) {
  if (model_sizes(config) == zoo::LlamaSizes{}) return;
  std::string given;
  for (const Key& key : config_keys())
    for (const char* name : {"width", "layers", "heads", "kv_heads", "feed_forward"})
      if (key.name == fmt::format("model.{}", name) && key.get(config) != key.default_value())
        given += fmt::format("{}{}", given.empty() ? "" : ", ", key.name);
  if (is_from_file(config))
    throw TypeError(fmt::format("{}: the sizes of model.from are those of its file", given));
  if (model_of(config).vocabulary == 0)
    throw TypeError(fmt::format("{}: model {} has one size; language models have others", given,
                                config.model.name));
  try {
    llama_of(config);
  } catch (const TypeError& error) { throw TypeError(fmt::format("{}: {}", given, error.what())); }
}

void check_groups(const RunConfig& config, const std::vector<Assignment>& given) {
  for (std::size_t k = 0; k < config.groups.size(); ++k) {
    const optim::ParameterGroup& group = config.groups[k];
    const std::string name = fmt::format("groups.{}", k);
    const auto refuse = [&](const std::string& what) {
      const auto first = std::find_if(given.begin(), given.end(), [&](const Assignment& one) {
        return one.key.starts_with(name + ".");
      });
      throw TypeError(
          fmt::format("{}{} {}", first == given.end() ? "" : first->where + ": ", name, what));
    };
    if (group.pattern.empty()) refuse("has no pattern that says which parameters it is of");
    if (group.frozen && (group.lr_factor != 1 || group.weight_decay))
      refuse("is frozen: lr_factor and weight_decay mean nothing there");
  }
}

}  // namespace

KeyParts key_parts(std::string_view key) {
  KeyParts parts;
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {.section = "", .entry = {}, .name = std::string(key)};
  parts.section = key.substr(0, dot);
  parts.name = key.substr(dot + 1);
  const std::size_t next = parts.name.find('.');
  const std::string number = parts.name.substr(0, next);
  constexpr std::size_t kDigits = 6;
  if (next == std::string::npos || number.empty() || number.size() > kDigits ||
      !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return parts;
  parts.entry = std::stoul(number);
  parts.name = parts.name.substr(next + 1);
  return parts;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) { return false; }
}

optim::Optimizer optimizer_of(const RunConfig& config) {
  return optim::from_options(config.optimizer.name, config.optimizer.options);
}

bool rate_schedule_spans_run(const RunConfig& config) {
  const std::string option(RateSchedule::length_option(config.rate_schedule.name));
  return !option.empty() && !config.rate_schedule.options.contains(option);
}

RateRule rate_of(const RunConfig& config, std::int64_t total_steps) {
  if (config.rate_schedule.name == "plateau") return plateau_of(config);
  NamedOptions options = config.rate_schedule.options;
  if (rate_schedule_spans_run(config)) {
    double warmup = 0;
    if (const auto given = options.find("warmup_steps"); given != options.end())
      if (const auto* steps = std::get_if<double>(&given->second)) warmup = *steps;
    options[std::string(RateSchedule::length_option(config.rate_schedule.name))] =
        std::max(1.0, static_cast<double>(total_steps) - warmup);
  }
  if (config.rate_schedule.name == "one_cycle" && !options.contains("max_lr"))
    options["max_lr"] = optimizer_of(config).lr();
  return {.rate_schedule = RateSchedule::from_options(config.rate_schedule.name, options),
          .plateau = {}};
}

std::string_view task_name(zoo::Task task) {
  return task == zoo::Task::regression ? "regression" : "classification";
}

void check_metrics(const RunConfig& config, metrics::Kind kind, std::int64_t classes,
                   const std::string& data) {
  const auto check = [&](const char* key, const std::string& name) {
    if (name == "top5" && kind == metrics::Kind::classes && classes <= 5)
      throw TypeError(
          fmt::format("{} is \"top5\", but {} has {} classes: the right one is always "
                      "among five; take accuracy",
                      key, data, classes));
    const std::vector<std::string> fitting = metrics::names(kind);
    if (std::find(fitting.begin(), fitting.end(), name) != fitting.end()) return;
    for (const metrics::Metric& metric : metrics::table())
      if (metric.name == name)
        throw TypeError(fmt::format(
            "{} is {}, which is of {}, but the labels of {} are {}; take {}", key, value_text(name),
            metrics::kind_name(metric.of.at(0)), data, metrics::kind_name(kind), one_of(fitting)));
  };
  check("early_stopping.metric", config.early_stopping.metric);
  check("checkpoint.metric", config.checkpoint.metric);
  if (config.rate_schedule.name == "plateau")
    check("schedule.metric", rate_of(config, 1).plateau_metric);
}

RunConfig make_config(const std::vector<Assignment>& assignments) {
  RunConfig config;
  for (const Assignment& one : assignments) assign(config, one);
  check_weights(config);
  check_source_keys(config, assignments);
  check_groups(config, assignments);
  check_sizes(config);
  const optim::Optimizer optimizer =
      checked(assignments, "optimizer", [&] { return optimizer_of(config); });
  checked(assignments, "schedule", [&] { return rate_of(config, 1000); });
  config.optimizer.options.clear();
  for (const auto& [name, value] : optimizer.values()) config.optimizer.options[name] = value;
  for (const auto& [name, flag] : optimizer.flags()) config.optimizer.options[name] = flag;
  if (config.output.folder.empty())
    config.output.folder =
        fmt::format("runs/{}-{}", model_title(config), data_name(config.data.source));
  return config;
}

RunConfig completed(const RunConfig& config) {
  std::vector<Assignment> assignments = values_of(config);
  for (Assignment& one : assignments) one.where = "the config";
  return make_config(assignments);
}

RunConfig read_config(const std::filesystem::path& file, const std::vector<std::string>& values) {
  std::vector<Assignment> assignments;
  if (!file.empty()) assignments = read_toml_file(file);
  for (const std::string& value : values) assignments.push_back(parse_set(value));
  return make_config(assignments);
}

namespace {

bool is_first_of_section(const Key& key) {
  const auto first = std::find_if(config_keys().begin(), config_keys().end(),
                                  [&](const Key& one) { return one.section() == key.section(); });
  return &*first == &key;
}

// All keys of one entry, then all of the next one.
void put_entries(const RunConfig& config, const Key& first, std::vector<Assignment>& values) {
  for (std::size_t k = 0; k < first.entries->count(config); ++k)
    for (const Key& key : config_keys())
      if (key.section() == first.section())
        if (std::optional<ConfigValue> value = key.entries->get(config, k))
          values.push_back(
              {fmt::format("{}.{}.{}", key.section(), k, last_part(key.name)), *value, ""});
}

}  // namespace

std::vector<Assignment> values_of(const RunConfig& config) {
  std::vector<Assignment> values;
  RunConfig copy = config;  // options() gives a mutable map
  for (const Key& key : config_keys()) {
    if (key.single()) values.push_back({key.name, key.get(config), ""});
    if (key.entries && is_first_of_section(key)) put_entries(config, key, values);
    if (!key.open()) continue;
    for (const auto& [name, value] : key.options(copy))
      values.push_back({fmt::format("{}.{}", key.section(), name), config_value(value), ""});
  }
  return values;
}

bool changes_nothing(std::string_view key) {
  const Key* known = find_key(key);
  return known && known->effect == Effect::running;
}

std::vector<std::string> differences(const RunConfig& there, const RunConfig& here) {
  struct Pair {
    std::string there = "nothing", here = "nothing";
  };
  std::vector<std::string> order;
  std::map<std::string, Pair> pairs;
  for (const Assignment& one : values_of(there)) {
    order.push_back(one.key);
    pairs[one.key].there = value_text(one.value);
  }
  for (const Assignment& one : values_of(here)) {
    if (!pairs.contains(one.key)) order.push_back(one.key);
    pairs[one.key].here = value_text(one.value);
  }
  const bool length_counts = rate_schedule_spans_run(there) || rate_schedule_spans_run(here);
  std::vector<std::string> lines;
  for (const std::string& name : order) {
    const Pair& pair = pairs[name];
    const Effect effect = find_key(name)->effect;
    if (pair.there == pair.here || effect == Effect::running) continue;
    if (effect == Effect::length && !length_counts) continue;
    lines.push_back(fmt::format("{}: {} there, {} here", name, pair.there, pair.here));
    if (effect == Effect::length)
      lines.back() += fmt::format(" (the rate schedule {} spans the run)", here.rate_schedule.name);
  }
  return lines;
}

std::string config_reference() {
  std::string text = "| key | default | value | meaning |\n|---|---|---|---|\n";
  for (const Key& key : config_keys())
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.name,
                        key.single() ? fmt::format("`{}`", value_text(key.default_value())) : "",
                        key.rule, key.help);
  text += "\nWhat `optimizer.*` stands for:\n\n";
  text += "| optimizer | option | default | value | meaning |\n|---|---|---|---|---|\n";
  for (const optim::OptimizerDescription& optimizer : optim::descriptions())
    for (const optim::OptionDescription& option : optimizer.options)
      text += fmt::format("| {} | `{}` | `{}` | {} | {} |\n", optimizer.name, option.name,
                          value_text(config_value(option.default_value)), option.rule, option.doc);
  return text;
}

}  // namespace pantala::run
