// Sums over ranks against one rank with the same shards, to the bit; collectives; failures.
#include "distributed/sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "distributed/collectives.h"
#include "support/ranks.h"
#include "support/training_data.h"

namespace pantala::distributed {
namespace {

using ::testing::ElementsAre;
using tests::run_ranks;
using tests::run_ranks_well;

std::vector<float> shard_values(std::int64_t shard, std::int64_t count) {
  return tests::random_floats(count, static_cast<std::uint64_t>(shard) + 1);
}

std::vector<float> node_sum(const Range& node, std::int64_t count) {
  if (is_leaf(node)) return shard_values(node.first, count);
  std::vector<float> sum = node_sum(left(node), count);
  add(sum, node_sum(right(node), count), sum);
  return sum;
}

TEST(RankSum, has_the_bits_of_the_tree_over_shards_for_any_number_of_ranks) {
  constexpr std::int64_t kCount = 37;
  for (const std::int64_t shards : {1, 2, 3, 6, 8, 13})
    for (int size = 1; size <= std::min<std::int64_t>(shards, 9); ++size) {
      const std::vector<float> expected = node_sum({0, shards}, kCount);
      run_ranks_well(size, [&](const auto& ranks) {
        RankSum<float> sum(*ranks, shards);
        std::vector<std::vector<float>> own;
        for (const Range& node : sum.nodes()) own.push_back(node_sum(node, kCount));
        std::vector<std::span<float>> partial(own.begin(), own.end());
        sum.run(partial);
        EXPECT_EQ(own[0], expected)
            << shards << " shards, rank " << ranks->rank() << " of " << size;
      });
    }
}

TEST(RankSum, gives_each_rank_its_part_however_uneven) {
  constexpr std::int64_t kCount = 37;
  for (const std::int64_t shards : {4, 8, 13})
    for (const int size : {1, 2, 3, 4}) {
      const std::vector<float> expected = node_sum({0, shards}, kCount);
      std::vector<std::int64_t> bounds = {0};
      for (int place = 1; place < size; ++place) bounds.push_back(place == 1 ? 0 : 5 * place);
      bounds.push_back(kCount);
      run_ranks_well(size, [&](const auto& ranks) {
        RankSum<float> sum(*ranks, shards);
        std::vector<std::vector<float>> own;
        for (const Range& node : sum.nodes()) own.push_back(node_sum(node, kCount));
        std::vector<std::span<float>> partial(own.begin(), own.end());
        sum.scatter(partial, bounds);
        const std::size_t place = sum.place_of_rank(ranks->rank());
        for (std::int64_t k = bounds[place]; k < bounds[place + 1]; ++k)
          EXPECT_EQ(own[0][static_cast<std::size_t>(k)], expected[static_cast<std::size_t>(k)])
              << shards << " shards, rank " << ranks->rank() << " of " << size;
        sum.gather(own[0], bounds);
        EXPECT_EQ(own[0], expected);
      });
    }
}

// Sums in another order differ, so that the test above can fail.
TEST(RankSum, depends_on_the_order_of_its_terms) {
  std::vector<float> forth = shard_values(0, 37), back = shard_values(7, 37);
  for (std::int64_t shard = 1; shard < 8; ++shard) {
    add(forth, shard_values(shard, 37), forth);
    add(back, shard_values(7 - shard, 37), back);
  }
  EXPECT_NE(forth, back);
}

TEST(RankSum, of_nothing_and_of_fewer_elements_than_ranks) {
  for (const std::int64_t count : {0, 1, 3})
    run_ranks_well(4, [&](const auto& ranks) {
      RankSum<double> sum(*ranks, 4);
      std::vector<double> own(static_cast<std::size_t>(count), ranks->rank() + 1);
      const std::span<double> partial = own;
      sum.run({&partial, 1});
      EXPECT_EQ(own, std::vector<double>(own.size(), 10));
    });
}

TEST(Collectives, gather_what_every_rank_has_in_order) {
  for (int size = 1; size < 8; ++size)
    run_ranks_well(size, [&](const auto& ranks) {
      const std::vector<int> all = gather_all(*ranks, ranks->rank() * 10);
      for (int rank = 0; rank < size; ++rank)
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank * 10);
      const std::string own(static_cast<std::size_t>(ranks->rank()), 'x');
      const std::vector<std::string> texts = gather_texts(*ranks, own);
      ASSERT_EQ(texts.size(), static_cast<std::size_t>(size));
      for (std::size_t rank = 0; rank < texts.size(); ++rank)
        EXPECT_EQ(texts[rank], std::string(rank, 'x'));
    });
}

TEST(Collectives, a_rank_that_fails_ends_all_others) {
  const auto thrown = run_ranks(4, [&](const auto& ranks) {
    if (ranks->rank() == 2) throw TypeError("no such thing");
    meet(*ranks);
  });
  for (const std::size_t rank : {0u, 1u, 3u}) {
    ASSERT_TRUE(thrown[rank]);
    try {
      std::rethrow_exception(thrown[rank]);
    } catch (const OtherRankError& error) {
      EXPECT_STREQ(error.what(), "no such thing");
      EXPECT_EQ(error.rank(), 2);
    }
  }
}

}  // namespace
}  // namespace pantala::distributed
