// Reports out of the files that keep them.
#pragma once

#include <nlohmann/json.hpp>

#include "pantala/compile.h"

namespace pantala::compiler {

// The stage of a plan that came out of a cache.
inline constexpr const char* kLoadStage = "load";

// From Report::json(); throws what the JSON library throws.
Report report_from_json(const nlohmann::json& document);

}  // namespace pantala::compiler
