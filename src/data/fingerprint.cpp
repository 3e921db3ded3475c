#include "data/fingerprint.h"

#include <array>
#include <cstring>

#include "data/items.h"

namespace pantala::data {

namespace {

// Four independent chains of words: one alone would wait for its multiplications.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash) {
  constexpr std::size_t kLanes = 4, kWord = sizeof(std::uint64_t);
  std::array<std::uint64_t, kLanes> lanes{};
  for (std::size_t k = 0; k < kLanes; ++k) lanes[k] = hash_combine(hash, k);
  std::array<std::uint64_t, kLanes> words{};
  while (!bytes.empty()) {
    const std::size_t take = std::min(bytes.size(), kLanes * kWord);
    if (take < kLanes * kWord) words.fill(0);
    std::memcpy(words.data(), bytes.data(), take);
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] = hash_combine(lanes[k], words[k]);
    bytes = bytes.subspan(take);
  }
  for (const std::uint64_t lane : lanes) hash = hash_combine(hash, lane);
  return hash;
}

}  // namespace

std::uint64_t hash_array(const Array& array, std::uint64_t hash) {
  hash = fnv1a(Type{array.dtype(), array.shape}.str(), hash);
  return hash_bytes(bytes_of(array), hash);
}

std::uint64_t hash_dataset(const Dataset& dataset, std::uint64_t hash) {
  const auto add = [&](const Array* array, const ItemSource* source) {
    hash = array ? hash_array(*array, hash) : hash_combine(hash, source->hash());
  };
  add(dataset.data.get(), dataset.data_source.get());
  add(dataset.labels.get(), dataset.label_source.get());
  return hash;
}

}  // namespace pantala::data
