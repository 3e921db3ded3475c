#include "run/cost_table.h"

#include <fmt/format.h>

#include <system_error>

#include "pantala/compile.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"

namespace pantala::run {

namespace {

using plan::cost_table_title;

// What is in the file now: the table's title, or what is wrong with it. "": the run's own table.
std::string other_than(const std::string& recorded, const std::string& file) {
  try {
    const std::string now = cost_table_text(file);
    return now == recorded ? "" : fmt::format("{} holds {}", file, cost_table_title(now));
  } catch (const Error& error) { return error.what(); }
}

}  // namespace

std::string recorded_table(const RunFolder& folder) {
  std::error_code unknown;
  if (!folder.has_checkpoint() || !std::filesystem::exists(folder.cost_table_file(), unknown))
    return "";
  return cost_table_text(folder.cost_table_file().string());
}

std::string table_difference(const RunFolder& folder, const RunConfig& config) {
  const std::string& named = config.compile.cost_table;
  if (named.empty() || named == folder.config().compile.cost_table) return "";
  const std::string recorded = recorded_table(folder);
  if (recorded.empty()) return "";
  const std::string asked = cost_table_text(named);
  if (asked == recorded) return "";
  return fmt::format("compile.cost_table: {} there, {} here ({})", cost_table_title(recorded),
                     cost_table_title(asked), named);
}

RunConfig with_recorded_table(const RunFolder& folder, RunConfig config) {
  if (std::string recorded = recorded_table(folder); !recorded.empty())
    config.compile.cost_table = std::move(recorded);
  return config;
}

std::string table_notice(const RunFolder& folder, const RunConfig& config) {
  const std::string recorded = recorded_table(folder), &named = config.compile.cost_table;
  if (recorded.empty() || named.empty()) return "";
  const std::string now = other_than(recorded, named);
  return now.empty()
             ? ""
             : fmt::format("{} goes on with the cost table that it began with, {}, though now {}",
                           folder.root().string(), cost_table_title(recorded), now);
}

}  // namespace pantala::run
