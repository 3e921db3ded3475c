#include "distributed/mpi.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "distributed/collectives.h"
#include "distributed/mpi_library.h"
#include "distributed/neighbours.h"
#include "distributed/watch.h"

namespace pantala::distributed {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirstTag = 2;                            // of the channels; below are the watch's
constexpr std::size_t kLargest = std::size_t{1} << 30;  // of one message of MPI
constexpr std::chrono::microseconds kSpin{20}, kYield{2000}, kSleep{50};

// Waits a little longer the longer it has waited: first for what is about to come, then for others
// that may want this CPU. To yield it is no help to a thread that computes on it, which would get
// half of it.
class Patience {
 public:
  void wait(bool computes) const {
    const auto waited = Clock::now() - begin_;
    if (waited < kSpin) return;
    if (waited < kYield && !computes)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kSleep);
  }

 private:
  Clock::time_point begin_ = Clock::now();
};

class MpiRanks;
// The one that is open, as MPI is one of a process, for a process that ends meanwhile.
MpiRanks* open_ranks = nullptr;

class MpiRanks : public MpiCommunicator {
 public:
  explicit MpiRanks(const MpiOptions& options)
      : mpi_(options.folders, options.plugins), delay_(options.delay), hosts_(mpi_.size()) {
    hosts_ = gather_texts(*this, mpi_.host());
    watch_.emplace(mpi_, hosts_, Neighbours(*this), WatchOptions{options.timeout, options.tell});
    open_ranks = this;
    std::atexit([] {
      if (open_ranks) open_ranks->leave();
    });
  }
  ~MpiRanks() override { close(); }

  int rank() const override { return mpi_.rank(); }
  int size() const override { return mpi_.size(); }
  const std::string& host(int rank) const override {
    return hosts_[static_cast<std::size_t>(rank)];
  }
  const std::string& library() const override { return mpi_.name(); }

  void exchange(Channel channel, std::span<const Send> sends,
                std::span<const Receive> receives) override {
    if (watch_) watch_->check();
    const int tag = kFirstTag + static_cast<int>(channel);
    std::vector<MpiLibrary::Request> requests;
    for (const Receive& receive : receives)
      in_parts(receive.bytes, [&](std::span<std::byte> part) {
        requests.push_back(mpi_.receive(receive.from, tag, part));
      });
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    for (const Send& send : sends)
      in_parts(send.bytes, [&](std::span<const std::byte> part) {
        requests.push_back(mpi_.send(send.to, tag, part));
      });
    const Patience patience;
    while (true) {
      std::erase_if(requests, [&](MpiLibrary::Request request) { return mpi_.is_done(request); });
      if (requests.empty()) return;
      if (watch_) watch_->check();
      patience.wait(!is_waiting_);
    }
  }

  void set_waiting(bool is_waiting) override { is_waiting_ = is_waiting; }
  bool fail(std::string_view why, int code) noexcept override { return watch_->fail(why, code); }

  // After a failure MPI may wait for ever for those that are lost.
  void close() override {
    if (!watch_) return;
    open_ranks = nullptr;
    const bool all_are_there = watch_->close();
    watch_.reset();
    if (all_are_there) mpi_.stop();
  }

  // Somebody has called exit(), a callback for instance. MPI stays as it is: the launcher sees that
  // this process has not ended it, and ends what is left of the job.
  void leave() {
    watch_->leave(fmt::format("rank {} on {} has called exit() in the middle of the run", rank(),
                              host(rank())),
                  1);
  }

 private:
  template <class Bytes, class Visit>
  static void in_parts(Bytes bytes, const Visit& visit) {
    do {
      const std::size_t count = std::min(bytes.size(), kLargest);
      visit(bytes.first(count));
      bytes = bytes.subspan(count);
    } while (!bytes.empty());
  }

  MpiLibrary mpi_;
  const std::chrono::microseconds delay_;
  std::vector<std::string> hosts_;
  std::atomic<bool> is_waiting_ = true;
  std::optional<Watch> watch_;
};

}  // namespace

std::shared_ptr<MpiCommunicator> open_mpi(const MpiOptions& options) {
  return std::make_shared<MpiRanks>(options);
}

}  // namespace pantala::distributed
