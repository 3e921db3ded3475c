// Whether a path is a folder; what cannot be looked at is none.
#pragma once

#include <filesystem>

namespace pantala::data {

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace pantala::data
