// TensorBoard's event files, read by a decoder that shares nothing with the writer.
#include "io/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include "io/file.h"
#include "pantala/error.h"
#include "support/temporary.h"

namespace pantala::io {
namespace {

using tests::TemporaryFolder;

// Without waiting for the disk.
void overwrite(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);  // cutting a file waits for the disk, too
  std::ofstream(path, std::ios::binary) << content;
}

// --- the decoder
std::uint32_t slow_crc32c(std::string_view bytes) {
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
void expect_masked_crc(std::string_view of, std::uint32_t stored) {
  const std::uint32_t rotated = stored - 0xa282ead8U;
  EXPECT_EQ((rotated >> 17) | (rotated << 15), slow_crc32c(of));
}
std::vector<std::string> payloads(std::string_view file) {
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
std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(take<char>(bytes));
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
// Fields by number; numbers as their bytes.
std::multimap<std::uint64_t, std::string> message(std::string_view bytes) {
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
std::vector<Event> events_of(const std::filesystem::path& path) {
  std::vector<Event> events;
  for (const std::string& payload : payloads(read_file(path))) {
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

TEST(EventFile, CrcIsCastagnolis) {
  // The vectors of RFC 3720, B.4.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventFile, HoldsTheVersionAndEveryScalar) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events";
  EventFile file(path, 0, 1700000000.25);
  file.add(1700000001.5, 1, std::vector<Scalar>{{"train/loss", 2.302585092994046}});
  file.add(1700000002.5, (std::int64_t{1} << 40) + 5,
           std::vector<Scalar>{{"train/loss", 0.125}, {"validation/accuracy", 0.9153}});
  const std::vector<Event> events = events_of(path);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0], (Event{1700000000.25, 0, "brain.Event:2", {}}));
  EXPECT_EQ(events[1],
            (Event{1700000001.5, 1, "", {{"train/loss", static_cast<float>(2.302585092994046)}}}));
  EXPECT_EQ(events[2], (Event{1700000002.5,
                              (std::int64_t{1} << 40) + 5,
                              "",
                              {{"train/loss", 0.125F}, {"validation/accuracy", 0.9153F}}}));
}

TEST(EventFile, NumbersThatAreNotFiniteStaySo) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events";
  constexpr double inf = std::numeric_limits<double>::infinity();
  EventFile(path, 0, 1).add(2, 3, std::vector<Scalar>{{"a", std::nan("")}, {"b", -inf}});
  const auto values = events_of(path).at(1).values;
  EXPECT_TRUE(std::isnan(values.at(0).second));
  EXPECT_EQ(values.at(1).second, -std::numeric_limits<float>::infinity());
}

TEST(EventFile, GoesOnWhereItWasCut) {
  const TemporaryFolder folder;
  const auto whole = folder.path() / "whole", cut = folder.path() / "cut";
  const auto add = [](EventFile& file, int step) {
    file.add(step, step, std::vector<Scalar>{{"x", 0.5 * step}});
  };
  EventFile uninterrupted(whole, 0, 0);
  for (int step = 1; step <= 4; ++step) add(uninterrupted, step);
  std::uint64_t position = 0;
  {
    EventFile first(cut, 0, 0);
    add(first, 1);
    add(first, 2);
    position = first.file().size();
    add(first, 3);
  }
  EventFile second(cut, position, 99);
  add(second, 3);
  add(second, 4);
  EXPECT_EQ(read_file(cut), read_file(whole));
}

TEST(EventFile, WholeRecordsEndBeforeDamage) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events", damaged = folder.path() / "damaged";
  std::vector<std::uint64_t> ends = {0};
  {
    EventFile file(path, 0, 0);
    ends.push_back(file.file().size());
    for (int step = 1; step <= 3; ++step) {
      file.add(step, step, std::vector<Scalar>{{"train/loss", 1.0 / step}});
      ends.push_back(file.file().size());
    }
  }
  const std::string content = read_file(path);
  const auto last_end = [&](std::uint64_t at) {
    std::uint64_t found = 0;
    for (const std::uint64_t end : ends)
      if (end <= at) found = end;
    return found;
  };
  for (std::uint64_t length = 0; length <= content.size(); ++length) {
    overwrite(damaged, content.substr(0, length));
    EXPECT_EQ(whole_event_bytes(damaged, ~std::uint64_t{0}), last_end(length));
    EXPECT_EQ(whole_event_bytes(path, length), last_end(length));
  }
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string changed = content;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    overwrite(damaged, changed);
    EXPECT_EQ(whole_event_bytes(damaged, ~std::uint64_t{0}), last_end(at)) << at;
  }
}

TEST(EventFile, ItsNameIsWhatTensorBoardLooksFor) {
  EXPECT_EQ(event_file_name(1700000000.9, "a host/../b"),
            "events.out.tfevents.1700000000.a-host----b");
  EXPECT_EQ(event_file_name(7, "h"), "events.out.tfevents.0000000007.h");
}

TEST(AppendFile, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(AppendFile(folder.path() / "missing" / "file", 0), IoError);
  EXPECT_THROW(AppendFile(folder.path(), 0), IoError);
  try {
    AppendFile("/dev/null", 0);
    FAIL();
  } catch (const IoError& error) { EXPECT_STREQ(error.what(), "/dev/null: not a regular file"); }
}

}  // namespace
}  // namespace pantala::io
