// Trainer: runs a session over a loader, epoch after epoch, with rate schedules, validation,
// callbacks, early stopping and checkpoints. It decides nothing about the graph: optimizer,
// clipping, averages of the weights and accumulation are compiled into the session.
//
// Two ways to make one:
//  - Trainer(session, config): with a session that exists already. Every batch has the size that it
//    was compiled for, and validation needs the other way.
//  - Trainer(model, batch_size, config): with a function that makes the model's graph for any batch
//    size. The trainer compiles the step, a second step where a short last batch is kept, and
//    evaluation.
//
//   auto model = [](std::int64_t batch, Phase) { return zoo::mlp({.batch = batch}); };
//   Trainer trainer(model, 64, {.optimizer = optim::adam(1e-3)});
//   auto train = data::make_loader(sets.train), test = data::make_loader(sets.test);
//   FitResult result = trainer.fit(*train, {.epochs = 5, .validation = test.get(),
//                                           .checkpoints = {.folder = "checkpoints"}});
//
// Every number of a run is a function of the session's seed, the loader and the options: the same
// run gives the same bits with any number of threads, and also when it is interrupted and resumed
// from a checkpoint, in the middle of an epoch or of a window of micro-batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pantala/accumulation.h"
#include "pantala/data.h"
#include "pantala/distributed.h"
#include "pantala/metrics.h"
#include "pantala/optim.h"
#include "pantala/rate_schedule.h"
#include "pantala/session.h"

namespace pantala {

// --- what a run tells
struct StepMetrics {
  std::int64_t epoch = 0, step = 0;  // of optimizer steps, from 0 in each epoch
  // Before the step's update; of several micro-batches the mean over their labels.
  double loss = 0;
  friend bool operator==(const StepMetrics&, const StepMetrics&) = default;
};
struct EpochStats {
  std::int64_t epoch = 0;
  // Over the labels that count: integer ones except those that the loss ignores, or else items.
  // Without any batch 0; NaN if there were batches and every step was left out (NonFinite::skip).
  double avg_loss = 0;
  std::int64_t steps = 0;  // optimizer updates
  friend bool operator==(const EpochStats&, const EpochStats&) = default;
};
struct Evaluation {
  std::int64_t items = 0;
  double loss = 0;  // as EpochStats::avg_loss; NaN if all labels are ignored
  // By name: accuracy, top5, precision, recall, f1 (integer labels; negative ones are ignored), or
  // mae, rmse, r2 (others); of language models (TrainConfig::measured) bits_per_byte or
  // bits_per_token, perplexity and accuracy. Where TrainConfig::measured does not say what it is,
  // perplexity too if an item has a row of integer labels. None if the graph has no output
  // `prediction_output`.
  std::vector<std::pair<std::string, double>> values;
  std::optional<metrics::ConfusionMatrix> confusion;
  // "loss" too; TypeError with the nearest name.
  double value(std::string_view name) const;
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};
struct TrainHistory {
  std::vector<EpochStats> epochs;
  std::vector<std::optional<Evaluation>> evaluations;  // of each epoch, where there was one
  std::optional<double> final_loss() const;  // the last epoch's average; none without epochs
  friend bool operator==(const TrainHistory&, const TrainHistory&) = default;
};

// The loss or a gradient is not finite. Weights, moments, counters and the trainer's state are
// those before the batch, which Trainer::failed_batch() keeps; it can be tried again.
class DivergenceError : public Error {
 public:
  using Error::Error;
};

// --- what a run is told
struct EarlyStopping {
  std::string metric = "loss";  // of the validation
  bool larger_is_better = false;
  std::int64_t patience = 5;  // epochs without improvement that are allowed; one more stops
  double min_delta = 0;       // an improvement is larger than this; NaN is none
  // At the end of the run parameters, running statistics and averages are those of the best epoch;
  // moments and counters stay.
  bool restore_best = true;
};
struct TrainConfig {
  // Of the kind that the session was built with; its scalars are set before the first step.
  // TypeError for another kind.
  optim::Optimizer optimizer = optim::sgd(0.01);
  std::int64_t log_interval = 100;  // log lines of steps; 0: none
  // Of the model's graph; where the model hands back its tensors, their names are put here.
  std::string data_input = "x", label_input = "labels";
  std::string loss_output = "loss", prediction_output = "logits";
  // Of a prediction with more than two axes, for metrics: 1 as the losses have it, [batch, classes,
  // ...], or -1 as language models have it, [batch, sequence, classes].
  int class_axis = 1;
  // What evaluation measures; none: classes or numbers, as the labels are. A language model is
  // known by this alone.
  std::optional<metrics::Kind> measured = {};
  // Of the optimizer's rate, in optimizer steps since the beginning: sets the session's rate before
  // each step. The constant rate schedule without warm-up sets nothing, so that a rate which a
  // callback or the user sets in the session stays.
  RateSchedule rate_schedule = {};
  // Lowers the rate when `plateau_metric` of fit()'s validation has stopped improving. The rate
  // schedule must be constant then; its warm-up counts.
  std::optional<PlateauOptions> plateau = {};
  std::string plateau_metric = "loss";
  // What becomes of a step whose numbers are not finite, as far as the session's guard looks:
  //  - error: DivergenceError.
  //  - skip: it is left out and counted (of a window, the micro-batch is left out).
  //  - propagate: nothing is looked at. The session must have been compiled with
  //    NonFiniteGuard::none, and for the other two with one of the others.
  NonFinite non_finite = NonFinite::error;
  // Validate and predict with the averages of the weights (`ema.<parameter>`), where there are
  // some. The weights have their own bits again afterwards.
  bool evaluate_average = true;
  // A folder for compiled plans, with a file for each; "": none.
  std::filesystem::path plan_cache = {};
  // How batches are shared out over ranks. Every rank makes the same trainer, with the model as a
  // function, calls it in the same order, and gives it the same batches, or of each the part that
  // is its own (LoaderOptions::first_shard). Only rank 0 writes files.
  distributed::Options distributed = {};
};

enum class Phase : std::uint8_t { training, evaluation };

// What a trainer takes of a model: its graph, and which of its inputs and outputs are which. A
// graph alone has the inputs and outputs that the config names.
struct TrainableGraph {
  Graph graph;
  Tensor input, labels;     // inputs of the graph
  Tensor loss, prediction;  // outputs of the graph; the second one may be missing

  TrainableGraph(Graph plain) : graph(std::move(plain)) {}
  TrainableGraph(Graph whole, Tensor input_of, Tensor labels_of, Tensor loss_of,
                 Tensor prediction_of)
      : graph(std::move(whole)),
        input(std::move(input_of)),
        labels(std::move(labels_of)),
        loss(std::move(loss_of)),
        prediction(std::move(prediction_of)) {}
  // zoo::Model, and whatever has the same members.
  template <class Model>
    requires requires(Model model) {
      model.graph, model.input, model.labels, model.loss, model.logits, model.prediction;
    }
  TrainableGraph(Model model)
      : TrainableGraph(std::move(model.graph), model.input, model.labels, model.loss,
                       model.logits.valid() ? model.logits : model.prediction) {}

  bool has_tensors() const { return loss.valid(); }
};
// The model for a batch size. All sizes and both phases have the same parameters. Evaluation is
// without dropout and with running statistics; updates of its graph are left out.
using ModelFactory = std::function<TrainableGraph(std::int64_t batch, Phase phase)>;

class Trainer;

// What a trainer is about, for progress lines. A plan that a batch needs and nobody has compiled
// yet is compiled then; what a loader's batch_sizes() names is compiled by a thread of its own from
// the beginning of the run on, and usually there in time.
struct Activity {
  enum class Kind : std::uint8_t { training, compiling, validating };
  Kind kind = Kind::training;
  std::int64_t batch = 0;                    // of a validation, finished
  std::optional<std::int64_t> batches = {};  // of a validation, if known
  friend bool operator==(const Activity&, const Activity&) = default;
};

// Hooks that do nothing. They may read and change parameters, states and scalars of the session: a
// rate that is set in on_gradients acts on the update at hand, one that is set in on_step on the
// next one, unless a rate schedule sets it before. What they throw leaves the call that ran them;
// the trainer's state is whole then, and includes the step or epoch that was told.
class MetricCallback {
 public:
  virtual ~MetricCallback() = default;
  // At the beginning of train(), train_epoch() and fit(); the reference is good until that returns.
  virtual void on_start(Trainer& trainer) { static_cast<void>(trainer); }
  // After the backward pass and before the update, with gradients that can be read and set
  // (Session::gradient, set_gradient). Only of sessions compiled with `split_update` or
  // accumulation. Once per update, if looks_at() is true of it.
  virtual void on_gradients(Session& session) { static_cast<void>(session); }
  // Whether on_gradients reads or sets gradients. Where each rank updates some parameters alone
  // (distributed::Options::shard_optimizer) it has the gradients of others only if this is true of
  // a callback of any rank; asked when train(), train_epoch() or fit() begins, or before the first
  // step.
  virtual bool looks_at_gradients() const { return true; }
  virtual void on_step(const StepMetrics& metrics) { static_cast<void>(metrics); }
  // Whether on_step of the step with this number (optimizer steps, itself included) looks at or
  // changes more than its metrics and the trainer's state, or on_gradients anything. A step that
  // nobody looks at may be told late, when the session has gone on, on a device that computes by
  // itself. Asked before it begins, on such devices alone.
  virtual bool looks_at(std::int64_t global_step) {
    static_cast<void>(global_step);
    return true;
  }
  // After the last on_step of the epoch and its validation (Trainer::last_evaluation), before its
  // checkpoint.
  virtual void on_epoch(const EpochStats& stats) { static_cast<void>(stats); }
  // Before something begins that may take a while, after every batch of a validation, and when
  // training goes on.
  virtual void on_activity(const Activity& activity) { static_cast<void>(activity); }
};
// All step losses, in order.
class LossHistory : public MetricCallback {
 public:
  void on_step(const StepMetrics& metrics) override { losses.push_back(metrics.loss); }
  bool looks_at(std::int64_t) override { return false; }
  bool looks_at_gradients() const override { return false; }
  std::vector<double> losses;
};

// Where a run is, in numbers that a checkpoint keeps. With the session's own state and the loader's
// order this is everything: a trainer that is given it goes on with the same bits. Place and
// history are those of fit(); train() and train_epoch() leave them as they were.
struct TrainerState {
  std::int64_t epoch = 0;         // that is running, or comes next
  std::int64_t batches = 0;       // taken from the loader in this epoch
  std::int64_t epoch_steps = 0;   // optimizer steps in this epoch
  std::int64_t global_steps = 0;  // since the beginning
  std::int64_t skipped = 0;       // steps and micro-batches that were not finite
  double loss_sum = 0;            // of this epoch's steps: loss times labels
  std::int64_t labels = 0;        // of this epoch's steps: those that count
  double window_loss = 0;  // loss times labels of the micro-batches that wait for their update
  std::int64_t window_labels = 0;
  std::int64_t window_batches = 0;  // of them, those that came from the loader
  TrainHistory history;
  std::optional<Plateau::State> plateau;
  std::optional<double> best;              // the early-stopping metric
  std::optional<std::int64_t> best_epoch;  // that it is of
  std::int64_t bad_epochs = 0;
  bool stopped_early = false;
  friend bool operator==(const TrainerState&, const TrainerState&) = default;
};

// What to do between two batches.
enum class Request : std::uint8_t {
  none,
  save,           // a checkpoint, then go on
  save_and_stop,  // a checkpoint, then return
};
struct CheckpointOptions {
  // Checkpoints are folders in it, `step-000000123` by the number of optimizer steps; "": none are
  // written.
  std::filesystem::path folder = {};
  std::int64_t every_steps = 0;   // 0: not by steps
  std::int64_t every_epochs = 1;  // 0: not by epochs; the end of the run is saved in any case
  std::int64_t keep_last = 3;     // and the best one, if there is validation; 0: all
  std::string metric = "loss";    // that says which is the best
  bool larger_is_better = false;
  std::function<std::string()> extra = {};  // what else a checkpoint is to keep
};
struct FitOptions {
  std::int64_t epochs = 1;     // in all: a resumed run does what is left
  std::int64_t max_steps = 0;  // optimizer steps in all; 0: no limit
  data::Loader* validation = nullptr;
  std::optional<EarlyStopping> early_stopping = {};
  CheckpointOptions checkpoints = {};
  std::function<Request()> poll = {};  // asked after every batch, and after every epoch
};
enum class FitEnd : std::uint8_t { finished, stopped_early, interrupted };
struct FitResult {
  FitEnd end = FitEnd::finished;
  TrainHistory history;
  // Early stopping has brought the weights of this epoch back; none: they are those of the end.
  std::optional<std::int64_t> restored_epoch = {};
};

// How the running epoch goes, for progress lines.
struct Progress {
  std::int64_t epoch = 0, epochs = 0;
  std::int64_t batch = 0;               // of this epoch, finished
  std::optional<std::int64_t> batches;  // a pass
  std::int64_t global_steps = 0;
  std::int64_t items = 0;   // trained since the run (or its continuation) began
  double seconds = 0;       // of training alone, since then: neither compiling nor validating
  double wait_seconds = 0;  // of them, waiting for data
  // Of them, waiting for gradients of other ranks when this rank's were made; none on one rank.
  std::optional<double> exposed_seconds = {};
  double learning_rate = 0;
  std::optional<double> gradient_norm;  // if the session gives one
  double loss = 0;                      // of the last step
};

class Trainer {
 public:
  // TypeError if the optimizer is of another kind than the session's, or an input is unknown.
  explicit Trainer(Session session, TrainConfig config = {});
  // Compiles with the config's optimizer. `options` says the rest (clip, averages, accumulation,
  // device, threads); its guard follows the config's `non_finite`: watched for error, gradients for
  // skip, none for propagate. Other batch sizes are compiled with the same options before they
  // occur or when they first do; the model's function is called by the thread that trains alone.
  Trainer(ModelFactory model, std::int64_t batch_size, TrainConfig config = {},
          CompileOptions options = {}, const SessionOptions& session = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // n epochs, numbered from 0; parameters, moments and the count of optimizer steps carry on from
  // whatever was trained before.
  TrainHistory train(data::Loader& loader, std::int64_t epochs);
  // One pass. Only the order of the data depends on the number of the epoch.
  EpochStats train_epoch(data::Loader& loader, std::int64_t epoch);
  // Everything in one call: continues from state(), validates after every epoch, saves, stops.
  // Where CompileOptions::cancelled calls off the compilation of a further plan, it saves and stops
  // as if it were asked to between two batches. After DivergenceError or an error of the loader it
  // can be called again and continues with the batch that failed. Where `max_steps` ends the run
  // within an epoch, that part is validated and told as an epoch, and is the last one of the
  // result's history; state() stays in the epoch, so that a run with more steps continues there.
  //
  // TypeError for options that make no sense together, before anything is trained, and where a
  // resumed epoch's loader has another fingerprint than the one that began it.
  FitResult fit(data::Loader& loader, const FitOptions& options = {});

  // One batch by hand; with accumulation, one micro-batch. None if no update came out of it. Counts
  // as a step of state().epoch, but not as one of the loader's batches.
  std::optional<StepMetrics> step(const data::Batch& batch);
  // The update from an unfinished window; none if nothing waits.
  std::optional<StepMetrics> finish_window();
  Evaluation evaluate(data::Loader& loader);
  // On several ranks, each with some batches that are neighbours, or none, in the order of the
  // ranks. The result is that of one rank with all of them, to the bit.
  Evaluation evaluate(data::Loader& own, distributed::Communicator& ranks);
  // The model's predictions for any number of items, [items, ...].
  data::Array predict(const data::Array& data);

  // Kept as long as the trainer is; callbacks are called in the order in which they were added.
  void add_callback(std::shared_ptr<MetricCallback> callback);

  Session& session();
  const Session& session() const;
  Session into_session() &&;
  const TrainConfig& config() const;
  const TrainerState& state() const;
  Progress progress() const;
  const std::optional<Evaluation>& last_evaluation() const;
  // The batch that the last DivergenceError was about; null if there was none.
  const data::Batch* failed_batch() const;
  // What evaluate() and predict() run on: the model with the averages of its weights, where there
  // are some and the config asks for them.
  void save_model(const std::filesystem::path& path);

  // --- checkpoints

  // A folder with model.safetensors, optimizer.safetensors, best.safetensors (the weights that
  // early stopping would restore, if any) and state.json, which holds the state, `extra`, a summary
  // of the config, and the SHA-256 of all files, itself included. It is written under a temporary
  // name, synced and renamed: a crash leaves the old one, the new one, or both. IoError if the disk
  // is too full, before anything is written.
  void save_checkpoint(const std::filesystem::path& folder, const std::string& extra = "") const;
  // ParseError for a damaged folder, TypeError for one of another model; then nothing has changed.
  // Hyper-parameters of the optimizer are those that were saved, unless the config's optimizer is
  // another one than the checkpoint's: then they are the config's. The next step warns of all that
  // has changed in the config. Returns `extra`.
  std::string load_checkpoint(const std::filesystem::path& folder);
  // Loads the newest checkpoint in the folder that is whole; damaged ones are skipped with a
  // warning each. None if there is no checkpoint at all, IoError if all are damaged.
  struct Resumed {
    std::filesystem::path checkpoint;
    std::string extra;
  };
  std::optional<Resumed> resume(const std::filesystem::path& checkpoints);
  // Parameters, running statistics and averages become those that early stopping has kept of the
  // best epoch, as fit() leaves them at its end. None, and nothing has changed, if it kept none.
  std::optional<std::int64_t> restore_best();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pantala
