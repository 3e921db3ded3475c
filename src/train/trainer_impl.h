// What stands behind Trainer: its state, and the parts that trainer.cpp (single steps), fit.cpp
// (epochs and runs), evaluate.cpp and checkpoint.cpp implement.
//
// The order within a batch: inputs, rate, step, state, callbacks. Whatever throws before `state`
// leaves everything as it was; a callback sees, and may save, a state that includes its step.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pantala/trainer.h"
#include "train/own_updates.h"
#include "train/plans.h"
#include "train/rewind.h"
#include "train/sharded_step.h"
#include "train/snapshot.h"

namespace pantala {

class Trainer::Impl {
 public:
  Impl(Session session, TrainConfig config);
  Impl(ModelFactory model, std::int64_t batch_size, TrainConfig config, CompileOptions options,
       const SessionOptions& session);

  // --- trainer.cpp
  // A batch that comes from a loader may be kept: then it is not the caller's any more.
  std::optional<StepMetrics> step(const data::Batch& batch, data::Batch* from_loader = nullptr);
  std::optional<StepMetrics> finish_window();
  Progress progress() const;

  // --- fit.cpp
  TrainHistory train(Trainer& self, data::Loader& loader, std::int64_t epochs);
  EpochStats train_epoch(Trainer& self, data::Loader& loader, std::int64_t epoch);
  FitResult fit(Trainer& self, data::Loader& loader, const FitOptions& options);

  // --- evaluate.cpp
  // Of the loader's items; over `ranks` of those of all of them.
  Evaluation evaluate(data::Loader& loader, distributed::Communicator* ranks = nullptr);
  data::Array predict(const data::Array& data);
  void save_model(const std::filesystem::path& path);

  // --- checkpoint.cpp
  void save_checkpoint(const std::filesystem::path& folder, const std::string& extra) const;
  std::string load_checkpoint(const std::filesystem::path& folder);
  std::optional<Resumed> resume(const std::filesystem::path& checkpoints);
  std::optional<std::int64_t> restore_best();

  TrainConfig config;
  train::Plans plans;
  TrainerState state;
  std::vector<std::shared_ptr<MetricCallback>> callbacks;
  std::optional<Evaluation> last_evaluation;
  std::optional<data::Batch> failed_batch;

 private:
  using Clock = std::chrono::steady_clock;
  enum class PassEnd : std::uint8_t { end_of_data, step_limit, stop };

  Session& session() { return plans.session(); }
  const Session& session() const { return plans.session(); }

  // trainer.cpp
  const SessionPlan& begin_step(const data::Batch& batch);
  std::optional<StepMetrics> end_step(const data::Batch& batch, data::Batch* from_loader,
                                      double loss);
  void check_session() const;
  std::optional<double> scheduled_rate() const;
  bool window_is_complete(std::int64_t more = 0);
  std::optional<StepMetrics> apply_window(const data::Batch* last);
  std::optional<StepMetrics> end_window(const data::Batch* last);
  StepMetrics finish_step(double loss);
  void open_way_back();
  void bring_back(double loss);
  void check_values() const;
  void refuse_step(const data::Batch* batch, double loss, bool is_window);
  void tell(const Activity& activity);
  void bring_plan(const train::Plans::Use& use);

  // fit.cpp
  void start(Trainer& self, std::int64_t epochs);
  void prepare_plans(const data::Loader& loader, const data::Loader* validation);
  void begin_epoch(data::Loader& loader);
  PassEnd pass(data::Loader& loader, const FitOptions& options);
  PassEnd take_batches(data::Loader& loader, const FitOptions& options);
  EpochStats one_epoch(data::Loader& loader, std::int64_t epoch);
  void clear_epoch();
  EpochStats epoch_stats() const;
  static void log_epoch(const EpochStats& stats, const std::optional<Evaluation>& evaluation);
  void check_fit(const FitOptions& options) const;
  void check_loader(const data::Loader& loader);
  bool finish_epoch(const FitOptions& options);
  std::optional<Evaluation> validate(const FitOptions& options);
  void judge(const Evaluation& evaluation, const FitOptions& options);
  FitResult run_fit(data::Loader& loader, const FitOptions& options);
  FitResult end_fit(const FitOptions& options);

  // steps_ahead.cpp
  void take(data::Batch& batch, const FitOptions& options);
  bool may_go_ahead(const data::Batch& batch, const FitOptions& options);
  bool has_room_for_another();
  std::int64_t updates_begun() const;
  void begin(data::Batch& batch);
  void finish_first(const FitOptions& options);
  void finish_begun(const FitOptions& options);

  // sharded.cpp
  std::optional<StepMetrics> take_sharded(const data::Batch& batch, bool from_loader);
  std::optional<StepMetrics> run_sharded(bool from_loader);
  void refuse_window(const std::vector<data::Batch>& window, double loss);
  void tell_needs();
  bool is_first_rank() const { return !sharded_ || sharded_->ranks().rank() == 0; }
  // What somebody asks between two batches, on any rank.
  Request asked(const FitOptions& options);

  // evaluate.cpp
  bool uses_averages() const;

  // checkpoint.cpp
  void save(const CheckpointOptions& options);
  void tell_changes();
  void remove_old(const CheckpointOptions& options) const;

  // Micro-batches of an update: of the session's window, or of sharded steps.
  std::int64_t window_size() const;

  // Where batches are cut into shards.
  std::optional<train::ShardedStep> sharded_;
  std::optional<train::OwnUpdates> own_updates_;  // where optimizer states are shared out, too
  std::int64_t sharded_window_ = 1;
  bool norms_need_all_ = false;    // gradients of every parameter, on every rank
  std::vector<data::Batch> held_;  // micro-batches of an update that wait for the last one
  std::function<Request()> poll_;  // of fit()
  Request asked_ = Request::none;  // during the last step, by any rank

  // Where a step may spoil the session's values.
  std::optional<train::Rewind> rewind_;
  bool is_spoilt_ = false;  // and there was no way back

  std::optional<train::Snapshot> best_weights_;
  std::string loader_fingerprint_;
  // What the newest checkpoint in a folder holds.
  struct Place {
    std::filesystem::path folder;
    std::int64_t global_steps = -1, epoch = 0, batches = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  Place place(const std::filesystem::path& folder) const {
    return {folder.lexically_normal(), state.global_steps, state.epoch, state.batches};
  }
  Place saved_at_;
  // Between the config of the loaded checkpoint and this one; they matter if training goes on.
  std::vector<std::string> changes_;

  // For progress().
  std::int64_t epochs_ = 0;
  std::optional<std::int64_t> loader_batches_;
  std::int64_t run_items_ = 0;
  Clock::duration run_time_{}, wait_time_{};     // of finished steps
  Clock::duration exposed_before_{};             // of steps before the run
  std::optional<Clock::time_point> step_begin_;  // of the one that runs: callbacks are a part of it
  double last_loss_ = 0;
  const SessionPlan* last_plan_ = nullptr;
  std::int64_t last_items_ = 0;
  // Of steps of fit() that were started and not told.
  struct BegunStep {
    data::Batch batch;
    bool updates = true;  // a micro-batch that does not complete its window does not
  };
  std::deque<BegunStep> begun_;
  bool has_updated_ = false;  // since the state was made or loaded: there is a gradient norm
};

}  // namespace pantala
