// A step whose batch is cut into shards (pantala/distributed.h): each shard is a run of the plan
// `accumulate` with sums that begin anew, the sums meet along the tree, and every rank makes the
// same update of the whole.
//
// What else such a run moves (running statistics, counters) begins with the same values in every
// shard; afterwards numbers are the mean of what the shards have left, in their order, and whole
// numbers what the first one has. A random op draws by the number of the shard.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/shards.h"
#include "distributed/sum.h"
#include "pantala/data.h"
#include "pantala/distributed.h"
#include "pantala/trainer.h"
#include "train/buckets.h"
#include "train/early_sums.h"
#include "train/plans.h"

namespace pantala::train {

// The options of a rank, complete. TypeError where they make no sense.
distributed::Options complete(distributed::Options options);

class ShardedStep {
 public:
  ShardedStep(const distributed::Options& options, Plans& plans);

  // What all ranks know after the gradients have been summed. Where a rank updates some parameters
  // alone, it has the sums of these, unless need_all_sums() was told that some rank needs more.
  struct Sums {
    double loss = 0;  // loss times labels
    std::int64_t labels = 0;
    Request request = Request::none;  // of any rank
  };
  // All ranks together, before the first step and whenever it may have changed.
  void need_all_sums(bool on_this_rank);
  // Rank 0 has the last step's sums of all, for a checkpoint; every rank calls it.
  void complete_sums() const;
  bool knows_needs() const { return knows_needs_ || !shares_updates_; }
  // Micro-batches of one update, each whole or the part that is this rank's. The session is ready
  // for apply(). `request` is what this rank was asked.
  Sums run(std::span<const data::Batch> window, Request request);

  // After a step whose sums are not finite: the first shard whose own are not, of any rank, and the
  // items of its micro-batch with which they ceased to be. None if the sum alone overflows. The
  // session is as before the step.
  struct BadShard {
    std::int64_t shard = 0;
    int rank = 0;
    data::Batch items;
  };
  std::optional<BadShard> find_bad(std::span<const data::Batch> window);
  // What the last step has moved beside the weights is as it was before it.
  void take_back();

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
  // That this rank has waited for gradients after it had made its own.
  std::chrono::steady_clock::duration exposed() const { return exposed_; }

 private:
  // What a shard tells.
  struct Told {
    double loss = 0;
    std::int64_t labels = 0;
  };
  // What a rank tells, beside its shards.
  struct Asked {
    Request request = Request::none;
    bool is_finite = true;  // of the sums that it has alone
  };
  // An entry of the store that a shard moves beside the sums.
  struct Moved {
    std::size_t entry = 0;
    std::vector<std::byte> before;
  };

  Sums run_step(std::span<const data::Batch> window, Request request);
  bool tell_all(Asked own, Sums& sums);
  void find_entries();
  void order_sums();
  void find_owners();
  void make_buckets();
  void scatter_buckets();
  bool is_scattered(std::size_t bucket) const { return !needs_all_ && !bounds_[bucket].empty(); }
  bool has_sum(std::size_t sum) const;
  bool are_own_sums_finite() const;
  bool are_stored_sums_finite() const;
  void refuse_update();
  // The launches of a plan after which each bucket is complete.
  const std::vector<std::int64_t>& ready(const SessionPlan& plan);
  bool goes_early() const;
  void sum_node(const distributed::Range& node, std::size_t into, bool is_last);
  void sum_shard(std::int64_t shard, std::size_t into, bool is_last);
  void run_plan(const SessionPlan& plan, std::size_t into, bool is_last);
  void send_bucket(std::size_t bucket);
  void see_sums();
  bool is_direct(const Bucket& bucket) const;
  std::vector<std::span<float>> given(const Bucket& bucket);
  static std::span<float> part(std::vector<float>& space, const Bucket& bucket);
  std::optional<data::Batch> items_of(const data::Batch& batch, std::int64_t shard) const;
  void take_sums(std::size_t into, const Bucket& bucket);
  void give_sums();
  void sum_over_ranks();
  void set_draw(std::int64_t draw);
  void note_moved();
  void merge_moved(std::int64_t shards_with_items);

  std::shared_ptr<distributed::Communicator> ranks_;
  std::int64_t shards_;
  distributed::Range mine_;
  Plans& plans_;
  std::vector<std::size_t> sums_;    // the store's entries of the sums, in order of completion
  std::vector<std::size_t> sums64_;  // of f64 ones
  std::vector<Moved> moved_;
  std::optional<std::size_t> draw_;  // the store's entry
  distributed::RankSum<float> rank_sum_;
  distributed::RankSum<double> rank_sum64_;
  // Of nodes, all sums one behind the other: those that are given to other ranks come first.
  std::vector<std::vector<float>> space_;
  std::vector<std::vector<double>> space64_;
  std::vector<Bucket> buckets_;
  // Where each parameter is updated by one rank: by the store's entry of its sum, that rank.
  std::map<std::size_t, int> owners_;
  bool shares_updates_ = false, needs_all_ = true, knows_needs_ = false;
  // By bucket, where its sums are cut into the parts of the ranks (RankSum::scatter); none of one
  // that all ranks need.
  std::vector<std::vector<std::int64_t>> bounds_;
  std::map<std::string, std::vector<std::int64_t>> ready_;  // by the name of the plan
  // The sums in the store's memory, which a run writes.
  std::vector<std::span<std::byte>> seen_;
  std::chrono::steady_clock::duration exposed_{};

  // Of the step at hand.
  std::span<const data::Batch> window_;
  std::int64_t first_draw_ = 0;
  bool went_early_ = false;
  std::vector<Told> told_;           // by this rank's shards, in order
  std::vector<std::byte> moved_to_;  // by this rank's shards, in order: moved_ one behind the other

  std::optional<EarlySums> early_;  // its thread uses the rest
};

}  // namespace pantala::train
