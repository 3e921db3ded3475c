#include "base/user_folder.h"

#include <cstdlib>
#include <system_error>

namespace pantala {

namespace fs = std::filesystem;

fs::path user_folder(const char* variable, const char* in_home) {
  if (const char* folder = std::getenv(variable); folder && fs::path(folder).is_absolute())
    return folder;
  if (const char* home = std::getenv("HOME"); home && fs::path(home).is_absolute())
    return fs::path(home) / in_home;
  return {};
}

fs::path user_cache_folder() {
  const fs::path user = user_folder("XDG_CACHE_HOME", ".cache");
  if (user.empty()) return {};
  const fs::path folder = user / "pantala";
  std::error_code error;
  fs::create_directories(user, error);
  if (fs::create_directory(folder, error))
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::replace, error);
  return fs::is_directory(folder, error) ? folder : fs::path{};
}

}  // namespace pantala
