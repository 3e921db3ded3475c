// How long what `pantala inspect` looks at takes, kernel by kernel.
#pragma once

#include <string>

#include "pantala/session.h"
#include "tools/inspect/subject.h"

namespace pantala::tools {

// Compiled, with inputs that are made up, after a first step.
Session session_on_made_up_inputs(const Inspected& inspected);
// Of the steps of a moment the shortest, in milliseconds.
double best_step_ms(Session& session);

// Compiles, runs some steps on inputs that are made up, and shows where their time went.
std::string profile_picture(const Inspected& inspected, bool json);

}  // namespace pantala::tools
