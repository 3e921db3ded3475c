// pantala doctor: whether this machine can train.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "monitor/records.h"
#include "run/checkup.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/process.h"

namespace pantala::tools {

namespace {

int examine(bool json) {
  const std::vector<run::Finding> findings = run::check_machine(cache_folder());
  const bool healthy =
      std::none_of(findings.begin(), findings.end(),
                   [](const run::Finding& finding) { return finding.health == run::Health::fail; });
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const run::Finding& finding : findings) {
    const std::string detail = monitor::printable(finding.detail);
    if (!json)
      fmt::print("{:<4}  {:<9} {}\n", run::health_name(finding.health), finding.check, detail);
    checks.push_back({{"check", finding.check},
                      {"health", run::health_name(finding.health)},
                      {"detail", detail}});
  }
  if (json) fmt::print("{}\n", nlohmann::ordered_json{{"ok", healthy}, {"checks", checks}}.dump());
  return healthy ? 0 : kExitFailed;
}

}  // namespace

Run doctor_verb(VerbOptions& verb) {
  const auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "One JSON object");
  verb.footer(
      "Looks at the processor, threads, memory, disk, cache folder, data and GPUs, and trains a\n"
      "small network whose losses are known. A line each: ok, warn or fail; exits with 1 if one "
      "fails.\n"
      "Examples:\n"
      "  pantala doctor\n"
      "  pantala doctor --json");
  return [json] { return examine(*json); };
}

}  // namespace pantala::tools
