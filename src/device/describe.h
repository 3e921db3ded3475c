// What the devices are on this machine, without making one: for lists and for the first line of a
// run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pantala::device {

// For programs that read descriptions.
struct Fact {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

struct Description {
  std::string text;               // one line, with the numbers that users ask for
  std::string brief;              // what it is
  std::vector<Fact> facts = {};   // the numbers of the text, and more
  std::vector<Fact> probed = {};  // what it does at most, if that was measured
  // It is there to find mistakes and slow: nobody trains on it.
  bool checks = false;
};

// With `probe`, what the device does at most is measured, where that is known how; it takes a
// moment. UnsupportedError with the list for a name that is none of device_names().
Description describe(std::string_view name, bool probe = false);

// "32 KiB", "8 MiB".
std::string bytes_text(std::int64_t bytes);

}  // namespace pantala::device
