#include "io/temporary_files.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>

#include "io/file_changes.h"

namespace pantala::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = ".tmp";

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

struct Temporary {
  std::string_view of;
  pid_t process = 0;
};
std::optional<Temporary> parse_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return {};
  name = name.substr(1, name.size() - 1 - kEnd.size());
  const std::size_t dot = name.rfind('.'), dash = name.rfind('-');
  if (dot == name.npos || dash == name.npos || dash < dot) return {};
  const auto process = whole_number<pid_t>(name.substr(dot + 1, dash - dot - 1));
  if (!process || *process <= 0 || !whole_number<unsigned>(name.substr(dash + 1))) return {};
  return Temporary{name.substr(0, dot), *process};
}

bool is_stale(pid_t process, const fs::path& path) {
  if (::kill(process, 0) != 0 && errno == ESRCH) return true;
  std::error_code unknown;
  const fs::file_time_type written = fs::last_write_time(path, unknown);
  return !unknown && fs::file_time_type::clock::now() - written > std::chrono::hours(24);
}

}  // namespace

std::string temporary_name(std::string_view name, unsigned number) {
  return fmt::format(".{}.{}-{}{}", name, ::getpid(), number, kEnd);
}

void remove_stale_temporaries(const fs::path& folder,
                              const std::function<bool(std::string_view name)>& is_ours) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::optional<Temporary> temporary = parse_temporary(name);
    if (temporary && is_ours(temporary->of) && is_stale(temporary->process, entry->path()))
      remove_path(entry->path());
  }
}

}  // namespace pantala::io
