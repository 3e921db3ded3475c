// A whole run of a config: opens the data, makes or continues the run folder, trains, and leaves
// the result there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <optional>
#include <system_error>

#include "base/doing.h"
#include "base/log.h"
#include "base/text.h"
#include "device/cpu/host.h"
#include "distributed/shards.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "pantala/cancelled.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "run/cost_table.h"
#include "run/diverged.h"
#include "run/first_weights.h"
#include "run/models/model.h"
#include "run/parameter_groups.h"
#include "run/ranks.h"
#include "run/recording.h"
#include "run/result.h"
#include "run/run_data.h"
#include "run/run_folder.h"
#include "run/setup.h"
#include "train/checkpoint_files.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

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
  std::vector<std::string> different = differences(folder.config(), config);
  if (std::string table = table_difference(folder, config); !table.empty())
    different.push_back(std::move(table));
  if (!different.empty())
    throw TypeError(fmt::format(
        "{} holds a run with another config:\n  {}\nchoose another folder with --out, or --restart "
        "to remove that run",
        folder.root().string(), fmt::join(different, "\n  ")));
}

// A trace is written when all is done: too late to say that there is no place for it.
void check_trace(const fs::path& file) {
  if (file.empty()) return;
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored))
    throw TypeError(
        fmt::format("--trace {}: there is no folder {}", file.string(), folder.string()));
  if (fs::is_directory(file, ignored))
    throw TypeError(fmt::format("--trace {}: this is a folder; name a file", file.string()));
}

// A run that was killed after its result was there has nothing left to do but this.
void tidy(const RunFolder& folder) {
  if (!folder.has_leftovers()) return;
  try {
    const FolderLock lock(folder);
    folder.remove_leftovers();
  } catch (const IoError& error) { logging::warning("{}", error.what()); }
}

// The result of a run that has nothing left to do.
std::optional<RunOutcome> finished_before(const RunFolder& folder, const RunConfig& config,
                                          const RunOptions& options, const RunRanks& ranks) {
  std::error_code error;
  if (options.restart || !fs::exists(folder.result_file(), error)) return {};
  const std::string name = folder.result_file().string();
  const auto result = io::read_json<OrderedJson>(folder.result_file());
  if (!is_finished(result, config, name)) return {};
  if (ranks.writes()) tidy(folder);
  return RunOutcome{.end = RunOutcome::End::was_finished,
                    .result = result.dump(),
                    .result_name = name,
                    .steps = result.at("steps")};
}

monitor::ProgressOptions progress_of(const RunConfig& config, const Surroundings& surroundings) {
  const monitor::ProgressMode mode = monitor::parse_progress_mode(config.output.progress);
  return surroundings.progress ? surroundings.progress(mode) : monitor::progress_on_stderr(mode);
}

monitor::RunLogOptions log_options(const RunConfig& config, metrics::Kind measured) {
  monitor::RunLogOptions log{.log_interval = config.output.log_interval,
                             .tensorboard = config.output.tensorboard};
  if (measured == metrics::Kind::tokens || measured == metrics::Kind::bytes)
    log.metrics = metrics::names(measured);
  std::erase(log.metrics, "loss");  // which has a column of its own
  return log;
}

RecordingOptions recording_options(const RunConfig& config, const Surroundings& surroundings,
                                   metrics::Kind measured, bool writes) {
  return {.writes = writes,
          .progress = progress_of(config, surroundings),
          .log = log_options(config, measured),
          .max_steps = config.max_steps,
          .environment = {.command = surroundings.command,
                          .device = config.device,
                          .threads = compute_threads(config)}};
}

class TrainingRun {
 public:
  TrainingRun(const RunConfig& config, const RunOptions& options, const RunRanks& ranks)
      : config_(config),
        options_(options),
        ranks_(ranks),
        folder_(config.output.folder),
        data_(open_run_data(config)),
        training_(open_loader(data_.train, config, data_.facts, Use::training, own_shards())),
        validation_(data_.validation ? open_loader(*data_.validation, config, data_.facts,
                                                   Use::evaluation, own_shards())
                                     : nullptr),
        length_(run_length(config, *training_)),
        shape_(model_shape(config, data_.facts)),
        recording_(folder_, recording_options(config, options.surroundings, shape_.measured,
                                              ranks.writes())) {}

  RunOutcome run() {
    const Doing doing("training " + model_title(config_));
    check_validation_is_there();
    if (ranks_.are_several())
      ranks_.agree(claims_of(config_, facts_json(data_.facts) + '\n' + training_->fingerprint()));
    check_devices(config_, ranks_);
    const std::string target =
        common_target(ranks_, device::cpu::describe_host().vector_bytes, options_.strict_ranks);
    // From here on only rank 0 changes the folder, while the others wait for it.
    std::optional<FolderLock> lock;
    if (ranks_.writes()) {
      lock.emplace(folder_);
      check_folder(folder_, config_, options_);  // another run may have begun and ended meanwhile
      folder_.remove_leftovers();
    }
    ranks_.meet();
    std::optional<Trainer> trainer;
    if (is_called_off([&] {
          trainer.emplace(make_trainer(compiled_config(), shape_, length_.total_steps,
                                       options_.surroundings.plan_cache, options_.stop,
                                       ranks_.communicator(), target));
        }))
      return {.end = RunOutcome::End::not_begun};
    open_folder(*trainer);
    const bool traces = !options_.trace.empty();
    if (traces || options_.profile) trainer->session().set_timing(true, traces);
    RunOutcome outcome = train_on_device(*trainer, lock ? &*lock : nullptr);
    write_trace(*trainer);
    if (options_.profile) outcome.profile = trainer->session().profile();
    return outcome;
  }

 private:
  RunOutcome train_on_device(Trainer& trainer, const FolderLock* lock) {
    try {
      return train(trainer, lock);
    } catch (const DeviceLostError& error) {
      recording_.finish();
      throw DeviceLostError(fmt::format("{}; {}", error.what(), way_on()));
    }
  }

  // From what is in the folder, which is all that is left.
  std::string way_on() const {
    const std::string_view command =
        options_.restart ? "the same command without --restart" : "the same command";
    const auto saved = train::list_checkpoints(folder_.checkpoints());
    if (saved.empty())
      return fmt::format("nothing was saved yet: {} begins anew, and with --device cpu on the CPU",
                         command);
    return fmt::format(
        "the run was saved after {} in {}: {} goes on from there, and with --device cpu on the CPU",
        counted(static_cast<std::size_t>(saved.back().steps), "update"), folder_.root().string(),
        command);
  }

  distributed::Range own_shards() const {
    const std::int64_t rank = ranks_.are_several() ? ranks_.communicator()->rank() : 0;
    return distributed::shards_of_rank(std::max<std::int64_t>(config_.distributed.shards, 1),
                                       ranks_.size(), rank);
  }

  // Whether somebody stops the run while its plans are made, on any rank.
  bool is_called_off(const std::function<void()>& make) const {
    bool stopped = options_.stop && options_.stop();
    if (ranks_.any(stopped)) return true;
    ranks_.one_first([&] {
      try {
        make();
      } catch (const CancelledError&) { stopped = true; }
    });
    return ranks_.any(stopped);
  }

  RunOutcome train(Trainer& trainer, const FolderLock* lock) {
    const FitResult fit = this->fit(trainer, lock);
    recording_.finish();
    if (fit.end != FitEnd::interrupted) {
      try {
        return finish(trainer, fit, lock);
      } catch (const CancelledError&) {}  // before the last evaluation; the checkpoint is there
    }
    return {.end = RunOutcome::End::interrupted, .steps = trainer.state().global_steps};
  }

  // A run that goes on is compiled by the cost table that it began with, unless that is of another
  // device.
  RunConfig compiled_config() const {
    if (folder_.content() != RunFolder::Content::run || options_.restart) return config_;
    if (const std::string before = folder_.config().device; before != config_.device) {
      if (folder_.has_checkpoint())
        logging::warning(
            "{} was trained on the device {} and goes on on {}: the bits will differ from those of "
            "a run on one device",
            folder_.root().string(), before, config_.device);
      return config_;
    }
    if (const std::string notice = table_notice(folder_, config_); !notice.empty())
      logging::warning("{}", notice);
    return with_recorded_table(folder_, config_);
  }

  void write_trace(const Trainer& trainer) const {
    if (!options_.trace.empty() && ranks_.writes()) trainer.session().write_trace(options_.trace);
  }

  void check_validation_is_there() const {
    if (data_.validation) return;
    if (config_.early_stopping.patience > 0)
      throw TypeError("early_stopping.patience needs a validation, but data.validation is none");
    if (config_.rate_schedule.name == "plateau")
      throw TypeError("the rate schedule plateau needs a validation, but data.validation is none");
  }

  // Brings folder, trainer and log files to the place where the run begins or goes on.
  void open_folder(Trainer& trainer) {
    const bool run_is_there = folder_.content() == RunFolder::Content::run && !options_.restart;
    bool continues = false;
    if (run_is_there && folder_.has_checkpoint()) {
      check_same_data();
      continues = recording_.resume(trainer);
    }
    if (!continues) load_first_weights(config_, shape_, trainer.session());
    ranks_.meet();
    const std::string line = ranks_line(trainer);
    if (!ranks_.writes()) return recording_.start(trainer, "");
    if (!continues && folder_.content() == RunFolder::Content::run) folder_.clear();
    write_facts();
    io::remove_path(folder_.result_file());  // of a shorter run
    io::remove_tree(folder_.diverged());
    recording_.start(trainer, device_line(config_) + line);
  }

  // "; 8 shards on 4 ranks; memory of a rank 12.1 to 13.0 MiB, 2.0 to 2.1 of it states"
  std::string ranks_line(const Trainer& trainer) const {
    if (config_.distributed.shards == 0) return "";
    std::string line = fmt::format(
        "; {} on {}", counted(static_cast<std::size_t>(config_.distributed.shards), "shard"),
        counted(static_cast<std::size_t>(ranks_.size()), "rank"));
    if (!ranks_.are_several()) return line;
    const SessionMemory own = trainer.session().memory_summary();
    const auto range = [&](std::int64_t bytes) {
      const auto [least, most] = ranks_.range(bytes);
      constexpr double kMega = 1048576;
      return fmt::format("{:.1f} to {:.1f}", static_cast<double>(least) / kMega,
                         static_cast<double>(most) / kMega);
    };
    const std::string total = range(own.total()), states = range(own.states);
    return line + fmt::format("; memory of a rank {} MiB, {} of it states", total, states);
  }

  void write_facts() const {
    folder_.write_config(config_);
    io::write_file(folder_.data_file(), facts_json(data_.facts));
  }

  // Checkpoints without the config and the facts are no run: nothing would go on from them.
  void before_save(const FolderLock* lock) const {
    if (lock) lock->check_folder();
    std::error_code unknown;
    for (const fs::path& file : {folder_.config_file(), folder_.data_file()})
      if (!fs::exists(file, unknown)) {
        logging::warning("{} was removed while the run was training; it is written again",
                         file.string());
        write_facts();
      }
  }

  void check_same_data() const {
    if (read_facts(folder_.data_file()) != data_.facts)
      throw TypeError(fmt::format(
          "{} has changed since the run in {} began; choose another folder with --out, or "
          "--restart to remove that run",
          config_.data.source, folder_.root().string()));
  }

  FitOptions fit_options(const Trainer& trainer, const FolderLock* lock) {
    FitOptions fit{.epochs = config_.epochs, .max_steps = config_.max_steps};
    fit.validation = validation_.get();
    if (config_.early_stopping.patience > 0)
      fit.early_stopping = EarlyStopping{
          .metric = config_.early_stopping.metric,
          .larger_is_better = metrics::larger_is_better(config_.early_stopping.metric),
          .patience = config_.early_stopping.patience,
          .min_delta = config_.early_stopping.min_delta,
          .restore_best = config_.early_stopping.restore_best};
    fit.checkpoints = {.every_steps = config_.checkpoint.every_steps,
                       .every_epochs = config_.checkpoint.every_epochs,
                       .keep_last = config_.checkpoint.keep,
                       .metric = best_metric(config_),
                       .larger_is_better = metrics::larger_is_better(best_metric(config_))};
    if (options_.poll) fit.poll = [this, &trainer] { return options_.poll(trainer); };
    return recording_.fit_options(std::move(fit), trainer, [this, lock] { before_save(lock); });
  }

  FitResult fit(Trainer& trainer, const FolderLock* lock) {
    try {
      return trainer.fit(*training_, fit_options(trainer, lock));
    } catch (const DivergenceError& error) {
      recording_.finish();
      write_trace(trainer);
      if (!ranks_.writes()) {
        // Its part of the states that rank 0 saves.
        if (config_.distributed.shard_optimizer) trainer.save_checkpoint({});
        ranks_.meet();
        throw;
      }
      const std::string text = save_divergence(folder_, config_, shape_, trainer, error.what());
      ranks_.meet();
      throw DivergenceError(text);
    }
  }

  std::string best_checkpoint(const FitResult& fit) const {
    const auto best = best_epoch(config_, fit.history, fit.restored_epoch);
    if (!best) return "";
    const std::string name = train::checkpoint_name(best->steps);
    std::error_code unknown;
    return fs::exists(folder_.checkpoints() / name, unknown) ? name : "";
  }

  RunOutcome finish(Trainer& trainer, const FitResult& fit, const FolderLock* lock) {
    std::optional<Evaluation> evaluation;
    // Weights of an earlier epoch may have come back, and a run that was continued at its very end
    // has no evaluation in memory.
    if (validation_) evaluation = trainer.evaluate(*validation_);
    if (!ranks_.writes()) {
      ranks_.meet();
      return {.end = RunOutcome::End::finished, .steps = trainer.state().global_steps};
    }
    before_save(lock);
    trainer.save_model(folder_.model_file());
    RunSummary summary{.end = fit.end,
                       .state = trainer.state(),
                       .parameters = count_parameters(config_, trainer.session()),
                       .seconds = recording_.seconds(trainer),
                       .items = recording_.items(trainer),
                       .exposed_seconds = recording_.exposed_seconds(trainer),
                       .restored_epoch = fit.restored_epoch};
    if (config_.output.plots) summary.plots = recording_.draw_plots();
    summary.state.history = fit.history;
    summary.best_checkpoint = best_checkpoint(fit);
    const OrderedJson result = result_json(config_, data_.facts, summary, evaluation);
    io::write_file(folder_.result_file(), result.dump(1) + "\n");
    ranks_.meet();
    return {.end = RunOutcome::End::finished,
            .result = result.dump(),
            .result_name = "the result",
            .steps = summary.state.global_steps};
  }

  const RunConfig& config_;
  const RunOptions& options_;
  const RunRanks& ranks_;
  RunFolder folder_;
  RunData data_;
  std::unique_ptr<data::Loader> training_, validation_;
  RunLength length_;
  ModelShape shape_;
  Recording recording_;
};

}  // namespace

RunOutcome run_training(const RunConfig& given, const RunOptions& options) {
  const RunRanks ranks(options.ranks);
  RunConfig config = completed(given);
  const RunFolder folder(config.output.folder);
  std::optional<RunConfig> recorded;
  if (folder.content() == RunFolder::Content::run && !options.restart) recorded = folder.config();
  config = with_shards(std::move(config), recorded ? &*recorded : nullptr, ranks);
  if (ranks.are_several() && config.threads == 0) config.threads = ranks.threads();
  check_folder(folder, config, options);
  check_trace(options.trace);
  if (std::optional<RunOutcome> before = finished_before(folder, config, options, ranks))
    return *before;
  return TrainingRun(config, options, ranks).run();
}

}  // namespace pantala::run
