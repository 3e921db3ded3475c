#include "io/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "io/file.h"

namespace pantala::io {

namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);  // the polynomial, reflected
    table[byte] = value;
  }
  return table;
}

// A CRC of data that holds CRCs is weak: TFRecord stores this instead.
std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t byte = 0; byte < sizeof(T); ++byte)
    out += static_cast<char>(static_cast<unsigned char>(value >> (8 * byte)));
}
template <class T>
T get_little_endian(const char* bytes) {
  T value = 0;
  for (std::size_t byte = 0; byte < sizeof(T); ++byte)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[byte])) << (8 * byte));
  return value;
}

// --- protobuf: fields of the wire types that Event and Summary need
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  out += static_cast<char>(static_cast<unsigned char>(value));
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(double wall_time) {
  std::string event;
  put_key(event, 1, Wire::fixed64);  // Event.wall_time
  put_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

std::string record_of(std::string_view payload) {
  std::string record;
  put_little_endian(record, static_cast<std::uint64_t>(payload.size()));
  put_little_endian(record, masked(crc32c(record)));
  record += payload;
  put_little_endian(record, masked(crc32c(payload)));
  return record;
}

constexpr std::uint64_t kHeadBytes = 12, kTailBytes = 4;
// Far above what is written here; a length beyond it is damage.
constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 20;

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return crc ^ 0xffffffffU;
}

std::string event_file_name(double wall_time, std::string_view host) {
  std::string name = fmt::format("{}{:010}.", kEventFilePrefix,
                                 static_cast<std::int64_t>(std::max(0.0, wall_time)));
  for (const char c : host) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    name += plain ? c : '-';
  }
  return name;
}

std::uint64_t whole_event_bytes(const std::filesystem::path& path, std::uint64_t limit) {
  const FileReader file(path);
  const std::uint64_t end = std::min(limit, file.size());
  std::uint64_t whole = 0;
  std::vector<char> payload;
  while (end - whole >= kHeadBytes + kTailBytes) {
    std::array<char, kHeadBytes> head{};
    file.read_at(whole, head);
    const auto length = get_little_endian<std::uint64_t>(head.data());
    if (masked(crc32c({head.data(), 8})) != get_little_endian<std::uint32_t>(head.data() + 8))
      break;
    if (length > kMaxPayloadBytes || length > end - whole - kHeadBytes - kTailBytes) break;
    payload.resize(length + kTailBytes);
    file.read_at(whole + kHeadBytes, payload);
    if (masked(crc32c({payload.data(), length})) !=
        get_little_endian<std::uint32_t>(payload.data() + length))
      break;
    whole += kHeadBytes + length + kTailBytes;
  }
  return whole;
}

EventFile::EventFile(std::filesystem::path path, std::uint64_t keep, double wall_time)
    : file_(std::move(path), keep) {
  if (file_.size() > 0) return;
  std::string event = event_head(wall_time);
  put_bytes(event, 3, "brain.Event:2");  // Event.file_version
  file_.append(record_of(event));
}

void EventFile::add(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);          // Summary.Value.tag
    put_key(value, 2, Wire::fixed32);  // Summary.Value.simple_value
    put_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);  // Summary.value
  }
  std::string event = event_head(wall_time);
  put_key(event, 2, Wire::varint);  // Event.step
  put_varint(event, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);  // Event.summary
  file_.append(record_of(event));
}

}  // namespace pantala::io
