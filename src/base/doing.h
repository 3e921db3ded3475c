// What the process is doing, for the one message that cannot wait until somebody higher up knows
// it: that there is no memory. The innermost activity of the thread that works is what counts;
// helpers of it have none of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pantala {

// In force as long as it lives: "reading the data csv:points.csv". Made by one thread at a time.
class Doing {
 public:
  explicit Doing(std::string text);
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

  // "" if there is none.
  static std::string_view current() noexcept;

 private:
  std::string text_;
  const Doing* outer_;
};

// "there is no memory for 4096 bytes more while reading the data csv:points.csv; the process has
// 190 MiB of the 200 MiB that it may have (ulimit -v)", cut to the space, which is all the memory
// that it takes. `bytes` 0: not known.
std::string_view no_memory_text(std::span<char> space, std::uint64_t bytes,
                                std::string_view activity);
// The same of what is being done now.
std::string no_memory_text(std::uint64_t bytes);

}  // namespace pantala
