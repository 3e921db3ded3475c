#include "tools/train/watch.h"

#include <cstdlib>

#include "io/json.h"
#include "monitor/environment.h"

namespace pantala::tools {

namespace {

// Empty where no time has passed.
std::optional<double> per_second(std::int64_t items, double seconds) {
  if (!(seconds > 0) || items < 0) return {};
  return static_cast<double>(items) / seconds;
}

}  // namespace

RunWatch::RunWatch(const RunConfig& config)
    : max_steps_(config.max_steps),
      progress_(monitor::progress_on_stderr(monitor::parse_progress_mode(config.output.progress),
                                            std::getenv("TERM"), std::getenv("NO_COLOR"))) {
  log_options_.log_interval = config.output.log_interval;
  log_options_.tensorboard = config.output.tensorboard;
}

void RunWatch::open_log(const std::filesystem::path& folder,
                        const std::optional<std::string>& extra) {
  if (!extra) {
    log_.emplace(folder, log_options_);
    return;
  }
  const io::Json json = io::parse_json(*extra, "the checkpoint's notes");
  io::extract("the checkpoint's notes", [&] {
    earlier_seconds_ = json.at("seconds").get<double>();
    earlier_items_ = json.at("items").get<std::int64_t>();
    log_.emplace(folder, json.at("log").dump(), log_options_);
  });
}

std::string RunWatch::extra() {
  return io::Json{{"seconds", seconds()},
                  {"items", items()},
                  {"log", io::parse_json(log_->positions(), "positions")}}
      .dump();
}

double RunWatch::seconds() const {
  return earlier_seconds_ + (trainer_ ? trainer_->progress().seconds : 0);
}
std::int64_t RunWatch::items() const {
  return earlier_items_ + (trainer_ ? trainer_->progress().items : 0);
}

void RunWatch::on_start(Trainer& trainer) {
  trainer_ = &trainer;
  last_record_ = {};
  epoch_begin_ = {};
}

monitor::StepRecord RunWatch::record(const StepMetrics& metrics, const Progress& now) const {
  const double seconds = now.seconds - last_record_.seconds;
  monitor::StepRecord record{
      .epoch = metrics.epoch,
      .step = metrics.step,
      .global_step = now.global_steps,
      .loss = metrics.loss,
      .learning_rate = now.learning_rate,
      .gradient_norm = now.gradient_norm,
      .items_per_second = per_second(now.items - last_record_.items, seconds),
      .wait_share = {},
      .memory_bytes = monitor::resident_bytes()};
  if (seconds > 0) record.wait_share = (now.wait_seconds - last_record_.wait_seconds) / seconds;
  return record;
}

void RunWatch::on_step(const StepMetrics& metrics) {
  progress_.observe(metrics.loss);
  const bool show = progress_.is_due();
  const bool log = log_ && log_->step_is_due(trainer_->state().global_steps);
  if (!show && !log) return;
  const Progress now = trainer_->progress();
  const monitor::StepRecord record = this->record(metrics, now);
  last_record_ = {now.seconds, now.wait_seconds, now.items};
  if (log) log_->step(record);
  if (show)
    progress_.step(record, {.epochs = now.epochs,
                            .batch = now.batch,
                            .batches = now.batches,
                            .max_steps = max_steps_});
}

void RunWatch::on_epoch(const EpochStats& stats) {
  const Progress now = trainer_->progress();
  const double seconds = now.seconds - epoch_begin_.seconds;
  monitor::EpochRecord record{
      .epoch = stats.epoch,
      .steps = stats.steps,
      .global_step = now.global_steps,
      .avg_loss = stats.avg_loss,
      .learning_rate = now.learning_rate,
      .seconds = seconds,
      .items_per_second = per_second(now.items - epoch_begin_.items, seconds),
      .validation_loss = {},
      .metrics = {}};
  if (const std::optional<Evaluation>& evaluation = trainer_->last_evaluation()) {
    record.validation_loss = evaluation->loss;
    record.metrics = evaluation->values;
  }
  epoch_begin_ = {now.seconds, now.wait_seconds, now.items};
  if (log_) log_->epoch(record);
  progress_.epoch(record, now.epochs);
}

}  // namespace pantala::tools
