// How long what `pantala inspect` looks at takes, kernel by kernel.
#pragma once

#include <string>

#include "tools/inspect/subject.h"

namespace pantala::tools {

// Compiles, runs some steps on inputs that are made up, and shows where their time went.
std::string profile_picture(const Inspected& inspected, bool json);

}  // namespace pantala::tools
