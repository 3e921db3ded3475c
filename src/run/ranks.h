// The ranks of a run (pantala/distributed.h): which of them writes, what must be the same on all of
// them, and how many threads each has. A run on one rank has none of this to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/shards.h"
#include "pantala/distributed.h"
#include "run/core/config.h"

namespace pantala::run {

// Something that must be the same on all ranks.
struct Claim {
  std::string what;  // "config"
  std::string text;  // lines; the first one that differs is told
};

class RunRanks {
 public:
  // Null: one rank.
  explicit RunRanks(std::shared_ptr<distributed::Communicator> ranks);

  const std::shared_ptr<distributed::Communicator>& communicator() const { return ranks_; }
  std::int64_t size() const { return ranks_ ? ranks_->size() : 1; }
  bool are_several() const { return size() > 1; }
  // Files, logs and progress are rank 0's.
  bool writes() const { return !ranks_ || ranks_->rank() == 0; }
  void meet() const;
  // TypeError, the same on all ranks, naming the first rank that claims something else than rank 0.
  void agree(const std::vector<Claim>& claims) const;
  // The texts of all ranks, one behind the other.
  std::string joined(const std::string& own) const;
  // Whether it is true on any rank.
  bool any(bool is_true) const;
  // The least and the most of what the ranks have.
  std::pair<std::int64_t, std::int64_t> range(std::int64_t own) const;
  // One rank of each machine first, the others when it is done: they find what it has compiled.
  void one_first(const std::function<void()>& body) const;
  // Of so many batches this rank's, which are neighbours.
  distributed::Range own_batches(std::int64_t batches) const;
  // CPUs of this process by the ranks that share them.
  int threads() const;

 private:
  bool is_first_of_host() const;

  std::shared_ptr<distributed::Communicator> ranks_;
};

// The config with the number of shards that the run has: the config's own, that of the run in the
// folder, or one for each rank. TypeError where that is fewer than there are ranks.
RunConfig with_shards(RunConfig config, const RunConfig* recorded, const RunRanks& ranks);
// What the ranks compute, and with what.
std::vector<Claim> claims_of(const RunConfig& config, const std::string& data);
// The class of processors that all ranks can compute for with the same bits, "" where they are
// alike. Where they are not it is a warning, and if `strict` a TypeError.
std::string common_target(const RunRanks& ranks, std::int64_t vector_bytes, bool strict);
// TypeError naming two ranks that would compute on the same GPU.
void check_devices(const RunConfig& config, const RunRanks& ranks);

}  // namespace pantala::run
