// The options that verbs which take a config have in common: a TOML file, --set, and a flag for
// each of the more important keys.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/core/config.h"
#include "tools/options.h"

namespace pantala::tools {

struct ConfigFlags {
  std::string positional, file;  // two ways to name the config
  std::vector<std::string> sets;
  std::map<std::string, std::string> of;  // by flag; only those that were given are not empty

  // All that was given, in the order in which it counts: file, --set, flags.
  std::vector<run::Assignment> assignments() const;
  run::RunConfig config() const { return run::make_config(assignments()); }
};

// An option that can be given several times; `take` gets all of its values.
Option* add_repeatable(VerbOptions& verb, const std::string& flag, const std::string& help,
                       std::function<void(const std::vector<std::string>&)> take);

// Adds them to a verb.
std::shared_ptr<ConfigFlags> add_config_flags(VerbOptions& verb);

}  // namespace pantala::tools
