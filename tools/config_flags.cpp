#include "tools/config_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "pantala/error.h"

namespace pantala::tools {

namespace {

// "Passes over the training set; a whole number from 1"
std::string help_of(const run::KeyFlag& flag) {
  for (const run::Key& key : run::config_keys())
    if (key.name == flag.key) return fmt::format("{}; {} ({})", key.help, key.rule, key.name);
  return fmt::format("The learning rate; the optimizer's own if not given ({})", flag.key);
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

CLI::Option* add_repeatable(CLI::App& verb, const std::string& flag, const std::string& help,
                            std::function<void(const std::vector<std::string>&)> take) {
  return verb
      .add_option_function<std::vector<std::string>>(flag, std::move(take),
                                                     help + "; can be given several times")
      ->type_name("VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->take_all();
}

std::shared_ptr<ConfigFlags> add_config_flags(CLI::App& verb) {
  const auto flags = std::make_shared<ConfigFlags>();
  verb.add_option("file", flags->positional, "A TOML config")->type_name("FILE");
  verb.add_option("--config", flags->file, "The same, as an option")->type_name("FILE");
  add_repeatable(verb, "--set", "Any key of the config: --set optimizer.weight_decay=0.01",
                 [flags](const std::vector<std::string>& sets) { flags->sets = sets; })
      ->type_name("KEY=VALUE");
  for (const run::KeyFlag& flag : run::key_flags()) {
    if (flag.repeatable) {
      add_repeatable(verb, flag.flag, help_of(flag), [flags, name = flag.flag](const auto& texts) {
        flags->of[name] = fmt::format("{}", fmt::join(texts, ","));
      });
      continue;
    }
    verb.add_option_function<std::string>(
            flag.flag,
            [flags, name = flag.flag](const std::string& text) { flags->of[name] = text; },
            help_of(flag))
        ->type_name("VALUE");
  }
  return flags;
}

}  // namespace pantala::tools
