// The flags of verbs that compile something which no config describes: where it runs and how its
// graph is rewritten.
#pragma once

#include <string>
#include <string_view>

#include "tools/inspect/compile_choice.h"
#include "tools/options.h"

namespace pantala::tools {

// Of every verb that computes; `otherwise` is where it does so without the flag.
void add_device_flag(VerbOptions& verb, std::string& device, std::string_view otherwise);
void add_compile_flags(VerbOptions& verb, CompileChoice& choice);

}  // namespace pantala::tools
