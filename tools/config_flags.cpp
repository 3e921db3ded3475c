#include "tools/config_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pantala/error.h"

namespace pantala::tools {

namespace {

const run::Key* key_of(const run::KeyFlag& flag) {
  for (const run::Key& key : run::config_keys())
    if (key.name == flag.key) return &key;
  return nullptr;  // an option of the optimizer
}

// In the manual "Passes over the training set; a whole number from 1 (epochs)".
std::string help_of(const run::KeyFlag& flag) {
  const run::Key* key = key_of(flag);
  if (!key) return fmt::format("{} ({})", flag.help, flag.key);
  return described(flag.help.empty() ? key->help : flag.help,
                   fmt::format("{}; {} ({})", key->help, key->rule, key->name));
}

// Under which title --help has it.
std::string group_of(const run::KeyFlag& flag) {
  const run::Key* key = key_of(flag);
  if (flag.key.starts_with("model.")) return "Model";
  if (flag.key.starts_with("data.")) return "Data";
  return key && key->effect == run::Effect::running ? "Running" : "Training";
}

}  // namespace

std::vector<run::Assignment> ConfigFlags::assignments() const {
  if (!positional.empty() && !file.empty())
    throw TypeError(
        fmt::format("two config files are given: {} and --config {}", positional, file));
  std::vector<run::Assignment> all;
  if (const std::string& path = positional.empty() ? file : positional; !path.empty())
    all = run::read_toml_file(path);
  for (const std::string& set : sets) all.push_back(run::parse_set(set));
  for (const run::KeyFlag& flag : run::key_flags())
    if (const auto given = of.find(flag.flag); given != of.end())
      all.push_back(run::parse_flag(flag, given->second));
  return all;
}

Option* add_repeatable(VerbOptions& verb, const std::string& flag, const std::string& help,
                       std::function<void(const std::vector<std::string>&)> take) {
  return verb
      .add_option_function<std::vector<std::string>>(flag, std::move(take),
                                                     help + "; can be given several times")
      ->type_name("VALUE")
      ->repeatable();
}

std::shared_ptr<ConfigFlags> add_config_flags(VerbOptions& verb) {
  const auto flags = std::make_shared<ConfigFlags>();
  verb.add_option("file", flags->positional, "A TOML config")->type_name("FILE");
  verb.add_option("--config", flags->file, "The same, as an option")->type_name("FILE");
  add_repeatable(verb, "--set", "Any key of the config, such as --set optimizer.weight_decay=0.01",
                 [flags](const std::vector<std::string>& sets) { flags->sets = sets; })
      ->type_name("KEY=VALUE");
  for (const run::KeyFlag& flag : run::key_flags()) {
    if (flag.repeatable) {
      add_repeatable(verb, flag.flag, help_of(flag), [flags, name = flag.flag](const auto& texts) {
        flags->of[name] = fmt::format("{}", fmt::join(texts, ","));
      })->group(group_of(flag));
      continue;
    }
    verb.add_option_function<std::string>(
            flag.flag,
            [flags, name = flag.flag](const std::string& text) { flags->of[name] = text; },
            help_of(flag))
        ->type_name("VALUE")
        ->group(group_of(flag));
  }
  return flags;
}

}  // namespace pantala::tools
