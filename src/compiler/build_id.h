// Which compiler this is; defined by a file that the build writes (cmake/BuildId.cmake).
#pragma once

#include <string_view>

namespace pantala::compiler {

// The version and a hash of the sources.
std::string_view build_id();
std::string_view llvm_version();

}  // namespace pantala::compiler
