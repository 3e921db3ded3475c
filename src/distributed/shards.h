// Which items belong to a shard, which shards to a rank, and the binary tree along which shards are
// summed. All of it follows from three numbers, so that ranks need not tell each other.
#pragma once

#include <cstdint>
#include <vector>

namespace pantala::distributed {

struct Range {
  std::int64_t first = 0, last = 0;  // [first, last)
  std::int64_t size() const { return last - first; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Of a batch with so many items; the first ones are larger by an item where they cannot be equal.
Range items_of_shard(std::int64_t items, std::int64_t shards, std::int64_t shard);
// Of several that are neighbours.
Range items_of_shards(std::int64_t items, std::int64_t shards, const Range& some);
// Neighbours.
Range shards_of_rank(std::int64_t shards, std::int64_t ranks, std::int64_t rank);

// A node of the tree is a range of shards. Its left half is the larger one.
inline bool is_leaf(const Range& node) { return node.size() == 1; }
inline Range left(const Range& node) { return {node.first, node.last - node.size() / 2}; }
inline Range right(const Range& node) { return {node.last - node.size() / 2, node.last}; }

// The largest nodes of the tree over all shards that lie in the range, in order.
std::vector<Range> largest_nodes(const Range& range, std::int64_t shards);
// Whether the shards of every rank are one node, and ranks meet in pairs on the way to the root:
// then sums go the shortest way.
bool ranks_are_nodes(std::int64_t shards, std::int64_t ranks);

}  // namespace pantala::distributed
