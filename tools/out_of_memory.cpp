#include "tools/out_of_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "base/doing.h"
#include "tools/command.h"

namespace pantala::tools {

namespace {

struct Refused {
  std::mutex mutex;  // several threads may find that there is none
  std::size_t bytes = 0;
  std::array<char, 256> activity{};
  std::size_t length = 0;
};

constinit Refused refused;

}  // namespace

void note_refused_memory(std::size_t bytes) noexcept {
  const std::lock_guard lock(refused.mutex);
  const std::string_view activity = Doing::current();
  refused.bytes = bytes;
  refused.length = std::min(activity.size(), refused.activity.size());
  std::copy_n(activity.data(), refused.length, refused.activity.data());
}

std::string refused_memory_text() {
  std::array<char, 1024> space{};
  const std::lock_guard lock(refused.mutex);
  return std::string(
      no_memory_text(space, refused.bytes, {refused.activity.data(), refused.length}));
}

void end_without_memory() {
  std::array<char, 1024> space{};
  const std::string_view text = no_memory_text(space, refused.bytes, Doing::current());
  for (const std::string_view part : {std::string_view("pantala: "), text, std::string_view("\n")})
    static_cast<void>(!::write(STDERR_FILENO, part.data(), part.size()));
  ::_exit(kExitUsage);
}

}  // namespace pantala::tools
