// The flags of verbs that compile something which no config describes: how its graph is rewritten.
#pragma once

#include "tools/inspect/compile_choice.h"
#include "tools/options.h"

namespace pantala::tools {

void add_compile_flags(VerbOptions& verb, CompileChoice& choice);

}  // namespace pantala::tools
