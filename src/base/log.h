// Log lines for whoever watches a run: progress and oddities, never results. They go to stderr, or
// to a function while a Capture or a Detour stands.
//
// The state is the process's: lines of all threads go to one place, whole and in order. A line that
// is below the level costs one load and no formatting.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace pantala::logging {

enum class Level : std::uint8_t { trace, debug, info, warning, error, off };
std::string_view level_name(Level level);
// "warning" and so on. TypeError with the list for other names.
Level parse_level(std::string_view name);

struct Options {
  Level level = Level::warning;
  bool colour = true;  // if stderr is a terminal that has colours
};
// What the environment variables PANTALA_LOG (a level) and NO_COLOR ask for; null: not set. Reading
// them is the program's business.
Options options_of(const char* pantala_log, const char* no_color);
void configure(const Options& options);

// The least important level that is written.
Level level() noexcept;
inline bool enabled(Level of_line) noexcept { return of_line >= level(); }

// Writes a line whatever the level is.
void write(Level level, std::string_view text);

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warning))
    write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void trace(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::trace)) write(Level::trace, fmt::format(format, std::forward<Args>(args)...));
}

// While it stands, lines that would go to stderr go to the function instead (one at a time; it must
// not log itself). It calls `write` to have the line written as usual, with whatever must be done
// before and after: a line of progress that is redrawn in place would be torn otherwise. One at a
// time: InternalError for a second.
class Detour {
 public:
  using Sink =
      std::function<void(Level level, std::string_view text, const std::function<void()>& write)>;
  explicit Detour(Sink sink);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;
};

// While it stands, lines from `level` on go to the function (one at a time; it must not log itself)
// and not to stderr. One at a time: InternalError for a second.
class Capture {
 public:
  using Sink = std::function<void(Level level, std::string_view text)>;
  Capture(Level level, Sink sink);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Level before_;
};

}  // namespace pantala::logging
