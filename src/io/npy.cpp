#include "io/npy.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "io/npy_header.h"
#include "ir/bytes.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

constexpr std::size_t kMaxNpyHeaderBytes = 1 << 16;

Bytes read_bytes(ByteSource& source, std::size_t count, const std::string& what) {
  Bytes bytes;
  source.read(count, bytes);
  if (bytes.size() < count) throw ParseError(what + ": the file ends within its NPY header");
  return bytes;
}

NpyHeader read_header(ByteSource& source, const std::string& what) {
  Bytes magic;
  source.read(kNpyMagic.size() + 2, magic);
  if (magic.size() < kNpyMagic.size() + 2 ||
      !std::equal(kNpyMagic.begin(), kNpyMagic.end(), magic.begin(),
                  [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
    throw ParseError(what + ": not an NPY file: it does not begin with \\x93NUMPY");
  const int version = magic[kNpyMagic.size()];
  if (version < 1 || version > 3)
    throw UnsupportedError(fmt::format("{}: NPY version {}; 1 to 3 are known", what, version));
  const std::size_t length =
      version == 1 ? load<std::uint16_t>(read_bytes(source, 2, what).data(), std::endian::little)
                   : load<std::uint32_t>(read_bytes(source, 4, what).data(), std::endian::little);
  if (length > kMaxNpyHeaderBytes)
    throw ParseError(fmt::format("{}: an NPY header of {} bytes; the limit is {}", what, length,
                                 kMaxNpyHeaderBytes));
  const Bytes text = read_bytes(source, length, what);
  return parse_npy_header({reinterpret_cast<const char*>(text.data()), text.size()}, what);
}

// How an element type is read.
struct Element {
  std::string_view name;
  std::uint64_t bytes;
  HostArray::Values (*read)(ByteSource&, std::uint64_t, std::endian, const std::string&);
};
template <class Stored, class Value>
HostArray::Values read_as(ByteSource& source, std::uint64_t count, std::endian order,
                          const std::string& what) {
  return read_rest<Stored>(source, count, order, what,
                           [](Stored value) { return static_cast<Value>(value); });
}
HostArray::Values read_booleans(ByteSource& source, std::uint64_t count, std::endian order,
                                const std::string& what) {
  return read_rest<std::uint8_t>(source, count, order, what, [](std::uint8_t value) {
    return static_cast<std::uint8_t>(value != 0);
  });
}
HostArray::Values read_halves(ByteSource& source, std::uint64_t count, std::endian order,
                              const std::string& what) {
  return read_rest<std::uint16_t>(source, count, order, what, [](std::uint16_t bits) {
    return static_cast<float>(ir::half_value(f16, bits));
  });
}
HostArray::Values read_u8(ByteSource& source, std::uint64_t count, std::endian order,
                          const std::string& what) {
  return read_rest<std::uint64_t>(source, count, order, what, [&](std::uint64_t value) {
    if (!std::in_range<std::int64_t>(value))
      throw UnsupportedError(fmt::format(
          "{}: an element is {}; u8 is read as i64, which ends below 2^63", what, value));
    return static_cast<std::int64_t>(value);
  });
}
constexpr Element kElements[] = {{"f2", 2, read_halves},
                                 {"f4", 4, read_as<float, float>},
                                 {"f8", 8, read_as<double, double>},
                                 {"i1", 1, read_as<std::int8_t, std::int32_t>},
                                 {"i2", 2, read_as<std::int16_t, std::int32_t>},
                                 {"i4", 4, read_as<std::int32_t, std::int32_t>},
                                 {"i8", 8, read_as<std::int64_t, std::int64_t>},
                                 {"u1", 1, read_as<std::uint8_t, std::uint8_t>},
                                 {"u2", 2, read_as<std::uint16_t, std::int32_t>},
                                 {"u4", 4, read_as<std::uint32_t, std::int64_t>},
                                 {"u8", 8, read_u8},
                                 {"b1", 1, read_booleans}};

const Element& find_element(const std::string& name, const std::string& what) {
  for (const Element& element : kElements)
    if (element.name == name) return element;
  if (name.starts_with('O'))
    throw UnsupportedError(what + ": Python objects, which are never loaded: they can run code");
  std::string known;
  for (const Element& element : kElements)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", element.name);
  throw UnsupportedError(
      fmt::format("{}: elements of dtype {}; {} can be read: convert with array.astype(...)", what,
                  name, known));
}

// Elements whose first axis varies fastest, in an order whose last axis does.
template <class Value>
std::vector<Value> from_fortran(const std::vector<Value>& values, const Shape& shape) {
  std::vector<Value> result;
  result.reserve(values.size());
  std::array<std::int64_t, Shape::kMaxRank> index{}, strides{};
  std::int64_t stride = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::int64_t at = 0;
  while (result.size() < values.size()) {
    result.push_back(values[static_cast<std::size_t>(at)]);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

HostArray read_npy(ByteSource& source, const std::string& what, std::uint64_t max_bytes) {
  const NpyHeader header = read_header(source, what);
  const Element& element = find_element(header.element, what);
  const auto count = static_cast<std::uint64_t>(header.shape.numel());
  if (count > max_bytes / element.bytes)
    throw ParseError(fmt::format("{}: {} elements of {} bytes are more than the limit of {} bytes",
                                 what, count, element.bytes, max_bytes));
  HostArray array{.shape = header.shape, .values = element.read(source, count, header.order, what)};
  if (header.fortran && header.shape.rank() > 1)
    std::visit([&](auto& values) { values = from_fortran(values, header.shape); }, array.values);
  return array;
}

HostArray read_npy(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const FileReader file(path);
  return read_npy(*plain_source({file, 0, file.size()}), path.string(), max_bytes);
}

void write_npy(const std::filesystem::path& path, const Type& type,
               std::span<const std::byte> elements) {
  const char kind = is_float(type.dtype)    ? 'f'
                    : type.dtype == u8      ? 'u'
                    : type.dtype == boolean ? 'b'
                                            : 'i';
  const std::string head =
      write_npy_header({.element = fmt::format("{}{}", kind, dtype_bytes(type.dtype)),
                        .order = std::endian::native,
                        .fortran = false,
                        .shape = type.shape});
  const std::array<std::string_view, 2> parts = {
      head, {reinterpret_cast<const char*>(elements.data()), elements.size()}};
  write_file(path, parts);
}

}  // namespace pantala::io
