// Rewind: the way back from a step that has stored numbers which are not finite
// (NonFiniteGuard::watched). It keeps what the session held some steps ago and the batches since
// then; the session is brought back to what it held before the bad step by running these steps
// again, which gives the same bits.
//
// A new copy is made when the batches take too much memory, when going back would take too long,
// and when somebody else has changed the session's values.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/number.h"
#include "pantala/data.h"
#include "runtime/session_copy.h"
#include "train/plans.h"

namespace pantala::train {

class Rewind {
 public:
  // Copies that are too large for memory are kept in `folder`.
  explicit Rewind(std::filesystem::path folder) : copy_(std::move(folder)) {}

  // Before every step, when all is as the step will find it.
  void before_step(Session& session);
  // After a step that went well.
  void add(Session& session, data::Batch&& batch);
  // A batch that stays somebody else's is copied. After the first one nothing is allocated.
  void add(Session& session, const data::Batch& batch);
  // The session holds what it held before the step that was begun last.
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

  bool is_due(runtime::SessionData& session) const;
  void take(runtime::SessionData& session);
  void begin(const data::Batch& batch, bool reserve);
  void finish(runtime::SessionData& session, const data::Batch& batch);

  runtime::SessionCopy copy_;
  std::vector<Step> steps_;  // as many as there may be
  std::size_t used_ = 0;     // of them
  std::int64_t bytes_ = 0;   // of their batches
  std::uint64_t changes_ = 0;
  std::vector<ir::Number> numbers_;  // that the last step has left
  Step now_;                         // the one that was begun
  Clock::time_point taken_;
  Clock::duration cost_{};  // of the copy
};

}  // namespace pantala::train
