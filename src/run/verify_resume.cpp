#include "run/verify_resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <algorithm>
#include <sstream>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "io/json.h"
#include "monitor/run_log.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "run/run_data.h"
#include "run/run_folder.h"
#include "run/setup.h"
#include "train/checkpoint_files.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "pantala-verify-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw IoError(fmt::format("{}: a temporary folder cannot be made", name));
    path_ = name;
  }
  ~ScratchFolder() { io::remove_tree(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Batches that a run has trained so far.
std::int64_t batches_done(const Trainer& trainer, std::int64_t batches_per_epoch) {
  return trainer.state().epoch * batches_per_epoch + trainer.state().batches;
}

// Trains to the end in `folder`, interrupted after each of the places.
void run_interrupted(RunConfig config, const fs::path& folder, std::int64_t batches_per_epoch,
                     const std::vector<std::int64_t>& places, const fs::path& plan_cache) {
  config.output.folder = folder.string();
  for (const std::int64_t place : places)
    run_training(config, {.poll =
                              [&](const Trainer& trainer) {
                                return batches_done(trainer, batches_per_epoch) >= place
                                           ? Request::save_and_stop
                                           : Request::none;
                              },
                          .surroundings = {.plan_cache = plan_cache}});
  run_training(config, {.surroundings = {.plan_cache = plan_cache}});
}

// The parts of state.json that a run's numbers are in; the rest names files and times.
std::string state_of(const fs::path& checkpoint) {
  const fs::path file = checkpoint / train::kStateFile;
  const io::Json json = train::parse_state(io::read_file(file), file.string());
  return io::extract(file.string(), [&] { return json.at("state").dump(); });
}

// Lines of metrics.jsonl without what depends on the clock and on the machine's load.
std::vector<std::string> numbers_of(const fs::path& folder) {
  std::vector<std::string> lines;
  std::istringstream file(io::read_file(folder / monitor::kMetricsJsonl));
  for (std::string line; std::getline(file, line);) {
    io::Json record = io::parse_json(line, monitor::kMetricsJsonl);
    for (const char* key : {"time", "seconds", "items_per_second", "wait_share", "memory_bytes"})
      record.erase(key);
    lines.push_back(record.dump());
  }
  return lines;
}

// "": they are the same.
std::string first_difference(std::vector<std::string> a, std::vector<std::string> b) {
  if (a == b) return "";
  const std::size_t lines = std::max(a.size(), b.size());
  a.resize(lines, "nothing");
  b.resize(lines, "nothing");
  const auto at =
      static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  return fmt::format("metrics.jsonl (line {}: {} instead of {})", at + 1, b[at], a[at]);
}

fs::path newest_checkpoint(const fs::path& folder) {
  const std::vector<train::NumberedCheckpoint> list =
      train::list_checkpoints(RunFolder(folder).checkpoints());
  if (list.empty()) throw InternalError("a run has left no checkpoint");
  return list.back().path;
}

// What differs between the two runs, each named.
std::vector<std::string> compare(const fs::path& whole, const fs::path& parts) {
  const fs::path a = newest_checkpoint(whole), b = newest_checkpoint(parts);
  std::vector<std::string> different;
  const auto check = [&](bool same, const char* what) {
    if (!same) different.emplace_back(what);
  };
  const auto bytes = [](const fs::path& path) { return io::read_file(path, kMaxFileBytes); };
  check(a.filename() == b.filename(), "the number of updates");
  check(bytes(a / "model.safetensors") == bytes(b / "model.safetensors"), "the parameters");
  check(bytes(a / "optimizer.safetensors") == bytes(b / "optimizer.safetensors"),
        "the optimizer's state");
  check(state_of(a) == state_of(b), "the history of losses and counters");
  check(bytes(whole / "model.safetensors") == bytes(parts / "model.safetensors"),
        "the final model");
  if (std::string lines = first_difference(numbers_of(whole), numbers_of(parts)); !lines.empty())
    different.push_back(std::move(lines));
  return different;
}

// Evenly spread over the run, the first and the last batch included.
std::vector<std::int64_t> places_in(std::int64_t batches, std::int64_t count) {
  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t span = batches - 2;
    places.push_back(1 + (count > 1 ? k * span / (count - 1) : span / 2));
  }
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

RunConfig quiet(RunConfig config, std::int64_t steps) {
  config.max_steps = steps;
  config.output.progress = "none";
  config.output.plots = false;
  config.output.tensorboard = false;
  config.output.log_interval = 1;
  return config;
}

}  // namespace

VerifyResult verify_resume(RunConfig config, const VerifyOptions& options) {
  const RunData data = open_run_data(config);
  const RunLength length =
      run_length(config, *open_loader(data.train, config, data.facts, Use::training));
  VerifyResult result;
  result.steps = std::min(options.steps, length.total_steps);
  config = quiet(std::move(config), result.steps);
  const std::int64_t epochs = result.steps / length.steps_per_epoch,
                     rest = result.steps % length.steps_per_epoch;
  const std::int64_t batches =
      epochs * length.batches + std::min(rest * config.accumulate, length.batches);
  if (batches < 2)
    throw TypeError("a run of one batch cannot be interrupted: give more --steps or epochs");
  result.places = places_in(batches, options.interruptions);

  const ScratchFolder scratch;
  const fs::path whole = scratch.path() / "whole";
  options.tell(fmt::format("in one piece: {}, {} batches",
                           counted(static_cast<std::size_t>(result.steps), "update"), batches));
  run_interrupted(config, whole, length.batches, {}, options.plan_cache);
  const auto try_places = [&](const std::vector<std::int64_t>& places, const std::string& name) {
    run_interrupted(config, scratch.path() / name, length.batches, places, options.plan_cache);
    const std::vector<std::string> different = compare(whole, scratch.path() / name);
    options.tell(fmt::format("interrupted after batch {}: {}", fmt::join(places, ", "),
                             different.empty()
                                 ? "the same bits"
                                 : fmt::format("{} differ", fmt::join(different, ", "))));
    for (const std::string& what : different)
      result.differences.push_back(
          fmt::format("{} (interrupted after batch {})", what, fmt::join(places, ", ")));
    io::remove_tree(scratch.path() / name);
  };
  for (const std::int64_t place : result.places)
    try_places({place}, fmt::format("interrupted-{}", place));
  if (result.places.size() > 1) try_places(result.places, "interrupted-everywhere");
  return result;
}

}  // namespace pantala::run
