#include "distributed/shards.h"

#include <algorithm>
#include <bit>

namespace pantala::distributed {

Range items_of_shard(std::int64_t items, std::int64_t shards, std::int64_t shard) {
  const std::int64_t each = items / shards, larger = items % shards;
  const std::int64_t first = shard * each + std::min(shard, larger);
  return {first, first + each + (shard < larger ? 1 : 0)};
}

Range items_of_shards(std::int64_t items, std::int64_t shards, const Range& some) {
  return {items_of_shard(items, shards, some.first).first,
          items_of_shard(items, shards, some.last - 1).last};
}

Range shards_of_rank(std::int64_t shards, std::int64_t ranks, std::int64_t rank) {
  return items_of_shard(shards, ranks, rank);
}

namespace {

void add_nodes(const Range& range, const Range& node, std::vector<Range>& nodes) {
  if (node.last <= range.first || range.last <= node.first) return;
  if (range.first <= node.first && node.last <= range.last) {
    nodes.push_back(node);
    return;
  }
  add_nodes(range, left(node), nodes);
  add_nodes(range, right(node), nodes);
}

}  // namespace

std::vector<Range> largest_nodes(const Range& range, std::int64_t shards) {
  std::vector<Range> nodes;
  if (range.size() > 0) add_nodes(range, {0, shards}, nodes);
  return nodes;
}

bool ranks_are_nodes(std::int64_t shards, std::int64_t ranks) {
  return std::has_single_bit(static_cast<std::uint64_t>(ranks)) && shards % ranks == 0;
}

}  // namespace pantala::distributed
