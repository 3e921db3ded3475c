#include "io/idx.h"

#include <fmt/format.h>

#include "io/byte_source.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// The element types by their code in the file.
enum Code : std::uint8_t {
  kU8 = 0x08,
  kI8 = 0x09,
  kI16 = 0x0B,
  kI32 = 0x0C,
  kF32 = 0x0D,
  kF64 = 0x0E
};

std::uint64_t element_bytes(std::uint8_t code, const std::string& file) {
  switch (code) {
    case kU8:
    case kI8:
      return 1;
    case kI16:
      return 2;
    case kI32:
    case kF32:
      return 4;
    case kF64:
      return 8;
    default:
      throw ParseError(fmt::format("{}: byte 2: unknown IDX element type 0x{:02x}", file, code));
  }
}

Shape read_sizes(ByteSource& source, std::size_t rank, const std::string& file) {
  Bytes bytes;
  source.read(rank * 4, bytes);
  if (bytes.size() < rank * 4)
    throw ParseError(
        fmt::format("{}: the file ends within the {} sizes of its header", file, rank));
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < rank; ++axis)
    sizes.push_back(load<std::uint32_t>(bytes.data() + axis * 4, std::endian::big));
  try {
    return Shape(sizes);
  } catch (const TypeError& error) {
    throw ParseError(fmt::format("{}: byte 4: {}", file, error.what()));
  }
}

HostArray::Values read_values(ByteSource& source, std::uint8_t code, std::uint64_t count,
                              const std::string& file) {
  const auto read = [&]<class Stored, class Value>(Stored, Value) {
    return read_rest<Stored>(source, count, std::endian::big, file,
                             [](Stored value) { return static_cast<Value>(value); });
  };
  switch (code) {
    case kU8:
      return read(std::uint8_t{}, std::uint8_t{});
    case kI8:
      return read(std::int8_t{}, std::int32_t{});
    case kI16:
      return read(std::int16_t{}, std::int32_t{});
    case kI32:
      return read(std::int32_t{}, std::int32_t{});
    case kF32:
      return read(float{}, float{});
    default:
      return read(double{}, double{});
  }
}

}  // namespace

HostArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const FileReader file(path);
  const std::string name = path.string();
  std::array<char, 2> magic{};
  if (file.size() >= 2) file.read_at(0, magic);
  const FileRange whole{file, 0, file.size()};
  const std::unique_ptr<ByteSource> source = magic == std::array{'\x1f', '\x8b'}
                                                 ? inflating_source(whole, Compression::gzip)
                                                 : plain_source(whole);
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
  return {.shape = shape, .values = read_values(*source, head[2], count, name)};
}

}  // namespace pantala::io
