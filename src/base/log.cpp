#include "base/log.h"

#include <fmt/ranges.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::logging {

namespace {

constexpr std::array<std::string_view, 6> kNames{"trace",   "debug", "info",
                                                 "warning", "error", "off"};

std::atomic<Level> current_level{Level::warning};

// spdlog's parts for one thread, behind one lock: options and captures change under it.
struct Output {
  std::mutex mutex;
  std::shared_ptr<spdlog::sinks::stderr_color_sink_st> terminal =
      std::make_shared<spdlog::sinks::stderr_color_sink_st>(spdlog::color_mode::never);
  spdlog::logger logger{"pantala", terminal};
  Capture::Sink capture;
  Detour::Sink detour;

  Output() {
    logger.set_level(spdlog::level::trace);
    logger.flush_on(spdlog::level::trace);
    logger.set_pattern("[%H:%M:%S.%e] [%^%l%$] %v");
  }
};

// Lives until the process ends: threads may log while statics go.
Output& output() {
  static Output* const shared = new Output;
  return *shared;
}

}  // namespace

std::string_view level_name(Level level) { return kNames.at(static_cast<std::size_t>(level)); }

Level parse_level(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<Level>(found - kNames.begin());
  const std::vector<std::string> names(kNames.begin(), kNames.end());
  throw TypeError(fmt::format("there is no log level '{}'{}; there are: {}", name,
                              did_you_mean(name, names), fmt::join(names, ", ")));
}

Options options_of(const char* pantala_log, const char* no_color) {
  Options options;
  if (pantala_log && *pantala_log) options.level = parse_level(pantala_log);
  options.colour = !(no_color && *no_color);
  return options;
}

void configure(const Options& options) {
  const std::lock_guard lock(output().mutex);
  output().terminal->set_color_mode(options.colour ? spdlog::color_mode::automatic
                                                   : spdlog::color_mode::never);
  current_level.store(options.level, std::memory_order_relaxed);
}

Level level() noexcept { return current_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view text) {
  Output& out = output();
  const std::lock_guard lock(out.mutex);
  const auto to_terminal = [&] {
    out.logger.log(static_cast<spdlog::level::level_enum>(level),
                   spdlog::string_view_t(text.data(), text.size()));
  };
  if (out.capture)
    out.capture(level, text);
  else if (out.detour)
    out.detour(level, text, to_terminal);
  else
    to_terminal();
}

Detour::Detour(Sink sink) {
  const std::lock_guard lock(output().mutex);
  if (output().detour) throw InternalError("log lines make two detours");
  output().detour = std::move(sink);
}

Detour::~Detour() {
  const std::lock_guard lock(output().mutex);
  output().detour = nullptr;
}

Capture::Capture(Level level, Sink sink) {
  const std::lock_guard lock(output().mutex);
  if (output().capture) throw InternalError("log lines are captured twice");
  output().capture = std::move(sink);
  before_ = current_level.exchange(level, std::memory_order_relaxed);
}

Capture::~Capture() {
  const std::lock_guard lock(output().mutex);
  output().capture = nullptr;
  current_level.store(before_, std::memory_order_relaxed);
}

}  // namespace pantala::logging
