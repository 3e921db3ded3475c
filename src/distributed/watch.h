// Who is still there: a thread that tells the other ranks of a job that this one lives, and looks
// whether they do. Rank 0 hears all others and they hear it, so that a rank that was killed or
// stopped, or that no message reaches, ends the run on all others within the timeout and little
// more; and a rank that ends by itself says so. Of ranks on the same machine the kernel tells at
// once that they have ended, often before the launcher ends the others.
//
// A rank that knows of a failure has a short time to end by itself; then the watch ends it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "distributed/mpi_library.h"
#include "distributed/neighbours.h"
#include "pantala/distributed.h"

namespace pantala::distributed {

struct WatchOptions {
  std::chrono::milliseconds timeout{8000};
  std::function<void(const std::string&)> tell;
};

class Watch {
 public:
  // `hosts` are those of the ranks.
  Watch(MpiLibrary& mpi, std::vector<std::string> hosts, Neighbours neighbours,
        WatchOptions options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // OtherRankError if the run has failed.
  void check() const;
  bool has_failed() const { return has_failed_; }
  // Tells all other ranks; returns whether it is this one that is to tell people: of several ranks
  // that fail at the same time the lowest.
  bool fail(std::string_view why, int code) noexcept;
  // Returns when all ranks have come here; after a failure, when all that are left have or when
  // they have had the time. True: all are there.
  bool close();
  // This rank ends now, without the others: tells them, and people if it is to. Nothing is sent
  // afterwards.
  void leave(const std::string& why, int code) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind : std::int32_t { alive, failed, lost, bye };
  struct Message {
    Kind kind = Kind::alive;
    std::int32_t rank = 0, code = 0;
    std::array<char, 500> why{};
  };
  struct Failure {
    int rank, code;
    std::string why;
    bool is_told_here;
    Clock::time_point since;
  };
  struct Sending {
    Message message;
    MpiLibrary::Request request;
  };

  void run();
  void excuse(Clock::duration since_last_round);
  void listen();
  void hear(int from, const Message& message);
  void tell_alive();
  void look_for_lost(Clock::time_point now);
  bool is_silent(std::size_t rank, Clock::time_point since) const;
  bool has_said_bye(std::size_t rank) const;
  void look_for_ended(const std::vector<int>& ended);
  void lose(int rank, const std::string& what);
  void end_if_late();
  void send(int to, const Message& message);
  void send_to_all(const Message& message, int except = -1);
  void note(Failure failure);
  bool is_first() const { return mpi_.rank() == 0; }

  MpiLibrary& mpi_;
  const std::vector<std::string> hosts_;
  const Neighbours neighbours_;
  const WatchOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  std::atomic<bool> has_failed_ = false, ends_ = false;
  std::vector<Clock::time_point> heard_;
  std::vector<bool> said_bye_;
  std::deque<Sending> sending_;  // stays where it is while it is sent
  Clock::time_point told_alive_{}, awake_since_{};
  std::optional<Clock::time_point> ended_since_ = {};  // when the first neighbour had
  std::thread thread_;
};

}  // namespace pantala::distributed
