#include "tools/train/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <system_error>

#include "base/log.h"
#include "io/file.h"
#include "monitor/environment.h"
#include "monitor/run_monitor.h"
#include "monitor/run_plots.h"
#include "pantala/error.h"
#include "tools/train/diverged.h"
#include "tools/train/first_weights.h"
#include "tools/train/run_folder.h"
#include "tools/train/setup.h"
#include "tools/train/source.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;

// What the folder says about a run that is about to begin.
enum class Start : std::uint8_t { anew, continued };

void check_folder(const RunFolder& folder, const RunConfig& config, const RunOptions& options) {
  const RunFolder::Content content = folder.content();
  if (content == RunFolder::Content::foreign)
    throw TypeError(
        fmt::format("{} is there already and is not the folder of a run; choose another with --out",
                    folder.root().string()));
  if (options.resume && options.restart)
    throw TypeError("--resume and --restart are opposites: give one of them");
  if (options.resume && (content == RunFolder::Content::nothing || !folder.has_checkpoint()))
    throw TypeError(fmt::format("--resume: there is no checkpoint in {}", folder.root().string()));
  if (content == RunFolder::Content::nothing || options.restart) return;
  const std::vector<std::string> different = differences(folder.config(), config);
  if (!different.empty())
    throw TypeError(fmt::format(
        "{} holds a run with another config:\n  {}\nchoose another folder with --out, or --restart "
        "to remove that run",
        folder.root().string(), fmt::join(different, "\n  ")));
}

// The result of a run that has nothing left to do.
std::optional<RunOutcome> finished_before(const RunFolder& folder, const RunConfig& config,
                                          const RunOptions& options) {
  std::error_code error;
  if (options.restart || !fs::exists(folder.result_file(), error)) return {};
  RunOutcome outcome{.end = RunOutcome::End::was_finished,
                     .result = io::read_json<OrderedJson>(folder.result_file()),
                     .result_source = folder.result_file().string()};
  if (!is_finished(outcome.result, config, outcome.result_source)) return {};
  outcome.steps = outcome.result.at("steps");
  return outcome;
}

std::int64_t parameter_count(const Session& session) {
  std::int64_t count = 0;
  for (const std::string& name : session.parameters())
    count += session.parameter(name).shape().numel();
  return count;
}

class TrainingRun {
 public:
  TrainingRun(const RunConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        folder_(config.output.folder),
        data_(open_run_data(config)),
        training_(open_loader(data_.train, config, data_.profile, Use::training)),
        validation_(data_.validation
                        ? open_loader(*data_.validation, config, data_.profile, Use::evaluation)
                        : nullptr),
        length_(run_length(config, *training_)),
        shape_(model_shape(config, data_.profile)) {}

  RunOutcome run() {
    check_validation_is_there();
    const FolderLock lock(folder_);
    check_folder(folder_, config_, options_);  // another run may have begun and ended meanwhile
    folder_.remove_leftovers();
    Trainer trainer = make_trainer(config_, shape_, length_.total_steps);
    open_folder(trainer);
    const FitResult fit = this->fit(trainer);
    monitor_->line().finish();
    if (fit.end == FitEnd::interrupted)
      return {.end = RunOutcome::End::interrupted,
              .result = {},
              .result_source = {},
              .steps = trainer.state().global_steps};
    return finish(trainer, fit);
  }

 private:
  void check_validation_is_there() const {
    if (data_.validation) return;
    if (config_.early_stopping.patience > 0)
      throw TypeError("early_stopping.patience needs a validation, but data.validation is none");
    if (config_.schedule.name == "plateau")
      throw TypeError("the schedule plateau needs a validation, but data.validation is none");
  }

  // Brings folder, trainer and log files to the place where the run begins or goes on.
  void open_folder(Trainer& trainer) {
    const bool run_is_there = folder_.content() == RunFolder::Content::run && !options_.restart;
    if (run_is_there && folder_.has_checkpoint()) {
      check_same_data();
      if (const std::optional<Trainer::Resumed> resumed = trainer.resume(folder_.checkpoints())) {
        begin(Start::continued);
        open_monitor(trainer, read_notes(resumed->extra));
        monitor_->line().message(fmt::format("continues {} from {}", folder_.root().string(),
                                             place_text(trainer.state())));
        return;
      }
    }
    load_first_weights(config_, shape_, trainer.session());
    if (folder_.content() == RunFolder::Content::run) folder_.clear();
    begin(Start::anew);
    open_monitor(trainer, "");
    monitor_->line().message(fmt::format("begins in {}", folder_.root().string()));
  }

  void open_monitor(Trainer& trainer, std::string position) {
    monitor::RunMonitorOptions options;
    options.progress =
        monitor::progress_on_stderr(monitor::parse_progress_mode(config_.output.progress),
                                    std::getenv("TERM"), std::getenv("NO_COLOR"));
    options.folder = folder_.root();
    options.log.log_interval = config_.output.log_interval;
    options.log.tensorboard = config_.output.tensorboard;
    options.max_steps = config_.max_steps;
    options.resumed = std::move(position);
    monitor_ = std::make_shared<monitor::RunMonitor>(std::move(options));
    trainer.add_callback(monitor_);
    monitor_->line().message(device_line(config_));
  }

  // What a checkpoint keeps for the run: the monitor's position, and what was spent so far.
  std::string notes(const Trainer& trainer) {
    const Progress now = trainer.progress();
    return io::Json{{"monitor", monitor_->position()},
                    {"seconds", earlier_seconds_ + now.seconds},
                    {"items", earlier_items_ + now.items}}
        .dump();
  }
  std::string read_notes(const std::string& extra) {
    constexpr std::string_view kWhere = "the notes in the checkpoint";
    const io::Json json = io::parse_json(extra, kWhere);
    return io::extract(kWhere, [&] {
      earlier_seconds_ = json.at("seconds");
      earlier_items_ = json.at("items");
      return json.at("monitor").get<std::string>();
    });
  }

  std::string place_text(const TrainerState& state) const {
    return fmt::format("epoch {}, batch {} ({} updates done)", state.epoch + 1, state.batches + 1,
                       state.global_steps);
  }

  void check_same_data() const {
    if (read_profile(folder_.data_file()) != data_.profile)
      throw TypeError(fmt::format(
          "{} has changed since the run in {} began; choose another folder with --out, or "
          "--restart to remove that run",
          config_.data.source, folder_.root().string()));
  }

  void begin(Start start) const {
    folder_.write_config(config_);
    io::write_file(folder_.data_file(), profile_json(data_.profile));
    monitor::write_environment(folder_.root(),
                               {.command = command_words(),
                                .device = config_.device,
                                .threads = compute_threads(config_),
                                .start_time = monitor::seconds_since_1970()},
                               start == Start::continued);
    std::error_code ignored;
    fs::remove(folder_.result_file(), ignored);  // of a shorter run
    fs::remove_all(folder_.diverged(), ignored);
  }

  FitOptions fit_options(const Trainer& trainer) {
    FitOptions fit{.epochs = config_.epochs, .max_steps = config_.max_steps};
    fit.validation = validation_.get();
    if (config_.early_stopping.patience > 0)
      fit.early_stopping =
          EarlyStopping{.metric = config_.early_stopping.metric,
                        .larger_is_better = larger_is_better(config_.early_stopping.metric),
                        .patience = config_.early_stopping.patience,
                        .min_delta = config_.early_stopping.min_delta,
                        .restore_best = config_.early_stopping.restore_best};
    fit.checkpoints = {.folder = folder_.checkpoints(),
                       .every_steps = config_.checkpoint.every_steps,
                       .every_epochs = config_.checkpoint.every_epochs,
                       .keep_last = config_.checkpoint.keep,
                       .metric = config_.checkpoint.metric,
                       .larger_is_better = larger_is_better(config_.checkpoint.metric),
                       .extra = [this, &trainer] { return notes(trainer); }};
    if (options_.poll) fit.poll = [this, &trainer] { return options_.poll(trainer); };
    return fit;
  }

  FitResult fit(Trainer& trainer) {
    try {
      return trainer.fit(*training_, fit_options(trainer));
    } catch (const DivergenceError& error) {
      monitor_->line().finish();
      throw DivergenceError(save_divergence(folder_, config_, shape_, trainer, error.what()));
    }
  }

  std::vector<std::string> draw_plots() const {
    std::vector<std::string> files;
    if (!config_.output.plots) return files;
    try {
      for (const fs::path& file :
           monitor::write_plots({monitor::read_run(folder_.root())}, folder_.plots()))
        files.push_back(file.string());
    } catch (const Error& error) {  // the model is trained all the same
      logging::warning("no plots: {}", error.what());
    }
    return files;
  }

  RunOutcome finish(Trainer& trainer, const FitResult& fit) {
    std::optional<Evaluation> evaluation;
    // Weights of an earlier epoch may have come back, and a run that was continued at its very end
    // has no evaluation in memory.
    if (validation_) evaluation = trainer.evaluate(*validation_);
    trainer.save_model(folder_.model_file());
    RunSummary summary{.end = fit.end,
                       .state = trainer.state(),
                       .parameters = parameter_count(trainer.session()),
                       .seconds = earlier_seconds_ + trainer.progress().seconds,
                       .items = earlier_items_ + trainer.progress().items,
                       .plots = draw_plots()};
    summary.state.history = fit.history;
    RunOutcome outcome{.end = RunOutcome::End::finished,
                       .result = result_json(config_, data_.profile, summary, evaluation),
                       .result_source = "the result",
                       .steps = summary.state.global_steps};
    io::write_file(folder_.result_file(), outcome.result.dump(1) + "\n");
    return outcome;
  }

  const RunConfig& config_;
  const RunOptions& options_;
  RunFolder folder_;
  RunData data_;
  std::unique_ptr<data::Loader> training_, validation_;
  RunLength length_;
  ModelShape shape_;
  std::shared_ptr<monitor::RunMonitor> monitor_;
  double earlier_seconds_ = 0;  // of training, before the run was interrupted
  std::int64_t earlier_items_ = 0;
};

}  // namespace

RunOutcome run_training(const RunConfig& config, const RunOptions& options) {
  const RunFolder folder(config.output.folder);
  check_folder(folder, config, options);
  if (std::optional<RunOutcome> before = finished_before(folder, config, options)) return *before;
  return TrainingRun(config, options).run();
}

}  // namespace pantala::tools
