#include "distributed/sum.h"

#include <algorithm>
#include <functional>

namespace pantala::distributed {

namespace {

template <class T>
void add_all(std::span<const T> left, std::span<const T> right, std::span<T> sum) {
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = left[k] + right[k];
}

template <class T>
std::span<T> part(std::span<T> values, const Range& range) {
  return values.subspan(static_cast<std::size_t>(range.first),
                        static_cast<std::size_t>(range.size()));
}

}  // namespace

void add(std::span<const float> left, std::span<const float> right, std::span<float> sum) {
  add_all(left, right, sum);
}
void add(std::span<const double> left, std::span<const double> right, std::span<double> sum) {
  add_all(left, right, sum);
}

template <class T>
RankSum<T>::RankSum(Communicator& ranks, std::int64_t shards)
    : ranks_(ranks),
      shards_(shards),
      nodes_(largest_nodes(shards_of_rank(shards, ranks.size(), ranks.rank()), shards)) {}

template <class T>
void RankSum<T>::run(std::span<const std::span<T>> partial) {
  if (ranks_.size() == 1) return;
  if (ranks_are_nodes(shards_, ranks_.size()))
    sum_in_pairs(partial[0]);
  else
    sum_by_parts(partial);
}

// A rank and its partner have summed the same elements of the two halves of a node; each goes on
// with one half of these elements. Which of the two numbers stands on the left does not matter to
// the sum.
template <class T>
void RankSum<T>::sum_in_pairs(std::span<T> values) {
  struct Round {
    int partner;
    Range mine, other;
  };
  std::vector<Round> rounds;
  Range range{0, std::ssize(values)};
  for (int distance = 1; distance < ranks_.size(); distance *= 2) {
    const Range low = left(range), high = right(range);
    const bool is_low = (ranks_.rank() & distance) == 0;
    const Round round{ranks_.rank() ^ distance, is_low ? low : high, is_low ? high : low};
    space_.resize(static_cast<std::size_t>(round.mine.size()));
    const Send send{round.partner, std::as_bytes(part(values, round.other))};
    const Receive receive{round.partner, std::as_writable_bytes(std::span(space_))};
    ranks_.exchange(Channel::gradients, {&send, 1}, {&receive, 1});
    add(part(values, round.mine), space_, part(values, round.mine));
    range = round.mine;
    rounds.push_back(round);
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    const Send send{round->partner, std::as_bytes(part(values, round->mine))};
    const Receive receive{round->partner, std::as_writable_bytes(part(values, round->other))};
    ranks_.exchange(Channel::gradients, {&send, 1}, {&receive, 1});
  }
}

template <class T>
Range RankSum<T>::part_of(std::int64_t count, int rank) const {
  return items_of_shard(count, ranks_.size(), rank);
}

template <class T>
void RankSum<T>::sum_by_parts(std::span<const std::span<T>> partial) {
  const std::int64_t count = std::ssize(partial[0]);
  const Range mine = part_of(count, ranks_.rank());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  struct Known {
    Range node;
    std::span<T> values;  // of my part
  };
  std::vector<Known> known;
  std::size_t nodes = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    nodes += largest_nodes(shards_of_rank(shards_, ranks_.size(), rank), shards_).size();
  space_.resize((nodes + nodes_.size()) * static_cast<std::size_t>(mine.size()));
  std::span<T> free = space_;
  const auto take = [&] {
    const std::span<T> taken = free.first(static_cast<std::size_t>(mine.size()));
    free = free.subspan(taken.size());
    return taken;
  };
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const auto theirs = largest_nodes(shards_of_rank(shards_, ranks_.size(), rank), shards_);
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      if (rank == ranks_.rank()) {
        known.push_back({theirs[k], part(partial[k], mine)});
        continue;
      }
      known.push_back({theirs[k], take()});
      receives.push_back({rank, std::as_writable_bytes(known.back().values)});
    }
    if (rank == ranks_.rank()) continue;
    for (const std::span<T> values : partial)
      sends.push_back({rank, std::as_bytes(part(values, part_of(count, rank)))});
  }
  ranks_.exchange(Channel::gradients, sends, receives);
  // Sums lie where the left one of the two was.
  const std::function<std::span<T>(const Range&)> sum_of = [&](const Range& node) {
    const auto found = std::ranges::find(known, node, &Known::node);
    if (found != known.end()) return found->values;
    const std::span<T> sum = sum_of(left(node));
    add(sum, sum_of(right(node)), sum);
    return sum;
  };
  const std::span<T> sum = sum_of({0, shards_});
  const std::span<T> into = part(partial[0], mine);
  if (sum.data() != into.data()) std::ranges::copy(sum, into.begin());
  gather_parts(partial[0]);
}

template <class T>
void RankSum<T>::gather_parts(std::span<T> values) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    sends.push_back(
        {rank, std::as_bytes(part(values, part_of(std::ssize(values), ranks_.rank())))});
    receives.push_back(
        {rank, std::as_writable_bytes(part(values, part_of(std::ssize(values), rank)))});
  }
  ranks_.exchange(Channel::gradients, sends, receives);
}

template class RankSum<float>;
template class RankSum<double>;

}  // namespace pantala::distributed
