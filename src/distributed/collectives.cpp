#include "distributed/collectives.h"

#include <algorithm>

namespace pantala::distributed {

namespace {

std::size_t count_of(int number) { return static_cast<std::size_t>(number); }

}  // namespace

// Each round doubles the number of neighbours whose bytes are known: as many rounds as the number
// of ranks has digits.
std::vector<std::byte> gather_all(Communicator& ranks, Channel channel,
                                  std::span<const std::byte> own) {
  const int size = ranks.size(), rank = ranks.rank();
  const std::size_t bytes = own.size();
  // Of this rank, the next one, ...
  std::vector<std::byte> known(bytes * count_of(size));
  std::ranges::copy(own, known.begin());
  for (int have = 1; have < size; have *= 2) {
    const int more = std::min(have, size - have);
    const std::size_t moved = count_of(more) * bytes;
    const Send send{(rank - have + size) % size, std::span(known).first(moved)};
    const Receive receive{(rank + have) % size,
                          std::span(known).subspan(count_of(have) * bytes, moved)};
    ranks.exchange(channel, {&send, 1}, {&receive, 1});
  }
  std::rotate(known.begin(), known.end() - static_cast<std::ptrdiff_t>(count_of(rank) * bytes),
              known.end());
  return known;
}

std::vector<std::string> gather_texts(Communicator& ranks, const std::string& own) {
  const std::vector<std::uint64_t> sizes = gather_all(ranks, std::uint64_t{own.size()});
  const std::uint64_t longest = *std::ranges::max_element(sizes);
  std::vector<std::byte> padded(longest);
  std::ranges::copy(std::as_bytes(std::span(own)), padded.begin());
  const std::vector<std::byte> bytes = gather_all(ranks, Channel::control, padded);
  std::vector<std::string> texts;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data() + k * longest), sizes[k]);
  return texts;
}

void meet(Communicator& ranks) { gather_all(ranks, std::byte{}); }

}  // namespace pantala::distributed
