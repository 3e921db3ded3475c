#include "tools/out_of_memory.h"

#include <unistd.h>

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

std::size_t refused_bytes() noexcept {
  const std::lock_guard lock(refused.mutex);
  return refused.bytes;
}

}  // namespace

void note_refused_memory(std::size_t bytes) noexcept {
  const std::lock_guard lock(refused.mutex);
  refused.bytes = bytes;
  refused.length = Doing::current(refused.activity).size();
}

std::string refused_memory_text() {
  std::array<char, 1024> space{};
  const std::lock_guard lock(refused.mutex);
  return std::string(
      no_memory_text(space, refused.bytes, {refused.activity.data(), refused.length}));
}

void end_without_memory() {
  std::array<char, 1024> space{};
  std::array<char, 256> activity{};
  const std::string_view text = no_memory_text(space, refused_bytes(), Doing::current(activity));
  for (const std::string_view part : {std::string_view("pantala: "), text, std::string_view("\n")})
    static_cast<void>(!::write(STDERR_FILENO, part.data(), part.size()));
  ::_exit(kExitUsage);
}

}  // namespace pantala::tools
