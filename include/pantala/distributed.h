// Data-parallel training on several ranks: processes, on one machine or many, that train one model
// together. docs/cluster.md says how it is used and what it promises.
//
// A batch is cut into shards, a fixed number of them whatever the number of ranks; gradients are
// summed over the shards along one binary tree. So the bits of a run depend on the number of shards
// and not on that of the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/error.h"

namespace pantala::distributed {

// This rank ends because of another one. That one, or the first of those that are left, tells why.
class OtherRankError : public Error {
 public:
  OtherRankError(const std::string& what, int rank, int code, bool is_told_here)
      : Error(what), rank_(rank), code_(code), is_told_here_(is_told_here) {}
  int rank() const { return rank_; }
  // What the other rank gave to fail(); 1 of a rank that was lost.
  int code() const { return code_; }
  // Whether it is this rank that is to say so.
  bool is_told_here() const { return is_told_here_; }

 private:
  int rank_, code_;
  bool is_told_here_;
};

// Ranks have weights that are not those of the others.
class AstrayError : public Error {
 public:
  using Error::Error;
};

// Messages between two ranks on one channel arrive in the order in which they were sent; channels
// do not wait for one another, and different threads may use different ones at the same time.
enum class Channel : std::uint8_t { control, gradients };

struct Send {
  int to = 0;
  std::span<const std::byte> bytes;
};
// Exactly as many bytes as the other rank sends.
struct Receive {
  int from = 0;
  std::span<std::byte> bytes;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The machine that a rank runs on.
  virtual const std::string& host(int rank) const = 0;
  // Starts all of them and returns when they are done. OtherRankError if a rank of the run has
  // failed or was lost, whether it takes part or not.
  virtual void exchange(Channel channel, std::span<const Send> sends,
                        std::span<const Receive> receives) = 0;
  // Whether this rank has nothing to do but wait for messages, as at first, or computes meanwhile:
  // then it leaves its CPUs to that between two looks.
  virtual void set_waiting(bool is_waiting) { static_cast<void>(is_waiting); }
  // Tells all other ranks that this one ends, and why. Returns whether it is to tell people, too:
  // of several that fail at the same time only the lowest rank is.
  virtual bool fail(std::string_view why, int code) noexcept = 0;
};

// Ranks that are threads of this process, for tests; each is to be used by a thread of its own.
std::vector<std::shared_ptr<Communicator>> ranks_in_process(int size);
// A run on one rank.
std::shared_ptr<Communicator> single_rank();

// How a trainer shares its batches out.
struct Options {
  std::shared_ptr<Communicator> ranks = {};  // null: this process alone
  // That each batch is cut into; 0: one for each rank. The first ones of a batch that they do not
  // divide get an item more.
  std::int64_t shards = 0;
  // Optimizer states are kept by one rank each.
  bool shard_optimizer = false;
  // Gradients travel while the backward pass still runs, where the device lets them be seen (CPUs).
  bool overlap = true;
  // Steps between two comparisons of the weights of all ranks; 0: none.
  std::int64_t check_every = 100;

  bool is_used() const { return ranks != nullptr || shards > 1; }
};

}  // namespace pantala::distributed
