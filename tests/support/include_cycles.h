// Include direction inside a module and inside tools/, as a function of texts: headers do not
// include one another in a circle, and neither do folders.
#pragma once

#include <string>
#include <vector>

#include "support/layering.h"

namespace pantala::tests {

// One line per violation:
//  - headers that include one another in a circle,
//  - an include between folders of one module (src/NAME, or tools) that is a part of a circle of
//  folders: "path:line: ..." for each. Files in `gathering` may close a circle, because they hand
//  out what the folders below make (a factory, a table); one that closes none is named too.
//  - a file of a verb (tools/verb_*) that is included, or tools/command.h in a folder of tools.
std::vector<std::string> direction_violations(const std::vector<SourceFile>& files,
                                              const std::vector<std::string>& gathering);

}  // namespace pantala::tests
