// The cuts of a batch and the tree of its shards, for all small numbers of shards and ranks.
#include "distributed/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pantala::distributed {
namespace {

using ::testing::ElementsAre;

TEST(Shards, cut_a_batch_without_gaps_and_the_first_are_the_larger_ones) {
  for (std::int64_t items = 0; items < 20; ++items)
    for (std::int64_t shards = 1; shards < 9; ++shards) {
      std::int64_t at = 0, before = items;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const Range range = items_of_shard(items, shards, shard);
        EXPECT_EQ(range.first, at);
        EXPECT_LE(range.size(), before);
        EXPECT_GE(range.size(), items / shards);
        before = range.size();
        at = range.last;
      }
      EXPECT_EQ(at, items);
    }
}

TEST(Shards, of_several_ranks_tile_the_tree_with_its_own_nodes) {
  EXPECT_THAT(largest_nodes({0, 3}, 8), ElementsAre(Range{0, 2}, Range{2, 3}));
  EXPECT_THAT(largest_nodes({3, 6}, 8), ElementsAre(Range{3, 4}, Range{4, 6}));
  EXPECT_THAT(largest_nodes({4, 8}, 8), ElementsAre(Range{4, 8}));
  EXPECT_THAT(largest_nodes({2, 2}, 8), ElementsAre());
}

TEST(Shards, pairs_of_ranks_are_nodes_where_halving_reaches_every_rank) {
  for (std::int64_t ranks = 1; ranks < 10; ++ranks)
    for (std::int64_t shards = ranks; shards < 34; ++shards) {
      bool all = (ranks & (ranks - 1)) == 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        all = all && largest_nodes(shards_of_rank(shards, ranks, rank), shards).size() == 1 &&
              shards_of_rank(shards, ranks, rank).size() * ranks == shards;
      EXPECT_EQ(ranks_are_nodes(shards, ranks), all) << shards << ' ' << ranks;
    }
}

}  // namespace
}  // namespace pantala::distributed
