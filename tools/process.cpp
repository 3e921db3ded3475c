#include "tools/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/user_folder.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

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
  fs::path folder = user_cache_folder();
  if (!folder.empty()) return folder;
  const fs::path user = user_folder("XDG_CACHE_HOME", ".cache");
  if (user.empty())
    logging::warning("neither XDG_CACHE_HOME nor HOME names a folder: compiled plans are not kept");
  else
    logging::warning("{} cannot be made: compiled plans are not kept", (user / "pantala").string());
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
