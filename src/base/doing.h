// What the process is doing, for the one message that cannot wait until somebody higher up knows
// it: that there is no memory. The innermost activity of the thread that asks is what counts; a
// helper that has none of its own says the newest of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace pantala {

// In force as long as it lives: "reading the data csv:points.csv". Several threads may have theirs
// at the same time, and end them in any order.
class Doing {
 public:
  explicit Doing(std::string text);
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

  // Copied into the space, which is all the memory that it takes: another thread may end it at any
  // moment. "" if there is none.
  static std::string_view current(std::span<char> space) noexcept;

 private:
  std::string text_;
  std::thread::id thread_;
  Doing* older_ = nullptr;
  Doing* newer_ = nullptr;
};

// "there is no memory for 4096 bytes more while reading the data csv:points.csv; the process has
// 190 MiB of the 200 MiB that it may have (ulimit -v)", cut to the space, which is all the memory
// that it takes. `bytes` 0: not known.
std::string_view no_memory_text(std::span<char> space, std::uint64_t bytes,
                                std::string_view activity);
// The same of what is being done now.
std::string no_memory_text(std::uint64_t bytes);

}  // namespace pantala
