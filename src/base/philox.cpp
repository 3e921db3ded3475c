#include "base/philox.h"

#include <algorithm>

#include "base/hash.h"
#include "base/wide.h"

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

struct Draw {
  PhiloxBlock counter;
  std::array<std::uint32_t, 2> key;
};

// Key: the seed. Counter: block number (32 bits; its high half is mixed into the draw), stream,
// draw.
Draw draw_of(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream, std::uint64_t block) {
  const std::uint64_t wide = block >> 32;
  const std::uint64_t d = wide == 0 ? draw : draw ^ mix64(wide);
  return {{static_cast<std::uint32_t>(block), stream, static_cast<std::uint32_t>(d),
           static_cast<std::uint32_t>(d >> 32)},
          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
}

}  // namespace

std::uint32_t random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream,
                          std::uint64_t index) {
  const Draw one = draw_of(seed, draw, stream, index / 4);
  return philox4x32(one.counter, one.key)[index % 4];
}

namespace {

// So many blocks at a time, word by word: neighbours are lanes of vectors.
constexpr std::size_t kTogether = 32;
constexpr std::uint64_t kBits = 4 * kTogether;

PANTALA_INLINED inline void draw_together(PhiloxBlock counter, std::array<std::uint32_t, 2> key,
                                          std::uint32_t* out) {
  std::uint32_t words[4][kTogether];
  for (std::size_t k = 0; k < kTogether; ++k) {
    words[0][k] = counter[0] + static_cast<std::uint32_t>(k);
    for (std::size_t word = 1; word < 4; ++word) words[word][k] = counter[word];
  }
  for (int round = 0; round < 10; ++round) {
    for (std::size_t k = 0; k < kTogether; ++k) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * words[0][k];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * words[2][k];
      words[0][k] = static_cast<std::uint32_t>(p1 >> 32) ^ words[1][k] ^ key[0];
      words[1][k] = static_cast<std::uint32_t>(p1);
      words[2][k] = static_cast<std::uint32_t>(p0 >> 32) ^ words[3][k] ^ key[1];
      words[3][k] = static_cast<std::uint32_t>(p0);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  for (std::size_t k = 0; k < kTogether; ++k)
    for (std::size_t word = 0; word < 4; ++word) out[4 * k + word] = words[word][k];
}

}  // namespace

void random_bits(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream, std::uint64_t first,
                 std::span<std::uint32_t> out) {
  for (std::size_t k = 0; k < out.size();) {
    const std::uint64_t index = first + k, block = index / 4;
    // Within the first 2^32 blocks their numbers are the counters.
    if (index % 4 == 0 && out.size() - k >= kBits && block + kTogether <= std::uint64_t{1} << 32) {
      const Draw from = draw_of(seed, draw, stream, block);
      std::uint32_t* const to = &out[k];
      run_wide([=]() PANTALA_INLINED { draw_together(from.counter, from.key, to); });
      k += kBits;
      continue;
    }
    const Draw one = draw_of(seed, draw, stream, block);
    const PhiloxBlock words = philox4x32(one.counter, one.key);
    for (std::size_t word = index % 4; word < 4 && k < out.size(); ++word) out[k++] = words[word];
  }
}

}  // namespace pantala
