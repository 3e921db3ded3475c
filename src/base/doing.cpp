#include "base/doing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <optional>
#include <utility>

namespace pantala {

namespace {

constinit std::mutex mutex;  // of the list of all activities; nothing under it asks for memory
constinit Doing* newest = nullptr;

// The address space that the process has taken. Memory is not asked for.
std::optional<std::uint64_t> taken_bytes() {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 64> text{};
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  std::uint64_t pages = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, pages).ec != std::errc())
    return {};
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> limit_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

Doing::Doing(std::string text) : text_(std::move(text)), thread_(std::this_thread::get_id()) {
  const std::lock_guard lock(mutex);
  older_ = newest;
  if (older_) older_->newer_ = this;
  newest = this;
}

Doing::~Doing() {
  const std::lock_guard lock(mutex);
  if (older_) older_->newer_ = newer_;
  (newer_ ? newer_->older_ : newest) = older_;
}

std::string_view Doing::current(std::span<char> space) noexcept {
  const std::lock_guard lock(mutex);
  const Doing* found = newest;
  while (found && found->thread_ != std::this_thread::get_id()) found = found->older_;
  if (!found) found = newest;
  if (!found) return {};
  const std::size_t length = std::min(found->text_.size(), space.size());
  std::copy_n(found->text_.data(), length, space.data());
  return {space.data(), length};
}

std::string_view no_memory_text(std::span<char> space, std::uint64_t bytes,
                                std::string_view activity) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  char* end = space.data();
  const auto left = [&] { return static_cast<std::size_t>(space.data() + space.size() - end); };
  const auto move_to = [&](const fmt::format_to_n_result<char*>& written) { end = written.out; };
  if (bytes > 0)
    move_to(fmt::format_to_n(end, left(), "there is no memory for {} bytes more", bytes));
  else
    move_to(fmt::format_to_n(end, left(), "there is not enough memory"));
  if (!activity.empty()) move_to(fmt::format_to_n(end, left(), " while {}", activity));
  const std::optional<std::uint64_t> taken = taken_bytes(), limit = limit_bytes();
  if (taken && limit)
    move_to(fmt::format_to_n(end, left(),
                             "; the process has {} MiB of the {} MiB that it may have (ulimit -v)",
                             *taken / kMiB, *limit / kMiB));
  else if (taken)
    move_to(fmt::format_to_n(end, left(), "; the process has {} MiB", *taken / kMiB));
  return {space.data(), end};
}

std::string no_memory_text(std::uint64_t bytes) {
  std::array<char, 1024> space{};
  std::array<char, 256> activity{};
  return std::string(no_memory_text(space, bytes, Doing::current(activity)));
}

}  // namespace pantala
