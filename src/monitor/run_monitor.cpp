// The monitor: joins progress line and log to the hooks of a trainer.
#include <optional>
#include <utility>

#include "base/log.h"
#include "io/json.h"
#include "monitor/environment.h"
#include "monitor/progress_line.h"
#include "monitor/run_log.h"
#include "monitor/run_plots.h"
#include "pantala/monitor.h"

namespace pantala::monitor {

namespace {

constexpr double kWindowSeconds = 1;
constexpr std::string_view kWhere = "position of the run's monitor";

bool is_same(const std::optional<Evaluation>& a, const std::optional<Evaluation>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->items == b->items && a->loss == b->loss && a->values == b->values;
}

}  // namespace

class RunMonitor::Impl {
 public:
  explicit Impl(RunMonitorOptions options);

  void on_start(Trainer& trainer);
  void on_step(const StepMetrics& metrics);
  bool looks_at(std::int64_t global_step);
  void on_epoch(const EpochStats& stats);
  void on_activity(const Activity& activity) { line_.activity(activity); }
  std::string position();
  ProgressLine& line() { return line_; }

 private:
  // How far training had come at some moment.
  struct Pace {
    std::int64_t items = 0;
    double seconds = 0, wait_seconds = 0;
    std::optional<double> exposed_seconds = {};
  };
  // Between two moments; none if no time has passed.
  struct Rates {
    std::optional<double> items_per_second, wait_share, network_share;
  };
  static Pace pace_of(const Progress& progress);
  static Rates rates(const Pace& begin, const Pace& end);
  const Rates& shown_rates(const Pace& now);
  std::optional<Evaluation> evaluation_of(const EpochStats& stats) const;
  void draw() const;

  std::int64_t max_steps_;
  std::filesystem::path plotted_;  // the folder whose plots are drawn; "": none
  ProgressLine line_;
  std::optional<RunLog> log_;
  Trainer* trainer_ = nullptr;
  std::optional<Evaluation> seen_;  // the last evaluation that was told, or was there before
  std::int64_t unseen_step_ = -1;   // the last one that may be told late
  Pace epoch_begin_;
  Pace epoch_before_;  // what the epoch took before the run was interrupted
  Pace row_begin_;     // at the last row of the log
  Pace window_begin_;  // of the rates that the progress line shows
  std::optional<Rates> shown_rates_;
};

RunMonitor::Impl::Impl(RunMonitorOptions options)
    : max_steps_(options.max_steps),
      plotted_(options.plots ? options.folder : std::filesystem::path()),
      line_(std::move(options.progress)) {
  std::string log_positions;
  if (!options.resumed.empty()) {
    const auto document = io::parse_json(options.resumed, kWhere, 4);
    io::extract(kWhere, [&] {
      epoch_before_.items = document.at("epoch_items").get<std::int64_t>();
      epoch_before_.seconds = document.at("epoch_seconds").get<double>();
      if (document.contains("log")) log_positions = document.at("log").dump();
    });
  }
  if (options.folder.empty()) return;
  if (log_positions.empty())
    log_.emplace(options.folder, std::move(options.log));
  else
    log_.emplace(options.folder, log_positions, std::move(options.log));
}

RunMonitor::Impl::Pace RunMonitor::Impl::pace_of(const Progress& progress) {
  return {progress.items, progress.seconds, progress.wait_seconds, progress.exposed_seconds};
}

void RunMonitor::Impl::on_start(Trainer& trainer) {
  trainer_ = &trainer;
  seen_ = trainer.last_evaluation();
  epoch_begin_ = row_begin_ = window_begin_ = pace_of(trainer.progress());
}

RunMonitor::Impl::Rates RunMonitor::Impl::rates(const Pace& begin, const Pace& end) {
  const double seconds = end.seconds - begin.seconds;
  if (!(seconds > 0)) return {};
  Rates rates{static_cast<double>(end.items - begin.items) / seconds,
              (end.wait_seconds - begin.wait_seconds) / seconds,
              {}};
  if (begin.exposed_seconds && end.exposed_seconds)
    rates.network_share = (*end.exposed_seconds - *begin.exposed_seconds) / seconds;
  return rates;
}

// The line shows the rates of the last window of a second or more: the whole run's would hide
// changes, a single step's scatter.
const RunMonitor::Impl::Rates& RunMonitor::Impl::shown_rates(const Pace& now) {
  const bool is_whole = now.seconds - window_begin_.seconds >= kWindowSeconds;
  if (is_whole || !shown_rates_) shown_rates_ = rates(window_begin_, now);
  if (is_whole) window_begin_ = now;
  return *shown_rates_;
}

bool RunMonitor::Impl::looks_at(std::int64_t global_step) {
  if ((log_ && log_->step_is_due(global_step)) || line_.is_due()) return true;
  unseen_step_ = global_step;
  return false;
}

void RunMonitor::Impl::on_step(const StepMetrics& metrics) {
  line_.observe(metrics.loss);
  if (!trainer_) return;
  const std::int64_t global_step = trainer_->state().global_steps;
  // A step that comes late is not shown: the rest of what the line tells has gone on.
  const bool logged = log_ && log_->step_is_due(global_step),
             shown = global_step > unseen_step_ && line_.is_due();
  if (!logged && !shown) return;
  const Progress progress = trainer_->progress();
  const Pace now = pace_of(progress);
  StepRecord record{.epoch = metrics.epoch,
                    .step = metrics.step,
                    .global_step = global_step,
                    .loss = metrics.loss,
                    .learning_rate = progress.learning_rate,
                    .gradient_norm = progress.gradient_norm,
                    .memory_bytes = resident_bytes()};
  const auto put = [&](const Rates& rates) {
    record.items_per_second = rates.items_per_second;
    record.wait_share = rates.wait_share;
    record.network_share = rates.network_share;
  };
  // A row of the log is about the steps since the row before.
  if (logged) {
    put(rates(std::exchange(row_begin_, now), now));
    log_->step(record);
  }
  if (!shown) return;
  put(shown_rates(now));
  line_.step(record, {.epochs = progress.epochs,
                      .batch = progress.batch,
                      .batches = progress.batches,
                      .max_steps = max_steps_});
}

// The evaluation that came after the epoch, if there was one.
std::optional<Evaluation> RunMonitor::Impl::evaluation_of(const EpochStats& stats) const {
  const TrainHistory& history = trainer_->state().history;
  if (!history.epochs.empty() && history.epochs.back().epoch == stats.epoch &&
      history.epochs.size() == history.evaluations.size())
    return history.evaluations.back();
  // An epoch that the history does not have: the step limit ended it, or it was trained alone.
  return is_same(trainer_->last_evaluation(), seen_) ? std::nullopt : trainer_->last_evaluation();
}

void RunMonitor::Impl::on_epoch(const EpochStats& stats) {
  if (!trainer_) return;
  const Progress progress = trainer_->progress();
  const double seconds = progress.seconds - epoch_begin_.seconds + epoch_before_.seconds;
  const auto items = static_cast<double>(progress.items - epoch_begin_.items + epoch_before_.items);
  EpochRecord record{.epoch = stats.epoch,
                     .steps = stats.steps,
                     .global_step = progress.global_steps,
                     .avg_loss = stats.avg_loss,
                     .learning_rate = progress.learning_rate,
                     .seconds = seconds,
                     .items_per_second = {},
                     .validation_loss = {},
                     .metrics = {}};
  if (seconds > 0) record.items_per_second = items / seconds;
  if (const std::optional<Evaluation> evaluation = evaluation_of(stats)) {
    record.validation_loss = evaluation->loss;
    record.metrics = evaluation->values;
  }
  seen_ = trainer_->last_evaluation();
  epoch_begin_ = pace_of(progress);
  epoch_before_ = {};
  if (log_) log_->epoch(record);
  line_.epoch(record, progress.epochs);
  draw();
}

// The run is worth more than its pictures.
void RunMonitor::Impl::draw() const {
  if (plotted_.empty()) return;
  try {
    draw_plots(plotted_);
  } catch (const Error& error) { logging::warning("no plots: {}", error.what()); }
}

std::string RunMonitor::Impl::position() {
  Pace now = epoch_begin_;
  if (trainer_) now = pace_of(trainer_->progress());
  io::Json document = {
      {"epoch_items", now.items - epoch_begin_.items + epoch_before_.items},
      {"epoch_seconds", now.seconds - epoch_begin_.seconds + epoch_before_.seconds}};
  if (log_) document["log"] = io::parse_json(log_->positions(), kWhere);
  return document.dump();
}

RunMonitor::RunMonitor(RunMonitorOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
RunMonitor::~RunMonitor() = default;
void RunMonitor::on_start(Trainer& trainer) { impl_->on_start(trainer); }
void RunMonitor::on_step(const StepMetrics& metrics) { impl_->on_step(metrics); }
bool RunMonitor::looks_at(std::int64_t global_step) { return impl_->looks_at(global_step); }
void RunMonitor::on_epoch(const EpochStats& stats) { impl_->on_epoch(stats); }
void RunMonitor::on_activity(const Activity& activity) { impl_->on_activity(activity); }
std::string RunMonitor::position() { return impl_->position(); }
void RunMonitor::message(std::string_view text) { impl_->line().message(text); }
void RunMonitor::finish() { impl_->line().finish(); }

std::vector<std::filesystem::path> draw_plots(const std::filesystem::path& folder) {
  return write_plots({read_run(folder)}, folder / "plots");
}

}  // namespace pantala::monitor
