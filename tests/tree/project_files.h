// The files of the project, for tests of the tree itself.
#pragma once

#include <string>
#include <vector>

#include "support/layering.h"

namespace pantala::tests {

std::string read_text(const std::string& path);

// All .h and .cpp files below the folders of the project, with paths from its root, sorted.
std::vector<SourceFile> project_files(const std::vector<std::string>& folders);

}  // namespace pantala::tests
