// Reads TensorBoard's event files; shares nothing with the writer. What is wrong in them fails the
// test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"

namespace pantala::tests {

inline std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78U : crc >> 1;
  }
  return ~crc;
}
template <class T>
T take(std::string_view& bytes) {
  T value{};
  EXPECT_GE(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}
inline void expect_masked_crc(std::string_view of, std::uint32_t stored) {
  const std::uint32_t rotated = stored - 0xa282ead8U;
  EXPECT_EQ((rotated >> 17) | (rotated << 15), slow_crc32c(of));
}
inline std::vector<std::string> payloads(std::string_view file) {
  std::vector<std::string> found;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    expect_masked_crc(length_bytes, take<std::uint32_t>(file));
    EXPECT_LE(length, file.size());
    found.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    expect_masked_crc(found.back(), take<std::uint32_t>(file));
  }
  return found;
}
inline std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(take<char>(bytes));
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
// Fields by number; numbers as their bytes.
inline std::multimap<std::uint64_t, std::string> message(std::string_view bytes) {
  std::multimap<std::uint64_t, std::string> fields;
  while (!bytes.empty()) {
    const std::uint64_t key = varint(bytes);
    std::uint64_t length = 0;
    switch (key & 7) {
      case 0: {
        const std::uint64_t value = varint(bytes);
        fields.emplace(key >> 3, std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
        continue;
      }
      case 1:
        length = 8;
        break;
      case 2:
        length = varint(bytes);
        break;
      case 5:
        length = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
    fields.emplace(key >> 3, bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return fields;
}
template <class T>
T number(const std::string& bytes) {
  std::string_view view = bytes;
  return take<T>(view);
}
struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version;
  std::vector<std::pair<std::string, float>> values;
  friend bool operator==(const Event&, const Event&) = default;
};
inline std::vector<Event> events_of(const std::filesystem::path& path) {
  std::vector<Event> events;
  for (const std::string& payload : payloads(io::read_file(path))) {
    Event event;
    for (const auto& [field, bytes] : message(payload)) {
      if (field == 1) event.wall_time = number<double>(bytes);
      if (field == 2) event.step = number<std::int64_t>(bytes);
      if (field == 3) event.version = bytes;
      if (field != 5) continue;
      for (const auto& [value_field, value_bytes] : message(bytes)) {
        EXPECT_EQ(value_field, 1U);
        const auto value = message(value_bytes);
        event.values.emplace_back(value.find(1)->second, number<float>(value.find(2)->second));
      }
    }
    events.push_back(event);
  }
  return events;
}

}  // namespace pantala::tests
