#include "run/recording.h"

#include <fmt/format.h>

#include "base/log.h"
#include "io/file.h"
#include "io/json.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"

namespace pantala::run {

Recording::Recording(RunFolder folder, RecordingOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

bool Recording::resume(Trainer& trainer) {
  const std::optional<Trainer::Resumed> resumed = trainer.resume(folder_.checkpoints());
  if (resumed) read_notes(resumed->extra);
  continued_ = resumed.has_value();
  return continued_;
}

void Recording::start(Trainer& trainer, const std::string& about) {
  if (!options_.writes) return;
  options_.environment.start_time = monitor::seconds_since_1970();
  monitor::write_environment(folder_.root(), options_.environment, continued_);
  io::write_file(folder_.cost_table_file(), trainer.session().compiled().data()->cost_table);
  monitor_ = std::make_shared<monitor::RunMonitor>(
      monitor::RunMonitorOptions{.progress = options_.progress,
                                 .folder = folder_.root(),
                                 .log = options_.log,
                                 .max_steps = options_.max_steps,
                                 .resumed = position_});
  trainer.add_callback(monitor_);
  if (!about.empty()) monitor_->message(about);
  const std::string root = folder_.root().string();
  const TrainerState& state = trainer.state();
  monitor_->message(continued_
                        ? fmt::format("continues {} from epoch {}, batch {} ({} updates done)",
                                      root, state.epoch + 1, state.batches + 1, state.global_steps)
                        : fmt::format("begins in {}", root));
}

FitOptions Recording::fit_options(FitOptions fit, const Trainer& trainer,
                                  std::function<void()> before_save) {
  fit.checkpoints.folder = folder_.checkpoints();
  fit.checkpoints.extra = [this, &trainer, before_save = std::move(before_save)] {
    before_save();
    return notes(trainer);
  };
  return fit;
}

void Recording::finish() {
  if (monitor_) monitor_->finish();
}

double Recording::seconds(const Trainer& trainer) const {
  return earlier_seconds_ + trainer.progress().seconds;
}
std::int64_t Recording::items(const Trainer& trainer) const {
  return earlier_items_ + trainer.progress().items;
}

std::optional<double> Recording::exposed_seconds(const Trainer& trainer) const {
  const std::optional<double> now = trainer.progress().exposed_seconds;
  if (!now && earlier_exposed_ == 0) return {};
  return earlier_exposed_ + now.value_or(0);
}

std::vector<std::string> Recording::draw_plots() const {
  std::vector<std::string> files;
  try {
    for (const std::filesystem::path& file : monitor::draw_plots(folder_.root()))
      files.push_back(file.string());
  } catch (const Error& error) { logging::warning("no plots: {}", error.what()); }
  return files;
}

// What a checkpoint keeps for the run: the monitor's position, and what was spent so far.
std::string Recording::notes(const Trainer& trainer) {
  io::Json json{
      {"monitor", monitor_->position()}, {"seconds", seconds(trainer)}, {"items", items(trainer)}};
  if (const auto exposed = exposed_seconds(trainer)) json["exposed_seconds"] = *exposed;
  return json.dump();
}

void Recording::read_notes(const std::string& extra) {
  constexpr std::string_view kWhere = "the notes in the checkpoint";
  const io::Json json = io::parse_json(extra, kWhere);
  io::extract(kWhere, [&] {
    earlier_seconds_ = json.at("seconds");
    earlier_items_ = json.at("items");
    earlier_exposed_ = json.value("exposed_seconds", 0.0);
    position_ = json.at("monitor").get<std::string>();
  });
}

}  // namespace pantala::run
