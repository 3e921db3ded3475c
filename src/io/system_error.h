// The one way to report that the system refused something about a file.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "pantala/error.h"

namespace pantala::io {

// IoError "PATH: cannot ACTION: reason", the reason being that of an errno.
[[noreturn]] inline void fail(const std::filesystem::path& path, std::string_view action,
                              int error) {
  throw IoError(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

// The same if there is an error, of a change of files (io/file_changes.h).
inline void check_change(const std::error_code& error, const std::filesystem::path& path,
                         std::string_view action) {
  if (error)
    throw IoError(fmt::format("{}: cannot {}: {}", path.string(), action, error.message()));
}

}  // namespace pantala::io
