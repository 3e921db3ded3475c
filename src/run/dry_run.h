// What a run would do: the resolved config, the model and its memory, and how many steps there are.
#pragma once

#include <filesystem>
#include <string>

#include "run/core/config.h"

namespace pantala::run {

// Opens the data and compiles the model, but trains and writes nothing. As text this is the TOML of
// the config with the rest as comments, so that it can be used as a config; as JSON one object.
std::string dry_run(const RunConfig& config, bool json, const std::filesystem::path& plan_cache);

}  // namespace pantala::run
