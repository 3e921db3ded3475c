// The sum over all ranks, each element along the tree over shards (shards.h): whatever the number
// of ranks, the same additions of the same numbers.
//
// Where the shards of each rank are one node (ranks_are_nodes), ranks meet in pairs: in each round
// half of what is left is exchanged and added, and in as many rounds more what was summed is handed
// around. Otherwise every rank sums a part of the elements and gets for it what the others have of
// the tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "distributed/shards.h"
#include "pantala/distributed.h"

namespace pantala::distributed {

// left[k] + right[k], into both or either.
void add(std::span<const float> left, std::span<const float> right, std::span<float> sum);
void add(std::span<const double> left, std::span<const double> right, std::span<double> sum);

template <class T>
class RankSum {
 public:
  RankSum(Communicator& ranks, std::int64_t shards);

  // This rank's nodes of the tree: what it gives to the sum.
  const std::vector<Range>& nodes() const { return nodes_; }
  // `partial` holds, for each of nodes(), all elements. On return its first one holds the sums, all
  // of them.
  void run(std::span<const std::span<T>> partial);

  // The first half of it: each rank gets a part of the sums, in place. Parts lie one behind the
  // other, that of a rank at place_of_rank() it; `bounds` are where they begin and, at last, end.
  void scatter(std::span<const std::span<T>> partial, std::span<const std::int64_t> bounds);
  // The second half: every rank gets the parts of all.
  void gather(std::span<T> values, std::span<const std::int64_t> bounds);
  std::size_t place_of_rank(int rank) const;

 private:
  bool in_pairs() const { return ranks_are_nodes(shards_, ranks_.size()); }
  Range part_at(std::span<const std::int64_t> bounds, int rank) const;
  void exchange_all(std::span<T> values);
  void scatter_in_pairs(std::span<T> values, std::span<const std::int64_t> bounds);
  void scatter_by_parts(std::span<const std::span<T>> partial,
                        std::span<const std::int64_t> bounds);
  void gather_in_pairs(std::span<T> values, std::span<const std::int64_t> bounds);
  void gather_parts(std::span<T> values, std::span<const std::int64_t> bounds);
  // A rank and its partner, at each distance, have the same places before them and halve them.
  struct Round {
    int partner;
    Range mine, other;  // elements
  };
  std::vector<Round> rounds(std::span<const std::int64_t> bounds) const;

  Communicator& ranks_;
  const std::int64_t shards_;
  std::vector<Range> nodes_;
  std::vector<T> space_;  // of what comes from others
};

}  // namespace pantala::distributed
