// Checkpoints of a trainer: what is in them, which are kept, and the way back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/log.h"
#include "io/file.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "runtime/session_data.h"
#include "train/checkpoint_files.h"
#include "train/state_json.h"
#include "train/trainer_impl.h"

namespace pantala {

namespace {

namespace fs = std::filesystem;
using io::Json;
using train::kBestFile;
using train::kModelFile;
using train::kOptimizerFile;
using train::kStateFile;

constexpr std::int64_t kFormat = 1;

// What the numbers of a run depend on beside model and data; for messages, not for restoring.
Json config_summary(const TrainConfig& config, const train::Plans& plans, std::int64_t window) {
  const std::int64_t shards = config.distributed.is_used() ? config.distributed.shards : 1;
  return {{"optimizer", config.optimizer.str()},
          {"schedule", config.rate_schedule.str()},
          {"plateau", config.plateau ? Plateau(1, *config.plateau).str() : ""},
          {"batch_size", plans.batch_size()},
          {"accumulation_steps", window},
          {"shards", shards},
          {"normalize", plans.session().compiled().data()->normalize},
          {"guard", guard_name(plans.session().compiled().data()->non_finite)},
          {"cost_table", plan::cost_table_title(plans.session().compiled().data()->cost_table)}};
}

runtime::SessionData& plans_data(const train::Plans& plans) {
  return plans.session().data().settled();
}

// state.json, checked and taken apart, and the other files checked against it.
struct Checkpoint {
  TrainerState state;
  std::string extra, loader;
  Json config;
  bool has_best = false;
};

Checkpoint read_checkpoint(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw IoError(fmt::format("{}: there is no such folder", folder.string()));
  const auto need = [&](const char* name) {
    fs::path path = folder / name;
    if (!fs::exists(path)) throw ParseError(fmt::format("{}: is missing", path.string()));
    return path;
  };
  const std::string file = need(kStateFile).string();
  const Json document = train::parse_state(io::read_file(file), file);
  Checkpoint checkpoint;
  const auto files = io::extract(file, [&] {
    if (const Json& format = document.at("format"); format != kFormat)
      throw ParseError(
          fmt::format("{}: its format is {}, this version reads {}", file, format.dump(), kFormat));
    checkpoint.extra = document.at("extra").get<std::string>();
    checkpoint.loader = document.at("loader").get<std::string>();
    checkpoint.config = document.at("config");
    return document.at("files").get<std::map<std::string, std::string>>();
  });
  for (const char* name : {kModelFile, kOptimizerFile})
    if (!files.contains(name))
      throw ParseError(fmt::format("{}: the checksum of {} is missing", file, name));
  for (const char* name : {kModelFile, kOptimizerFile, kBestFile}) {
    const auto listed = files.find(name);
    if (listed == files.end()) continue;
    const fs::path path = need(name);
    if (train::file_checksum(path) != listed->second)
      throw ParseError(
          fmt::format("{}: damaged: its checksum is not the one in {}", path.string(), kStateFile));
  }
  checkpoint.has_best = files.contains(kBestFile);
  checkpoint.state = train::decode_state(
      io::extract(file, [&]() -> const Json& { return document.at("state"); }), file);
  return checkpoint;
}

// The steps after which each epoch of the history ended.
std::vector<std::int64_t> ends_of_epochs(const TrainerState& state) {
  std::vector<std::int64_t> ends(state.history.epochs.size());
  std::int64_t at = state.global_steps - state.epoch_steps;
  for (std::size_t k = ends.size(); k-- > 0; at -= state.history.epochs[k].steps) ends[k] = at;
  return ends;
}

}  // namespace

void Trainer::Impl::save_checkpoint(const fs::path& folder, const std::string& extra) const {
  check_values();
  if (own_updates_) sharded_->complete_sums();
  const train::OwnUpdates::States others =
      own_updates_ ? own_updates_->gather_states(session()) : train::OwnUpdates::States();
  if (own_updates_ && !is_first_rank()) return;
  const SessionMemory memory = session().memory_summary();
  constexpr std::int64_t kMargin = 4 << 20;  // headers, state.json, the file system's own blocks
  const std::int64_t needed = memory.parameters + memory.states + others.bytes() +
                              (best_weights_ ? best_weights_->bytes() : 0) + kMargin;
  train::write_checkpoint(folder, static_cast<std::uint64_t>(needed), [&](const fs::path& into) {
    session().save(into / kModelFile, Saved::model);
    plans_data(plans).save(into / kOptimizerFile, Saved::optimizer, others.tensors());
    if (best_weights_) best_weights_->save(into / kBestFile);
    Json files;
    for (const char* name : {kModelFile, kOptimizerFile, kBestFile})
      if (fs::exists(into / name)) files[name] = train::file_checksum(into / name);
    const auto compiled = session().compiled().data();
    io::write_file(into / kStateFile,
                   train::state_text({{"format", kFormat},
                                      {"config", config_summary(config, plans, window_size())},
                                      {"cost_table", compiled->cost_table},
                                      {"loader", loader_fingerprint_},
                                      {"files", files},
                                      {"state", train::encode_state(state)},
                                      {"extra", extra}}));
  });
}

std::string Trainer::Impl::load_checkpoint(const fs::path& given) {
  const fs::path folder = train::readable(given);
  Checkpoint checkpoint = read_checkpoint(folder);
  std::optional<train::Snapshot> best;
  if (checkpoint.has_best) best = train::Snapshot::load(folder / kBestFile, session());
  if (checkpoint.state.plateau.has_value() != config.plateau.has_value())
    throw TypeError(fmt::format("{}: it was saved {} plateau, this trainer is {} one",
                                folder.string(), checkpoint.state.plateau ? "with a" : "without",
                                config.plateau ? "with" : "without"));
  const train::Snapshot before = train::Snapshot::of(session(), false);
  session().load(folder / kModelFile, Saved::model);
  try {
    session().data().settled().load(
        folder / kOptimizerFile, Saved::optimizer,
        own_updates_ ? std::vector<std::string>{"optim.*"} : std::vector<std::string>());
  } catch (...) {
    before.restore(session());
    throw;
  }
  const Json now = config_summary(config, plans, window_size());
  changes_.clear();
  for (const auto& [name, value] : now.items())
    // What a checkpoint of an earlier version does not know has not changed.
    if (checkpoint.config.contains(name) && checkpoint.config.at(name) != value)
      changes_.push_back(fmt::format("{}: {} was {} when it was saved and is {} now",
                                     folder.string(), name, checkpoint.config.at(name).dump(),
                                     value.dump()));
  if (checkpoint.config.value("optimizer", "") != config.optimizer.str())
    optim::set_scalars(session(), config.optimizer);
  is_spoilt_ = false;
  state = std::move(checkpoint.state);
  best_weights_ = std::move(best);
  loader_fingerprint_ = std::move(checkpoint.loader);
  last_evaluation.reset();
  if (!state.history.evaluations.empty()) last_evaluation = state.history.evaluations.back();
  last_plan_ = nullptr;
  has_updated_ = false;
  saved_at_ = place(folder.parent_path());
  return std::move(checkpoint.extra);
}

void Trainer::Impl::tell_changes() {
  for (const std::string& change : changes_) logging::warning("{}", change);
  changes_.clear();
}

std::optional<Trainer::Resumed> Trainer::Impl::resume(const fs::path& checkpoints) {
  const std::vector<train::NumberedCheckpoint> list = train::list_checkpoints(checkpoints);
  for (auto candidate = list.rbegin(); candidate != list.rend(); ++candidate) {
    const auto skip = [&](const Error& error) {
      logging::warning("checkpoint {} cannot be used: {}", candidate->path.string(), error.what());
    };
    try {
      return Resumed{candidate->path, load_checkpoint(candidate->path)};
    } catch (const ParseError& error) { skip(error); } catch (const IoError& error) {
      skip(error);
    }
  }
  if (list.empty()) return {};
  throw IoError(
      fmt::format("{}: none of its {} checkpoints is whole", checkpoints.string(), list.size()));
}

std::optional<std::int64_t> Trainer::Impl::restore_best() {
  if (!best_weights_) return {};
  best_weights_->restore(session());
  return state.best_epoch;
}

void Trainer::Impl::save(const CheckpointOptions& options) {
  if (options.folder.empty()) return;
  saved_at_ = place(options.folder);
  // Others may have states that belong to the checkpoint.
  if (!is_first_rank()) return own_updates_ ? save_checkpoint({}, "") : void();
  const SessionSpan span(session(), "checkpoint");
  train::put_right_all(options.folder);
  save_checkpoint(options.folder / train::checkpoint_name(state.global_steps),
                  options.extra ? options.extra() : "");
  remove_old(options);
}

// Only what was saved with an evaluation can be the best one.
void Trainer::Impl::remove_old(const CheckpointOptions& options) const {
  if (options.folder.empty() || options.keep_last == 0 || !is_first_rank()) return;
  // Those with more steps are what is left of a run that went on from further back than its end: a
  // damaged one, which this run replaces when it comes there.
  std::vector<train::NumberedCheckpoint> list = train::list_checkpoints(options.folder);
  std::erase_if(list, [&](const auto& c) { return c.steps > state.global_steps; });
  const std::vector<std::int64_t> ends = ends_of_epochs(state);
  std::int64_t best_steps = -1;
  double best = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    if (!state.history.evaluations[k]) continue;
    const double value = state.history.evaluations[k]->value(options.metric);
    const bool better = options.larger_is_better ? value > best : value < best;
    const bool saved =
        std::any_of(list.begin(), list.end(), [&](const auto& c) { return c.steps == ends[k]; });
    if (!saved || std::isnan(value) || (best_steps >= 0 && !better)) continue;
    best = value;
    best_steps = ends[k];
  }
  for (std::size_t k = 0; k + static_cast<std::size_t>(options.keep_last) < list.size(); ++k) {
    if (list[k].steps == best_steps) continue;
    if (const std::error_code error = train::remove_checkpoint(list[k].path))
      logging::warning("{}: cannot be removed: {}", list[k].path.string(), error.message());
  }
}

}  // namespace pantala
