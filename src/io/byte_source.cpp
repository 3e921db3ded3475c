#include "io/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include "pantala/error.h"

namespace pantala::io {

namespace {

// A range of a file from its beginning on.
class Cursor {
 public:
  explicit Cursor(const FileRange& range) : range_(range) {}
  std::uint64_t left() const { return range_.size - done_; }
  // Of the file.
  std::uint64_t place() const { return range_.begin + done_; }
  std::string path() const { return range_.file.path().string(); }
  void read(std::span<char> out) {
    range_.file.read_at(place(), out);
    done_ += out.size();
  }

 private:
  FileRange range_;
  std::uint64_t done_ = 0;
};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(const FileRange& range) : cursor_(range) {}
  void read(std::size_t count, Bytes& out) override {
    const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(count, cursor_.left()));
    const std::size_t old = out.size();
    out.resize(old + take);
    cursor_.read(std::span(reinterpret_cast<char*>(out.data()) + old, take));
  }
  std::uint64_t certain() const override { return cursor_.left(); }

 private:
  Cursor cursor_;
};

class InflatingSource : public ByteSource {
 public:
  InflatingSource(const FileRange& range, Compression compression)
      : cursor_(range), kind_(compression == Compression::gzip ? "gzip" : "deflate") {
    const int window = compression == Compression::gzip ? MAX_WBITS + 16 : -MAX_WBITS;
    if (inflateInit2(&stream_, window) != Z_OK) throw InternalError("zlib does not start");
  }
  ~InflatingSource() override { inflateEnd(&stream_); }
  InflatingSource(const InflatingSource&) = delete;
  InflatingSource& operator=(const InflatingSource&) = delete;

  void read(std::size_t count, Bytes& out) override {
    const std::size_t old = out.size();
    out.resize(old + count);
    stream_.next_out = out.data() + old;
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0 && !ended_) {
      refill();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      // Without input there may still be output: zlib keeps some back.
      if (status == Z_BUF_ERROR && stream_.avail_in == 0 && cursor_.left() == 0)
        fail("the data are cut off");
      // The checksum at the end of gzip is compared here too.
      if (status != Z_OK && status != Z_STREAM_END)
        fail(stream_.msg ? stream_.msg : "damaged stream");
      ended_ = status == Z_STREAM_END;
    }
    out.resize(out.size() - stream_.avail_out);
    if (ended_ && (stream_.avail_in > 0 || cursor_.left() > 0))
      fail("bytes after the end of the stream");
  }

 private:
  void refill() {
    if (stream_.avail_in > 0 || cursor_.left() == 0) return;
    const auto take =
        static_cast<std::size_t>(std::min<std::uint64_t>(input_.size(), cursor_.left()));
    cursor_.read(std::span(input_.data(), take));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(take);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw ParseError(
        fmt::format("{}: {}, before byte {}: {}", cursor_.path(), kind_, cursor_.place(), what));
  }

  Cursor cursor_;
  std::string_view kind_;
  std::array<char, 1 << 16> input_{};
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> plain_source(const FileRange& range) {
  return std::make_unique<PlainSource>(range);
}

std::unique_ptr<ByteSource> inflating_source(const FileRange& range, Compression compression) {
  return std::make_unique<InflatingSource>(range, compression);
}

void fail_cut_off(const std::string& what, std::uint64_t promised, std::uint64_t found) {
  throw ParseError(fmt::format("{}: the header promises {} bytes of elements, the file has {}",
                               what, promised, found));
}

void require_end(ByteSource& source, const std::string& what, std::uint64_t promised) {
  Bytes beyond;
  source.read(1, beyond);  // also makes a compressed stream check its end
  if (!beyond.empty())
    throw ParseError(fmt::format("{}: more than the {} bytes of elements that the header promises",
                                 what, promised));
}

}  // namespace pantala::io
