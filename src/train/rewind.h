// Rewind: the way back from a step that has stored numbers which are not finite
// (NonFiniteGuard::watched). It keeps what the session held some steps ago and the batches since
// then; the session is brought back to what it held before the bad step by running these steps
// again, which gives the same bits.
//
// A new copy is made when the batches take too much memory, when going back would take too long,
// and when somebody else has changed the session's values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/number.h"
#include "pantala/data.h"
#include "runtime/runs_ahead.h"
#include "runtime/session_copy.h"
#include "train/plans.h"

namespace pantala::train {

class Rewind {
 public:
  // Copies that are too large for memory are kept in `folder`.
  explicit Rewind(std::filesystem::path folder) : copy_(std::move(folder)) {}

  // Whether before_step() would make a new copy, which must not be done while steps are under way.
  bool is_due(Session& session) const;
  // Before every step, when all is as the step will find it.
  void before_step(Session& session);
  // When it was started: the host's numbers are what it leaves if it goes well.
  void started(Session& session);
  // When it is known that it went well: in the order in which steps were begun.
  void add(data::Batch&& batch);
  // A batch that stays somebody else's is copied. After the first one nothing is allocated.
  void add(const data::Batch& batch);
  // The session holds what it held before the first step that was begun and not added; those behind
  // it have changed nothing, and are forgotten.
  void go_back(Plans& plans);

 private:
  using Clock = std::chrono::steady_clock;
  // A step that can be run again.
  struct Step {
    data::Batch batch;
    // What the host's numbers were, if they were not those that the step before had left.
    std::vector<ir::Number> numbers;
    bool sets_numbers = false;
  };
  // The host's numbers around a step that was begun.
  struct Begun {
    std::vector<ir::Number> before, after;
  };

  void take(runtime::SessionData& session);
  Begun& begun(std::size_t k) { return begun_[(first_ + k) % begun_.size()]; }
  void begin(const data::Batch& batch, bool reserve);
  void finish(const data::Batch& batch);

  runtime::SessionCopy copy_;
  std::vector<Step> steps_;  // as many as there may be
  std::size_t used_ = 0;     // of them
  std::int64_t bytes_ = 0;   // of their batches
  std::uint64_t changes_ = 0;
  std::vector<ir::Number> numbers_;  // that the last step has left
  // Those that were begun and not added, a ring.
  std::array<Begun, runtime::RunsAhead::kMost + 1> begun_;
  std::size_t first_ = 0, count_ = 0;
  Clock::time_point taken_;
  Clock::duration cost_{};  // of the copy
};

}  // namespace pantala::train
