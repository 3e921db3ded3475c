#include "run/dry_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "base/text.h"
#include "io/json.h"
#include "run/first_weights.h"
#include "run/parameter_groups.h"
#include "run/run_data.h"
#include "run/setup.h"

namespace pantala::run {

namespace {

using io::OrderedJson;

OrderedJson config_json(const RunConfig& config) {
  OrderedJson json = OrderedJson::object();
  for (const Assignment& one : values_of(config)) {
    const KeyParts parts = key_parts(one.key);
    OrderedJson* section = parts.section.empty() ? &json : &json[parts.section];
    if (parts.entry) section = &(*section)[*parts.entry];  // of a list
    std::visit([&](const auto& value) { (*section)[parts.name] = value; }, one.value);
  }
  return json;
}

OrderedJson parameters_json(const RunConfig& config, const Session& session) {
  const std::vector<optim::ParameterGroup> groups = parameter_groups(config);
  OrderedJson json = OrderedJson::array();
  for (const std::string& name : session.parameters()) {
    const optim::ParameterGroup* group = optim::find_group(groups, name);
    json.push_back({{"name", name},
                    {"shape", session.parameter(name).shape().vec()},
                    {"frozen", group != nullptr && group->frozen}});
  }
  return json;
}

OrderedJson groups_json(const ParameterCounts& counts) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [key, group, tensors, numbers] : counts.groups) {
    json.push_back({{"key", key},
                    {"pattern", group.pattern},
                    {"frozen", group.frozen},
                    {"lr_factor", group.lr_factor},
                    {"tensors", tensors},
                    {"parameter_count", numbers}});
    if (group.weight_decay) json.back()["weight_decay"] = *group.weight_decay;
  }
  return json;
}

// "model: 812 parameters, 800 frozen, 12 trained", and a line per group.
std::string parameters_text(const ParameterCounts& counts) {
  std::string text = fmt::format("model: {} parameters", counts.all);
  if (counts.frozen > 0)
    text += fmt::format(", {} frozen, {} trained", counts.frozen, counts.trained());
  for (const auto& [key, group, tensors, numbers] : counts.groups) {
    text += fmt::format("\n  {} '{}': {} parameters in {}", key, group.pattern, numbers,
                        counted(static_cast<std::size_t>(tensors), "tensor"));
    text += group.frozen ? ", frozen" : fmt::format(", lr_factor {}", exact(group.lr_factor));
    if (group.weight_decay) text += fmt::format(", weight_decay {}", exact(*group.weight_decay));
  }
  return text + "\n";
}

std::string labels_text(const DataFacts& facts) {
  if (facts.tokens) return fmt::format("a vocabulary of {}", facts.classes);
  if (facts.task() == zoo::Task::classification) return fmt::format("{} classes", facts.classes);
  return counted(static_cast<std::size_t>(facts.targets), "number") + " to predict";
}

std::string comment(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += fmt::format("# {}\n", line);
  return out;
}

}  // namespace

std::string dry_run(const RunConfig& config, bool json, const std::filesystem::path& plan_cache) {
  const RunData data = open_run_data(config);
  const auto loader = open_loader(data.train, config, data.facts, Use::training);
  const RunLength length = run_length(config, *loader);
  const ModelShape shape = model_shape(config, data.facts);
  Trainer trainer = make_trainer(config, shape, length.total_steps, plan_cache);
  load_first_weights(config, shape, trainer.session());  // says what does not fit
  const SessionMemory memory = trainer.session().memory_summary();
  const OrderedJson parameters = parameters_json(config, trainer.session());
  const ParameterCounts counts = count_parameters(config, trainer.session());
  const std::int64_t validation = data.validation ? data.validation->size() : 0;
  if (json)
    return OrderedJson{{"config", config_json(config)},
                       {"device", device_line(config)},
                       {"items", data.train.size()},
                       {"validation_items", validation},
                       {"task", task_name(data.facts.task())},
                       {"classes", data.facts.classes},
                       {"targets", data.facts.targets},
                       {"steps_per_epoch", length.steps_per_epoch},
                       {"total_steps", length.total_steps},
                       {"parameter_count", counts.all},
                       {"trained_parameter_count", counts.trained()},
                       {"frozen_parameter_count", counts.frozen},
                       {"groups", groups_json(counts)},
                       {"parameters", parameters},
                       {"memory_bytes", memory.total()},
                       {"schedule", trainer.config().rate_schedule.str()}}
               .dump() +
           "\n";
  std::string summary = device_line(config) + "\n";
  summary +=
      fmt::format("data: {} for training, {} for validation, {}, items {}\n", data.train.size(),
                  validation, labels_text(data.facts), data.facts.item.str());
  summary += parameters_text(counts);
  for (const OrderedJson& parameter : parameters)
    summary += fmt::format("  {} {}{}\n", parameter.at("name").get<std::string>(),
                           Shape(parameter.at("shape").get<std::vector<std::int64_t>>()).str(),
                           parameter.at("frozen").get<bool>() ? " frozen" : "");
  summary +=
      fmt::format("steps: {} an epoch, {} in all\n", length.steps_per_epoch, length.total_steps);
  summary += fmt::format("optimizer: {}\nschedule: {}\n", trainer.config().optimizer.str(),
                         trainer.config().rate_schedule.str());
  summary += "memory of a step:\n" + memory.text();
  return write_toml(config) + "\n" + comment(summary);
}

}  // namespace pantala::run
