// Reports while they are made, and out of the files that keep them.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "pantala/compiled_plan.h"

namespace pantala::plan {

// The stage of a plan that came out of a cache.
inline constexpr const char* kLoadStage = "load";

// A stage that was run before is noted once, with the sum.
void add_stage(Report& report, std::string_view name, double milliseconds);

// Those of another report; a rule that is there already is noted once, with the sums.
void add_rules(Report& total, const std::vector<Report::Rule>& rules);

// From Report::json(); throws what the JSON library throws.
Report report_from_json(const nlohmann::json& document);

}  // namespace pantala::plan
