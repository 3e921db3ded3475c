#include "io/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "io/file.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

// Where the bytes of an IDX file come from.
class Source {
 public:
  virtual ~Source() = default;
  // Appends up to `count` bytes to `out`; fewer only at the end of the data.
  virtual void read(std::size_t count, Bytes& out) = 0;
};

class PlainSource : public Source {
 public:
  explicit PlainSource(const FileReader& file) : file_(file) {}
  void read(std::size_t count, Bytes& out) override {
    const std::size_t take =
        static_cast<std::size_t>(std::min<std::uint64_t>(count, file_.size() - at_));
    const std::size_t old = out.size();
    out.resize(old + take);
    file_.read_at(at_, std::span(reinterpret_cast<char*>(out.data()) + old, take));
    at_ += take;
  }

 private:
  const FileReader& file_;
  std::uint64_t at_ = 0;
};

class GzipSource : public Source {
 public:
  explicit GzipSource(const FileReader& file) : file_(file) {
    if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) throw InternalError("zlib does not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  void read(std::size_t count, Bytes& out) override {
    const std::size_t old = out.size();
    out.resize(old + count);
    stream_.next_out = out.data() + old;
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0 && !ended_) {
      refill();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      // The checksum at the end is compared here too.
      if (status != Z_OK && status != Z_STREAM_END)
        fail(stream_.msg ? stream_.msg : "damaged stream");
      ended_ = status == Z_STREAM_END;
    }
    out.resize(out.size() - stream_.avail_out);
    if (ended_ && (stream_.avail_in > 0 || at_ < file_.size()))
      fail("bytes after the end of the stream");
  }

 private:
  void refill() {
    if (stream_.avail_in > 0) return;
    if (at_ == file_.size()) fail("the file is cut off");
    const std::size_t take =
        static_cast<std::size_t>(std::min<std::uint64_t>(input_.size(), file_.size() - at_));
    file_.read_at(at_, std::span(input_.data(), take));
    at_ += take;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(take);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw ParseError(fmt::format("{}: gzip, before byte {}: {}", file_.path().string(), at_, what));
  }

  const FileReader& file_;
  std::uint64_t at_ = 0;
  std::array<char, 1 << 16> input_{};
  z_stream stream_{};
  bool ended_ = false;
};

template <class Stored, class Value>
std::vector<Value> decode(const Bytes& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Stored));
  std::array<std::uint8_t, sizeof(Stored)> element;
  for (std::size_t k = 0; k < values.size(); ++k) {
    std::memcpy(element.data(), bytes.data() + k * sizeof(Stored), sizeof(Stored));
    if constexpr (std::endian::native == std::endian::little)
      std::reverse(element.begin(), element.end());
    values[k] = static_cast<Value>(std::bit_cast<Stored>(element));
  }
  return values;
}

std::uint64_t element_bytes(std::uint8_t code, const std::string& file) {
  switch (code) {
    case 0x08:
    case 0x09:
      return 1;
    case 0x0B:
      return 2;
    case 0x0C:
    case 0x0D:
      return 4;
    case 0x0E:
      return 8;
    default:
      throw ParseError(fmt::format("{}: byte 2: unknown IDX element type 0x{:02x}", file, code));
  }
}

Shape read_sizes(Source& source, int rank, const std::string& file) {
  Bytes bytes;
  source.read(static_cast<std::size_t>(rank) * 4, bytes);
  if (bytes.size() < static_cast<std::size_t>(rank) * 4)
    throw ParseError(
        fmt::format("{}: the file ends within the {} sizes of its header", file, rank));
  std::vector<std::int64_t> sizes;
  for (const std::uint32_t size : decode<std::uint32_t, std::uint32_t>(bytes))
    sizes.push_back(size);
  try {
    return Shape(sizes);
  } catch (const TypeError& error) {
    throw ParseError(fmt::format("{}: byte 4: {}", file, error.what()));
  }
}

Bytes read_elements(Source& source, std::uint64_t count, const std::string& file) {
  Bytes bytes;
  while (bytes.size() < count) {
    const std::size_t before = bytes.size();
    source.read(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, count - before)),
                bytes);
    if (bytes.size() == before)
      throw ParseError(fmt::format("{}: the header promises {} bytes of elements, the file has {}",
                                   file, count, before));
  }
  Bytes beyond;
  source.read(1, beyond);  // also makes a compressed stream check its end
  if (!beyond.empty())
    throw ParseError(fmt::format("{}: more than the {} bytes of elements that the header promises",
                                 file, count));
  return bytes;
}

}  // namespace

HostArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const FileReader file(path);
  const std::string name = path.string();
  std::array<char, 2> magic{};
  if (file.size() >= 2) file.read_at(0, magic);
  std::unique_ptr<Source> source;
  if (magic == std::array{'\x1f', '\x8b'})
    source = std::make_unique<GzipSource>(file);
  else
    source = std::make_unique<PlainSource>(file);

  Bytes head;
  source->read(4, head);
  if (head.size() < 4 || head[0] != 0 || head[1] != 0)
    throw ParseError(
        fmt::format("{}: not an IDX file: expected two zero bytes, a type and a rank", name));
  const std::uint64_t width = element_bytes(head[2], name);
  const Shape shape = read_sizes(*source, head[3], name);
  const auto count = static_cast<std::uint64_t>(shape.numel());
  if (count > max_bytes / width)
    throw ParseError(fmt::format("{}: {} elements of {} bytes are more than the limit of {} bytes",
                                 name, count, width, max_bytes));
  Bytes bytes = read_elements(*source, count * width, name);

  HostArray array{.shape = shape, .values = {}};
  switch (head[2]) {
    case 0x08:
      array.values = std::move(bytes);
      break;
    case 0x09:
      array.values = decode<std::int8_t, std::int32_t>(bytes);
      break;
    case 0x0B:
      array.values = decode<std::int16_t, std::int32_t>(bytes);
      break;
    case 0x0C:
      array.values = decode<std::int32_t, std::int32_t>(bytes);
      break;
    case 0x0D:
      array.values = decode<float, float>(bytes);
      break;
    default:
      array.values = decode<double, double>(bytes);
      break;
  }
  return array;
}

}  // namespace pantala::io
