// The one way to report that the system refused something about a file.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string_view>

#include "pantala/error.h"

namespace pantala::io {

// IoError "PATH: cannot ACTION: reason", the reason being that of an errno.
[[noreturn]] inline void fail(const std::filesystem::path& path, std::string_view action,
                              int error) {
  throw IoError(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

}  // namespace pantala::io
