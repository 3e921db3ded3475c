#include "io/widen.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// The elements of a file need not be aligned: each is copied.
template <class From, class To>
std::vector<std::byte> widened(const SafeTensorsEntry& entry, std::span<const std::byte> bytes,
                               const std::string& file) {
  const std::size_t count = bytes.size() / sizeof(From);
  std::vector<std::byte> result(count * sizeof(To));
  for (std::size_t k = 0; k < count; ++k) {
    From from;
    std::memcpy(&from, bytes.data() + k * sizeof from, sizeof from);
    if (!std::in_range<To>(from))
      throw UnsupportedError(fmt::format(
          "{}: tensor {}: element {} is {}; {} is read as {}, which "
          "ends below 2^63",
          file, in_quotes(entry.name), k, from, entry.format, dtype_name(*entry.widened)));
    const auto to = static_cast<To>(from);
    std::memcpy(result.data() + k * sizeof to, &to, sizeof to);
  }
  return result;
}

}  // namespace

std::vector<std::byte> widen(const SafeTensorsEntry& entry, std::span<const std::byte> bytes,
                             const std::string& file) {
  if (entry.format == "I8") return widened<std::int8_t, std::int32_t>(entry, bytes, file);
  if (entry.format == "I16") return widened<std::int16_t, std::int32_t>(entry, bytes, file);
  if (entry.format == "U16") return widened<std::uint16_t, std::int32_t>(entry, bytes, file);
  if (entry.format == "U32") return widened<std::uint32_t, std::int64_t>(entry, bytes, file);
  if (entry.format == "U64") return widened<std::uint64_t, std::int64_t>(entry, bytes, file);
  throw InternalError(fmt::format("safetensors: {} is not widened", entry.format));
}

}  // namespace pantala::io
