// Ranks that are threads of one process: messages are copied into queues. What a rank does, and
// what it must not, is the same as on many machines, so that tests of training need no MPI.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "pantala/distributed.h"

namespace pantala::distributed {

namespace {

// What the ranks share.
class Hub {
 public:
  explicit Hub(int size) : size_(size) {}
  int size() const { return size_; }

  void put(int from, int to, Channel channel, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    queues_[{from, to, channel}].emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }

  void take(int from, int to, Channel channel, std::span<std::byte> into) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to, channel}];
    changed_.wait(lock, [&] { return !queue.empty() || failure_; });
    if (failure_) throw OtherRankError(failure_->why, failure_->rank, failure_->code, false);
    if (queue.front().size() != into.size())
      throw InternalError("a message between ranks is not as long as the other rank expects");
    std::ranges::copy(queue.front(), into.begin());
    queue.pop_front();
  }

  // The first one that fails is the one that tells.
  bool fail(int rank, std::string_view why, int code) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = {rank, code, std::string(why)};
    changed_.notify_all();
    return failure_->rank == rank;
  }

 private:
  struct Failure {
    int rank, code;
    std::string why;
  };

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::tuple<int, int, Channel>, std::deque<std::vector<std::byte>>> queues_;
  std::optional<Failure> failure_;
};

class ThreadRank : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }
  const std::string& host(int) const override {
    static const std::string name = "this process";
    return name;
  }
  void exchange(Channel channel, std::span<const Send> sends,
                std::span<const Receive> receives) override {
    for (const Send& send : sends) hub_->put(rank_, send.to, channel, send.bytes);
    for (const Receive& receive : receives) hub_->take(receive.from, rank_, channel, receive.bytes);
  }
  bool fail(std::string_view why, int code) noexcept override {
    return hub_->fail(rank_, why, code);
  }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> ranks_in_process(int size) {
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_shared<ThreadRank>(hub, rank));
  return ranks;
}

std::shared_ptr<Communicator> single_rank() { return ranks_in_process(1)[0]; }

}  // namespace pantala::distributed
