#include "base/activity.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>

namespace pantala {

namespace {

std::atomic<const Activity*> innermost = nullptr;

// The address space that the process has taken.
std::optional<std::uint64_t> taken_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return {};
  unsigned long long pages = 0;
  const bool read = std::fscanf(file, "%llu", &pages) == 1;
  std::fclose(file);
  if (!read) return {};
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> limit_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

Activity::Activity(std::string text) : text_(std::move(text)), outer_(innermost) {
  innermost = this;
}

Activity::~Activity() { innermost = outer_; }

std::string_view Activity::current() noexcept {
  const Activity* const activity = innermost;
  return activity ? std::string_view(activity->text_) : std::string_view();
}

std::string no_memory_text(std::uint64_t bytes, std::string_view activity) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  std::string text = bytes > 0 ? fmt::format("there is no memory for {} bytes more", bytes)
                               : "there is not enough memory";
  if (!activity.empty()) text += fmt::format(" while {}", activity);
  const std::optional<std::uint64_t> taken = taken_bytes(), limit = limit_bytes();
  if (taken && limit)
    text += fmt::format("; the process has {} MiB of the {} MiB that it may have (ulimit -v)",
                        *taken / kMiB, *limit / kMiB);
  else if (taken)
    text += fmt::format("; the process has {} MiB", *taken / kMiB);
  return text;
}

}  // namespace pantala
