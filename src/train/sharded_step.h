// A step whose batch is cut into shards (pantala/distributed.h): each shard is a run of the plan
// `accumulate` with sums that begin anew, the sums meet along the tree, and every rank makes the
// same update of the whole.
//
// What else such a run moves (running statistics, counters) begins with the same values in every
// shard; afterwards numbers are the mean of what the shards have left, in their order, and whole
// numbers what the first one has. A random op draws by the number of the shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "distributed/shards.h"
#include "distributed/sum.h"
#include "pantala/data.h"
#include "pantala/distributed.h"
#include "pantala/trainer.h"
#include "train/plans.h"

namespace pantala::train {

// The options of a rank, complete. TypeError where they make no sense.
distributed::Options complete(distributed::Options options);

class ShardedStep {
 public:
  ShardedStep(const distributed::Options& options, Plans& plans);

  // What all ranks know after the gradients have been summed.
  struct Sums {
    double loss = 0;  // loss times labels
    std::int64_t labels = 0;
    Request request = Request::none;  // of any rank
  };
  // Micro-batches of one update, each whole or the part that is this rank's. The session is ready
  // for apply(). `request` is what this rank was asked.
  Sums run(std::span<const data::Batch> window, Request request);

  // What any rank was asked.
  Request agree(Request request);
  // DistributedError naming the ranks whose weights are not those of the others.
  void compare_weights(std::int64_t step) const;

  // The items of each of this rank's shards; none where a batch has too few.
  using Parts = std::vector<std::optional<data::Batch>>;
  Parts parts_of(const data::Batch& batch) const;
  // Sizes of shards that batches of these sizes have.
  std::vector<std::int64_t> shard_sizes(const std::vector<std::int64_t>& batch_sizes) const;
  distributed::Communicator& ranks() const { return *ranks_; }
  std::int64_t shards() const { return shards_; }

 private:
  // What a shard tells.
  struct Told {
    double loss = 0;
    std::int64_t labels = 0;
  };
  // An entry of the store that a shard moves beside the sums.
  struct Moved {
    std::size_t entry = 0;
    std::vector<std::byte> before;
  };

  void find_entries();
  void sum_node(const distributed::Range& node, std::size_t into);
  void sum_shard(std::int64_t shard, std::size_t into);
  std::optional<data::Batch> items_of(const data::Batch& batch, std::int64_t shard) const;
  void take_sums(std::size_t into);
  void give_sums();
  void sum_over_ranks();
  void set_draw(std::int64_t draw);
  void note_moved();
  void merge_moved(std::int64_t shards_with_items);

  std::shared_ptr<distributed::Communicator> ranks_;
  std::int64_t shards_;
  distributed::Range mine_;
  Plans& plans_;
  std::vector<std::size_t> sums_;    // the store's entries of the sums
  std::vector<std::size_t> sums64_;  // of f64 ones
  std::vector<Moved> moved_;
  std::optional<std::size_t> draw_;  // the store's entry
  distributed::RankSum<float> rank_sum_;
  distributed::RankSum<double> rank_sum64_;
  // Of nodes, all sums one behind the other: those that are given to other ranks come first.
  std::vector<std::vector<float>> space_;
  std::vector<std::vector<double>> space64_;

  // Of the step at hand.
  std::span<const data::Batch> window_;
  std::int64_t first_draw_ = 0;
  std::vector<Told> told_;           // by this rank's shards, in order
  std::vector<std::byte> moved_to_;  // by this rank's shards, in order: moved_ one behind the other
};

}  // namespace pantala::train
