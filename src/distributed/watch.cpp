#include "distributed/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace pantala::distributed {

namespace {

using namespace std::chrono_literals;

constexpr int kTag = 1;
constexpr auto kRound = 20ms;        // of the watch
constexpr auto kUnderWay = 100ms;    // a message between ranks, at most
constexpr auto kAlive = 500ms;       // between two signs of life
constexpr auto kSlept = 300ms;       // much longer than a round takes on a busy machine
constexpr auto kWaking = 1000ms;     // after a sleep: others have spoken, or end this one
constexpr auto kTurn = 300ms;        // a rank waits for the lower ones to speak first
constexpr auto kTimeToEnd = 2500ms;  // by itself, after a failure

}  // namespace

Watch::Watch(MpiLibrary& mpi, std::vector<std::string> hosts, Neighbours neighbours,
             WatchOptions options)
    : mpi_(mpi),
      hosts_(std::move(hosts)),
      neighbours_(std::move(neighbours)),
      options_(std::move(options)),
      heard_(hosts_.size(), Clock::now()),
      said_bye_(hosts_.size(), false),
      thread_([this] { run(); }) {}

Watch::~Watch() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void Watch::check() const {
  if (!has_failed_) return;
  const std::lock_guard lock(mutex_);
  throw OtherRankError(failure_->why, failure_->rank, failure_->code, failure_->is_told_here);
}

void Watch::run() {
  Clock::time_point last = Clock::now();
  std::vector<int> ended;
  while (!ends_) {
    excuse(Clock::now() - last);
    last = Clock::now();
    try {
      listen();
      look_for_ended(ended);
      tell_alive();
      look_for_lost(last);
    } catch (const Error& error) { note({mpi_.rank(), 1, error.what(), true, Clock::now()}); }
    end_if_late();
    ended = neighbours_.wait_for_end(kRound);
  }
}

// Whoever has slept himself, with all of the machine or by a signal, has heard nobody meanwhile.
void Watch::excuse(Clock::duration since_last_round) {
  if (since_last_round < kSlept) return;
  const std::lock_guard lock(mutex_);
  for (Clock::time_point& heard : heard_) heard += since_last_round;
  awake_since_ = Clock::now();
}

void Watch::listen() {
  while (const std::optional<MpiLibrary::Found> found = mpi_.find(kTag)) {
    Message message;
    const MpiLibrary::Request request =
        mpi_.receive(found->from, kTag, std::as_writable_bytes(std::span(&message, 1)));
    while (!mpi_.is_done(request)) std::this_thread::yield();
    hear(found->from, message);
  }
  const std::lock_guard lock(mutex_);
  while (!sending_.empty() && mpi_.is_done(sending_.front().request)) sending_.pop_front();
}

void Watch::hear(int from, const Message& message) {
  {
    const std::lock_guard lock(mutex_);
    heard_[static_cast<std::size_t>(from)] = Clock::now();
    if (message.kind == Kind::bye) said_bye_[static_cast<std::size_t>(from)] = true;
    changed_.notify_all();
  }
  if (message.kind == Kind::failed || message.kind == Kind::lost)
    note({message.rank, message.code, message.why.data(), false, Clock::now()});
}

// The first failure counts; of ranks that fail at the same time the lowest, which is the one that
// tells people.
void Watch::note(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_ && failure_->rank <= failure.rank) return;
  if (failure_) failure.since = failure_->since;
  failure_ = std::move(failure);
  has_failed_ = true;
  changed_.notify_all();
}

void Watch::tell_alive() {
  if (Clock::now() - told_alive_ < kAlive) return;
  told_alive_ = Clock::now();
  if (is_first())
    send_to_all({});
  else
    send(0, {});
}

// `now` is when the round began: what was missed by a sleep within it is excused in the next one.
void Watch::look_for_lost(Clock::time_point now) {
  if (has_failed_) return;
  // If nobody hears rank 0 any more, one of the others speaks for all.
  const auto turn =
      is_first() ? 0ms : std::min<std::chrono::milliseconds>(kTurn * (mpi_.rank() - 1), 2s);
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (static_cast<int>(rank) == mpi_.rank() || (!is_first() && rank > 0)) continue;
    if (is_silent(rank, now - options_.timeout - turn))
      return lose(static_cast<int>(rank),
                  fmt::format("has not been heard of for {:.1f} s: it was killed or stopped, or no "
                              "message reaches it",
                              std::chrono::duration<double>(options_.timeout).count()));
  }
}

bool Watch::has_said_bye(std::size_t rank) const {
  const std::lock_guard lock(mutex_);
  return said_bye_[rank];
}

bool Watch::is_silent(std::size_t rank, Clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  return !said_bye_[rank] && heard_[rank] < since;
}

// A rank that ends in order has said so before, and one that ends with the run does so behind the
// message that ends it, which is on its way. Of its neighbours the first one speaks, unless it has
// slept itself: then it is this one that others have lost.
void Watch::look_for_ended(const std::vector<int>& ended) {
  if (ended.empty()) return;
  if (!ended_since_) ended_since_ = Clock::now();
  if (Clock::now() - *ended_since_ < kUnderWay) {
    std::this_thread::sleep_for(kRound);
    return;
  }
  if (Clock::now() - awake_since_ < kWaking) return;
  for (const int rank : ended) {
    if (has_failed_ || has_said_bye(static_cast<std::size_t>(rank))) continue;
    if (neighbours_.first_but(ended) == mpi_.rank())
      return lose(rank, fmt::format("(process {}) has ended without a word: it was killed, or has "
                                    "left the run",
                                    neighbours_.process_of(rank)));
  }
}

void Watch::lose(int rank, const std::string& what) {
  const std::string why = fmt::format(
      "rank {} on {} {}; the run ends, and the same command goes on from its last "
      "checkpoint",
      rank, hosts_[static_cast<std::size_t>(rank)], what);
  note({rank, 1, why, true, Clock::now()});
  if (options_.tell) options_.tell(why);
  Message message{.kind = Kind::lost, .rank = rank, .code = 1};
  why.copy(message.why.data(), message.why.size() - 1);
  send_to_all(message, rank);
}

void Watch::end_if_late() {
  if (!has_failed_) return;
  const std::unique_lock lock(mutex_);
  if (Clock::now() - failure_->since < kTimeToEnd) return;
  if (failure_->is_told_here) mpi_.abort(failure_->code);
  std::_Exit(failure_->code);
}

void Watch::send(int to, const Message& message) {
  const std::lock_guard lock(mutex_);
  Sending& sending = sending_.emplace_back(Sending{message, nullptr});
  sending.request = mpi_.send(to, kTag, std::as_bytes(std::span(&sending.message, 1)));
}

void Watch::send_to_all(const Message& message, int except) {
  for (int rank = 0; rank < mpi_.size(); ++rank)
    if (rank != mpi_.rank() && rank != except) send(rank, message);
}

bool Watch::fail(std::string_view why, int code) noexcept {
  try {
    Message message{.kind = Kind::failed, .rank = mpi_.rank(), .code = code};
    why.copy(message.why.data(), message.why.size() - 1);
    send_to_all(message);
    note({mpi_.rank(), code, std::string(why), true, Clock::now()});
    std::unique_lock lock(mutex_);
    if (!is_first()) changed_.wait_for(lock, kTurn, [&] { return failure_->rank < mpi_.rank(); });
    return failure_->is_told_here;
  } catch (const std::exception&) { return true; }
}

// By exit() in the middle of a run: the thread is not to see what the process then takes down.
void Watch::leave(const std::string& why, int code) noexcept {
  try {
    if (fail(why, code) && options_.tell) options_.tell(why);
    std::this_thread::sleep_for(kRound * 2);  // messages are on their way
    ends_ = true;
    thread_.join();
  } catch (const std::exception&) {}  // it ends in any case
}

bool Watch::close() {
  const auto all = [&] { return std::ranges::all_of(said_bye_, [](bool said) { return said; }); };
  const auto wait_for = [&](const auto& done) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      if (failure_ && Clock::now() - failure_->since > kTimeToEnd / 2) return false;
      changed_.wait_for(lock, kRound);
    }
    return true;
  };
  {
    const std::lock_guard lock(mutex_);
    said_bye_[static_cast<std::size_t>(mpi_.rank())] = true;
  }
  bool are_there = true;
  if (is_first()) {
    are_there = wait_for(all);
    send_to_all({.kind = Kind::bye});
  } else {
    send(0, {.kind = Kind::bye});
    are_there = wait_for([&] { return bool{said_bye_[0]}; });
  }
  ends_ = are_there;  // nobody is looked for any more
  return are_there && wait_for([&] {
           while (!sending_.empty() && mpi_.is_done(sending_.front().request)) sending_.pop_front();
           return sending_.empty();
         });
}

}  // namespace pantala::distributed
