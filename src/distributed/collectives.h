// What all ranks do together, on top of messages between two of them. Every rank calls the same
// functions in the same order.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pantala/distributed.h"

namespace pantala::distributed {

// The bytes of every rank, equally many of each, in the order of the ranks.
std::vector<std::byte> gather_all(Communicator& ranks, Channel channel,
                                  std::span<const std::byte> own);

template <class T>
std::vector<T> gather_all(Communicator& ranks, const T& own, Channel channel = Channel::control) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes =
      gather_all(ranks, channel, std::as_bytes(std::span(&own, 1)));
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

// Texts of any length.
std::vector<std::string> gather_texts(Communicator& ranks, const std::string& own);
// Lists of any length.
template <class T>
std::vector<std::vector<T>> gather_parts(Communicator& ranks, std::span<const T> own) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::span<const std::byte> bytes = std::as_bytes(own);
  std::vector<std::vector<T>> parts;
  for (const std::string& text : gather_texts(
           ranks, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))) {
    std::vector<T>& part = parts.emplace_back(text.size() / sizeof(T));
    if (!text.empty()) std::memcpy(part.data(), text.data(), text.size());
  }
  return parts;
}
// The same, one behind the other.
template <class T>
std::vector<T> gather_lists(Communicator& ranks, std::span<const T> own) {
  std::vector<T> all;
  for (const std::vector<T>& part : gather_parts(ranks, own))
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Returns when all ranks have come here.
void meet(Communicator& ranks);

}  // namespace pantala::distributed
