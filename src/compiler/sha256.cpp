#include "compiler/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace pantala::compiler {

namespace {

constexpr std::size_t kBlock = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

void compress(State& state, const unsigned char* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t)
    w[t] = std::uint32_t{block[4 * t]} << 24 | std::uint32_t{block[4 * t + 1]} << 16 |
           std::uint32_t{block[4 * t + 2]} << 8 | std::uint32_t{block[4 * t + 3]};
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[t - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const std::uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State change{a, b, c, d, e, f, g, h};
  for (std::size_t k = 0; k < state.size(); ++k) state[k] += change[k];
}

}  // namespace

void Sha256::add(std::string_view bytes) {
  const std::size_t kept = size_ % kBlock;
  size_ += bytes.size();
  if (kept + bytes.size() < kBlock) {
    std::copy(bytes.begin(), bytes.end(), rest_.begin() + kept);
    return;
  }
  const auto compress_at = [&](const char* block) {
    compress(state_, reinterpret_cast<const unsigned char*>(block));
  };
  if (kept > 0) {
    std::copy_n(bytes.begin(), kBlock - kept, rest_.begin() + kept);
    bytes.remove_prefix(kBlock - kept);
    compress_at(rest_.data());
  }
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) compress_at(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

Digest Sha256::finish() {
  // A one, zeros, and the length in bits at the end of the last block.
  const std::uint64_t bits = size_ * 8;
  const std::size_t kept = size_ % kBlock;
  std::string tail(kept + 9 <= kBlock ? kBlock - kept : 2 * kBlock - kept, '\0');
  tail[0] = static_cast<char>(0x80);
  for (std::size_t k = 0; k < 8; ++k)
    tail[tail.size() - 1 - k] = static_cast<char>(bits >> (8 * k) & 0xFF);
  add(tail);
  Digest digest;
  for (std::size_t k = 0; k < digest.size(); ++k)
    digest[k] = static_cast<std::uint8_t>(state_[k / 4] >> (24 - 8 * (k % 4)));
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace pantala::compiler
