#include "io/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <set>

#include "pantala/error.h"

namespace pantala::io {

namespace {

// Records begin with these words. The offsets of their fields are those of APPNOTE.TXT,
// section 4.3.
constexpr std::uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr std::uint32_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::size_t kMaxCommentBytes = 0xFFFF;
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{64} << 20;
constexpr std::uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8;
constexpr std::uint16_t kExtra64 = 1;
constexpr std::uint32_t kSee64 = 0xFFFFFFFF;  // the number stands in the zip64 part

// A piece of the file; reading a field beyond its end is a ParseError.
class Record {
 public:
  Record(const FileReader& file, std::uint64_t place, std::uint64_t size, std::string_view what)
      : file_(file), place_(place), what_(what) {
    if (place > file.size() || size > file.size() - place)
      fail(fmt::format("{} bytes at {} are beyond the end of the file", size, place));
    bytes_.resize(static_cast<std::size_t>(size));
    file.read_at(place, std::span(reinterpret_cast<char*>(bytes_.data()), bytes_.size()));
  }

  std::size_t size() const { return bytes_.size(); }
  std::uint64_t place() const { return place_; }
  template <class Number>
  Number get(std::size_t at) const {
    if (at > bytes_.size() || sizeof(Number) > bytes_.size() - at) fail("it is cut off");
    return load<Number>(bytes_.data() + at, std::endian::little);
  }
  std::string text(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("it is cut off");
    return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
  }
  void require_mark(std::uint32_t mark, std::size_t at = 0) const {
    if (get<std::uint32_t>(at) != mark) fail(fmt::format("there is none at byte {}", place_ + at));
  }
  [[noreturn]] void fail(std::string_view why) const {
    throw ParseError(fmt::format("{}: zip {}: {}", file_.path().string(), what_, why));
  }

 private:
  const FileReader& file_;
  std::uint64_t place_;
  std::string_view what_;
  Bytes bytes_;
};

struct Directory {
  std::uint64_t count = 0, bytes = 0, place = 0;
};

// The record at the end of the file, before a comment of any length.
std::size_t find_end(const Record& tail) {
  if (tail.size() >= kEndBytes)
    for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;)
      if (tail.get<std::uint32_t>(at) == kEndMark &&
          at + kEndBytes + tail.get<std::uint16_t>(at + 20) == tail.size())
        return at;
  tail.fail("not found: not a zip archive, or a cut off one");
}

Directory read_directory64(const FileReader& file, std::uint64_t end) {
  const std::uint64_t before = end < kLocator64Bytes ? 0 : end - kLocator64Bytes;
  const Record locator(file, before, kLocator64Bytes, "end of directory (zip64 locator)");
  locator.require_mark(kLocator64Mark);
  const Record record(file, locator.get<std::uint64_t>(8), kEnd64Bytes, "end of directory (zip64)");
  record.require_mark(kEnd64Mark);
  return {record.get<std::uint64_t>(32), record.get<std::uint64_t>(40),
          record.get<std::uint64_t>(48)};
}

Directory find_directory(const FileReader& file) {
  const std::uint64_t size = std::min<std::uint64_t>(file.size(), kEndBytes + kMaxCommentBytes);
  const Record tail(file, file.size() - size, size, "end of directory");
  const std::size_t at = find_end(tail);
  if (tail.get<std::uint16_t>(at + 4) != tail.get<std::uint16_t>(at + 6))
    throw UnsupportedError(file.path().string() + ": a zip archive in several parts");
  const Directory directory{tail.get<std::uint16_t>(at + 10), tail.get<std::uint32_t>(at + 12),
                            tail.get<std::uint32_t>(at + 16)};
  const bool large =
      directory.count == 0xFFFF || directory.bytes == kSee64 || directory.place == kSee64;
  return large ? read_directory64(file, tail.place() + at) : directory;
}

// Replaces the numbers that did not fit into their fields by those of the zip64 extra field.
void apply_extra64(ZipArchive::Entry& entry, const Record& record, std::size_t at,
                   std::size_t end) {
  std::uint64_t* const wide[] = {&entry.bytes, &entry.packed_bytes, &entry.place};
  while (at + 4 <= end) {
    const auto id = record.get<std::uint16_t>(at);
    const std::size_t field_end = at + 4 + record.get<std::uint16_t>(at + 2);
    at += 4;
    if (field_end > end) record.fail("an extra field is longer than its entry");
    if (id == kExtra64)
      for (std::uint64_t* number : wide) {
        if (*number != kSee64) continue;
        if (at + 8 > field_end) record.fail("a zip64 field is too short");
        *number = record.get<std::uint64_t>(at);
        at += 8;
      }
    at = field_end;
  }
}

std::vector<ZipArchive::Entry> read_entries(const FileReader& file, const Directory& directory) {
  if (directory.bytes > kMaxDirectoryBytes)
    throw ParseError(fmt::format("{}: a zip directory of {} bytes; the limit is {}",
                                 file.path().string(), directory.bytes, kMaxDirectoryBytes));
  const Record record(file, directory.place, directory.bytes, "directory");
  std::vector<ZipArchive::Entry> entries;
  std::set<std::string> names;
  std::size_t at = 0;
  while (at < record.size()) {
    record.require_mark(kEntryMark, at);
    const std::size_t name_bytes = record.get<std::uint16_t>(at + 28);
    const std::size_t extra = at + kEntryBytes + name_bytes;
    const std::size_t extra_end = extra + record.get<std::uint16_t>(at + 30);
    ZipArchive::Entry entry{.name = record.text(at + kEntryBytes, name_bytes),
                            .flags = record.get<std::uint16_t>(at + 8),
                            .method = record.get<std::uint16_t>(at + 10),
                            .checksum = record.get<std::uint32_t>(at + 16),
                            .packed_bytes = record.get<std::uint32_t>(at + 20),
                            .bytes = record.get<std::uint32_t>(at + 24),
                            .place = record.get<std::uint32_t>(at + 42)};
    apply_extra64(entry, record, extra, extra_end);
    if (!names.insert(entry.name).second) record.fail("two entries have the name " + entry.name);
    at = extra_end + record.get<std::uint16_t>(at + 32);
    if (at > record.size()) record.fail("an entry is cut off");
    entries.push_back(std::move(entry));
  }
  if (entries.size() != directory.count)
    record.fail(fmt::format("{} entries, but {} are announced", entries.size(), directory.count));
  return entries;
}

// Holds what is read against the size and the checksum that the directory gives.
class CheckedSource : public ByteSource {
 public:
  CheckedSource(std::unique_ptr<ByteSource> inner, const ZipArchive::Entry& entry, std::string file)
      : inner_(std::move(inner)), entry_(entry), file_(std::move(file)) {}

  void read(std::size_t count, Bytes& out) override {
    const std::size_t old = out.size();
    inner_->read(count, out);
    const std::size_t got = out.size() - old;
    // Without a buffer crc32 would begin anew.
    if (got > 0) checksum_ = crc32(checksum_, out.data() + old, static_cast<uInt>(got));
    done_ += got;
    if (done_ > entry_.bytes || (got < count && done_ < entry_.bytes))
      fail(fmt::format("{} {} bytes, but the directory says {}",
                       got < count ? "it has" : "it has at least", done_, entry_.bytes));
    if (got < count && checksum_ != entry_.checksum) fail("its checksum is wrong: damaged data");
  }
  std::uint64_t certain() const override { return inner_->certain(); }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw ParseError(fmt::format("{}: zip entry '{}': {}", file_, entry_.name, why));
  }

  std::unique_ptr<ByteSource> inner_;
  ZipArchive::Entry entry_;
  std::string file_;
  uLong checksum_ = crc32(0, nullptr, 0);
  std::uint64_t done_ = 0;
};

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path)
    : file_(path), entries_(read_entries(file_, find_directory(file_))) {}

std::unique_ptr<ByteSource> ZipArchive::open(const Entry& entry) const {
  const std::string file = file_.path().string();
  if (entry.flags & kEncrypted)
    throw UnsupportedError(fmt::format("{}: zip entry '{}' is encrypted", file, entry.name));
  if (entry.method != kStored && entry.method != kDeflated)
    throw UnsupportedError(
        fmt::format("{}: zip entry '{}' is packed by method {}; stored (0) and deflated (8) can be "
                    "read",
                    file, entry.name, entry.method));
  const Record local(file_, entry.place, kLocalBytes, "entry");
  local.require_mark(kLocalMark);
  const std::uint64_t begin =
      entry.place + kLocalBytes + local.get<std::uint16_t>(26) + local.get<std::uint16_t>(28);
  if (begin > file_.size() || entry.packed_bytes > file_.size() - begin)
    local.fail(fmt::format("'{}' goes beyond the end of the file", entry.name));
  const FileRange range{file_, begin, entry.packed_bytes};
  return std::make_unique<CheckedSource>(
      entry.method == kStored ? plain_source(range) : inflating_source(range, Compression::deflate),
      entry, file);
}

}  // namespace pantala::io
