// TensorBoard's event files, read by a decoder that shares nothing with the writer.
#include "io/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "io/file.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/event_decoder.h"
#include "support/temporary.h"

namespace pantala::io {
namespace {

using tests::Event;
using tests::events_of;
using tests::TemporaryFolder;

// Without waiting for the disk.
void overwrite(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);  // cutting a file waits for the disk, too
  std::ofstream(path, std::ios::binary) << content;
}

TEST(EventFile, crc_is_castagnolis) {
  // The vectors of RFC 3720, B.4.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventFile, holds_the_version_and_every_scalar) {
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

TEST(EventFile, numbers_that_are_not_finite_stay_so) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events";
  constexpr double inf = std::numeric_limits<double>::infinity();
  EventFile(path, 0, 1).add(2, 3, std::vector<Scalar>{{"a", std::nan("")}, {"b", -inf}});
  const auto values = events_of(path).at(1).values;
  EXPECT_TRUE(std::isnan(values.at(0).second));
  EXPECT_EQ(values.at(1).second, -std::numeric_limits<float>::infinity());
}

TEST(EventFile, goes_on_where_it_was_cut) {
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

TEST(EventFile, whole_records_end_before_damage) {
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

TEST(EventFile, its_name_is_what_tensor_board_looks_for) {
  EXPECT_EQ(event_file_name(1700000000.9, "a host/../b"),
            "events.out.tfevents.1700000000.a-host----b");
  EXPECT_EQ(event_file_name(7, "h"), "events.out.tfevents.0000000007.h");
}

TEST(AppendFile, errors_name_the_file) {
  const TemporaryFolder folder;
  EXPECT_THROW(AppendFile(folder.path() / "missing" / "file", 0), IoError);
  EXPECT_THROW(AppendFile(folder.path(), 0), IoError);
  EXPECT_EQ(tests::message_of<IoError>([] { AppendFile("/dev/null", 0); }),
            "/dev/null: not a regular file");
}

}  // namespace
}  // namespace pantala::io
