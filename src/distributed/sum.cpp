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
  constexpr std::size_t kFewBytes = std::size_t{1} << 15;
  if (in_pairs() && partial[0].size_bytes() <= kFewBytes) return exchange_all(partial[0]);
  std::vector<std::int64_t> bounds = {0};
  for (int place = 0; place < ranks_.size(); ++place)
    bounds.push_back(items_of_shard(std::ssize(partial[0]), ranks_.size(), place).last);
  scatter(partial, bounds);
  gather(partial[0], bounds);
}

template <class T>
void RankSum<T>::scatter(std::span<const std::span<T>> partial,
                         std::span<const std::int64_t> bounds) {
  if (ranks_.size() == 1) return;
  if (in_pairs())
    scatter_in_pairs(partial[0], bounds);
  else
    scatter_by_parts(partial, bounds);
}

template <class T>
void RankSum<T>::gather(std::span<T> values, std::span<const std::int64_t> bounds) {
  if (ranks_.size() == 1) return;
  if (in_pairs())
    gather_in_pairs(values, bounds);
  else
    gather_parts(values, bounds);
}

// Halving begins with neighbours, so the lowest digit of a rank is the highest of its place.
template <class T>
std::size_t RankSum<T>::place_of_rank(int rank) const {
  if (!in_pairs()) return static_cast<std::size_t>(rank);
  std::size_t place = 0;
  for (int distance = 1; distance < ranks_.size(); distance *= 2)
    place = 2 * place + ((rank & distance) != 0 ? 1 : 0);
  return place;
}

template <class T>
Range RankSum<T>::part_at(std::span<const std::int64_t> bounds, int rank) const {
  const std::size_t place = place_of_rank(rank);
  return {bounds[place], bounds[place + 1]};
}

template <class T>
std::vector<typename RankSum<T>::Round> RankSum<T>::rounds(
    std::span<const std::int64_t> bounds) const {
  std::vector<Round> list;
  Range places{0, ranks_.size()};
  const auto elements = [&](const Range& some) {
    return Range{bounds[static_cast<std::size_t>(some.first)],
                 bounds[static_cast<std::size_t>(some.last)]};
  };
  for (int distance = 1; distance < ranks_.size(); distance *= 2) {
    const bool is_low = (ranks_.rank() & distance) == 0;
    const Range mine = is_low ? left(places) : right(places),
                other = is_low ? right(places) : left(places);
    list.push_back({ranks_.rank() ^ distance, elements(mine), elements(other)});
    places = mine;
  }
  return list;
}

// Of few bytes, which take no longer than their message: half as many rounds, in which partners
// make the same sums. Which of the two numbers stands on the left does not matter to a sum.
template <class T>
void RankSum<T>::exchange_all(std::span<T> values) {
  space_.resize(values.size());
  for (int distance = 1; distance < ranks_.size(); distance *= 2) {
    const int partner = ranks_.rank() ^ distance;
    const Send send{partner, std::as_bytes(values)};
    const Receive receive{partner, std::as_writable_bytes(std::span(space_))};
    ranks_.exchange(Channel::gradients, {&send, 1}, {&receive, 1});
    add(values, space_, values);
  }
}

// A rank and its partner have summed the same elements of the two halves of a node; each goes on
// with one half of these elements.
template <class T>
void RankSum<T>::scatter_in_pairs(std::span<T> values, std::span<const std::int64_t> bounds) {
  for (const Round& round : rounds(bounds)) {
    space_.resize(static_cast<std::size_t>(round.mine.size()));
    const Send send{round.partner, std::as_bytes(part(values, round.other))};
    const Receive receive{round.partner, std::as_writable_bytes(std::span(space_))};
    ranks_.exchange(Channel::gradients, {&send, 1}, {&receive, 1});
    add(part(values, round.mine), space_, part(values, round.mine));
  }
}

template <class T>
void RankSum<T>::gather_in_pairs(std::span<T> values, std::span<const std::int64_t> bounds) {
  const std::vector<Round> all = rounds(bounds);
  for (auto round = all.rbegin(); round != all.rend(); ++round) {
    const Send send{round->partner, std::as_bytes(part(values, round->mine))};
    const Receive receive{round->partner, std::as_writable_bytes(part(values, round->other))};
    ranks_.exchange(Channel::gradients, {&send, 1}, {&receive, 1});
  }
}

template <class T>
void RankSum<T>::scatter_by_parts(std::span<const std::span<T>> partial,
                                  std::span<const std::int64_t> bounds) {
  const Range mine = part_at(bounds, ranks_.rank());
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
      sends.push_back({rank, std::as_bytes(part(values, part_at(bounds, rank)))});
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
}

template <class T>
void RankSum<T>::gather_parts(std::span<T> values, std::span<const std::int64_t> bounds) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    sends.push_back({rank, std::as_bytes(part(values, part_at(bounds, ranks_.rank())))});
    receives.push_back({rank, std::as_writable_bytes(part(values, part_at(bounds, rank)))});
  }
  ranks_.exchange(Channel::gradients, sends, receives);
}

template class RankSum<float>;
template class RankSum<double>;

}  // namespace pantala::distributed
