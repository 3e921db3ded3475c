// The cost table of a run. Its folder keeps the one that it began with, and whatever goes on from
// there is compiled by that one: another may choose another graph, whose last bits may differ.
#pragma once

#include <string>

#include "run/core/config.h"
#include "run/run_folder.h"

namespace pantala::run {

// The text of the table that the run in the folder has trained with; "" where there is none:
// nothing was saved yet, or a version has that kept none. ParseError if somebody has damaged the
// file.
std::string recorded_table(const RunFolder& folder);

// A line as differences() has them if the config names a table that is not the run's; "" if it does
// not. A file that has changed since the run began is no other choice.
std::string table_difference(const RunFolder& folder, const RunConfig& config);

// The config for compiling what the folder's run goes on with: compile.cost_table is the text of
// the run's own table, if there is one.
RunConfig with_recorded_table(const RunFolder& folder, RunConfig config);
// Says so in one line if the file that the config names does not hold that table any more.
std::string table_notice(const RunFolder& folder, const RunConfig& config);

}  // namespace pantala::run
