#include "tools/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

// The folder that the variable names, or this one in the user's home; "": there is neither.
fs::path user_folder(const char* variable, const char* in_home) {
  if (const char* folder = std::getenv(variable); folder && fs::path(folder).is_absolute())
    return folder;
  if (const char* home = std::getenv("HOME"); home && fs::path(home).is_absolute())
    return fs::path(home) / in_home;
  return {};
}

// Empty where the system does not tell.
std::vector<std::string> command_words() {
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

void open_standard_descriptors() noexcept {
  // What is opened gets the lowest number that is free. Without /dev/null any file will do: what is
  // written is lost then, too.
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      static_cast<void>(::open("/", O_RDONLY));
}

fs::path cache_folder() {
  const fs::path user = user_folder("XDG_CACHE_HOME", ".cache");
  if (user.empty()) {
    logging::warning("neither XDG_CACHE_HOME nor HOME names a folder: compiled plans are not kept");
    return {};
  }
  const fs::path folder = user / "pantala";
  std::error_code error;
  fs::create_directories(user, error);
  if (fs::create_directory(folder, error))
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::replace, error);
  if (fs::is_directory(folder, error)) return folder;
  logging::warning("{} cannot be made: compiled plans are not kept", folder.string());
  return {};
}

fs::path config_folder() {
  const fs::path user = user_folder("XDG_CONFIG_HOME", ".config");
  if (user.empty()) throw IoError("neither XDG_CONFIG_HOME nor HOME names a folder; name a file");
  return user / "pantala";
}

fs::path plan_cache() {
  const fs::path folder = cache_folder();
  return folder.empty() ? folder : folder / "plans";
}

run::Surroundings surroundings() {
  return {.plan_cache = plan_cache(),
          .command = command_words(),
          .progress = [](monitor::ProgressMode mode) {
            return monitor::progress_on_stderr(mode, std::getenv("TERM"), std::getenv("NO_COLOR"));
          }};
}

}  // namespace pantala::tools
