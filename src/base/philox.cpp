#include "base/philox.h"

#include "base/hash.h"

namespace pantala {

PhiloxBlock philox4x32(PhiloxBlock c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

namespace {

// Key: the seed. Counter: block number (32 bits; its high half is mixed into the draw), stream,
// draw.
PhiloxBlock random_block(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream,
                         std::uint64_t block) {
  const std::uint64_t wide = block >> 32;
  const std::uint64_t d = wide == 0 ? draw : draw ^ mix64(wide);
  const PhiloxBlock counter = {static_cast<std::uint32_t>(block), stream,
                               static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(d >> 32)};
  return philox4x32(counter,
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

}  // namespace

std::uint32_t random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream,
                          std::uint64_t index) {
  return random_block(seed, draw, stream, index / 4)[index % 4];
}

void random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream, std::uint64_t first,
                 std::span<std::uint32_t> out) {
  for (std::size_t k = 0; k < out.size();) {
    const std::uint64_t index = first + k;
    const PhiloxBlock block = random_block(seed, draw, stream, index / 4);
    for (std::size_t word = index % 4; word < 4 && k < out.size(); ++word) out[k++] = block[word];
  }
}

}  // namespace pantala
