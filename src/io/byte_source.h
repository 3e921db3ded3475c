// Bytes that are read once, from the beginning to the end: a part of a file, as it is or
// compressed. What a damaged stream is refused with is a ParseError that names the file.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "io/file.h"

namespace pantala::io {

using Bytes = std::vector<std::uint8_t>;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Appends up to `count` bytes to `out`; fewer only at the end of the data.
  virtual void read(std::size_t count, Bytes& out) = 0;
  // How many bytes are there for certain, before they are read.
  virtual std::uint64_t certain() const { return 0; }
};

// The range must lie within the file, which must outlive the source.
struct FileRange {
  const FileReader& file;
  std::uint64_t begin = 0, size = 0;
};
std::unique_ptr<ByteSource> plain_source(const FileRange& range);
enum class Compression : std::uint8_t { gzip, deflate };
std::unique_ptr<ByteSource> inflating_source(const FileRange& range, Compression compression);

// Throws the ParseError of a source that ended early or that goes on; `what` begins the message.
[[noreturn]] void fail_cut_off(const std::string& what, std::uint64_t promised,
                               std::uint64_t found);
void require_end(ByteSource& source, const std::string& what, std::uint64_t promised);

// An element from its bytes in the given order.
template <class Stored>
Stored load(const std::uint8_t* bytes, std::endian order) {
  std::array<std::uint8_t, sizeof(Stored)> element;
  std::memcpy(element.data(), bytes, sizeof(Stored));
  if (order != std::endian::native) std::reverse(element.begin(), element.end());
  return std::bit_cast<Stored>(element);
}

// All that is left, which must be `count` elements, converted by `convert`. Memory grows with what
// is really there, not with what a header promises.
template <class Stored, std::invocable<Stored> Convert>
auto read_rest(ByteSource& source, std::uint64_t count, std::endian order, const std::string& what,
               const Convert& convert) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
  std::vector<std::decay_t<std::invoke_result_t<Convert, Stored>>> values;
  values.reserve(
      static_cast<std::size_t>(std::min<std::uint64_t>(count, source.certain() / sizeof(Stored))));
  Bytes chunk;
  const std::uint64_t bytes = count * sizeof(Stored);
  for (std::uint64_t done = 0; done < bytes; done += chunk.size()) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, bytes - done));
    chunk.clear();
    source.read(wanted, chunk);
    if (chunk.size() < wanted) fail_cut_off(what, bytes, done + chunk.size());
    for (std::size_t at = 0; at < wanted; at += sizeof(Stored))
      values.push_back(convert(load<Stored>(chunk.data() + at, order)));
  }
  require_end(source, what, bytes);
  return values;
}

}  // namespace pantala::io
