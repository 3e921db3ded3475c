// Runs, as `pantala train` makes them, for C++ programs. A run has a folder: its config, machine,
// metrics, checkpoints, plots and model are there, it can be interrupted and goes on with the same
// bits. There are two ways:
//
//   a config says everything, data and model included:
//     run::RunConfig config = run::read_config("run.toml", {"epochs=3", "optimizer.lr=0.01"});
//     run::RunOutcome outcome = run::run_training(config);
//
//   a Trainer of one's own, with any graph and any data:
//     FitResult result = run::fit_in_folder(trainer, *loader, {.epochs = 3}, {.folder = "runs/a"});
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pantala/distributed.h"
#include "pantala/monitor.h"
#include "pantala/optim.h"
#include "pantala/trainer.h"

namespace pantala::run {

// What a run is told, with the defaults. docs/training.md explains the keys; a key `data.source` is
// the member data.source.
struct RunConfig {
  std::int64_t seed = 0;
  std::int64_t epochs = 5, max_steps = 0;
  std::int64_t batch_size = 64, accumulate = 1;
  bool accumulate_normalize = true;
  std::string device = "cpu";
  std::int64_t threads = 0;
  std::string non_finite = "error";
  struct {
    std::string rewrite = "egraph", numerics = "relaxed";
    std::string rules_off;     // names, with commas between them
    std::string memory_limit;  // "500M"; none: no limit
    std::string cost_table;    // a file; none: the run's own, at first the shipped one
  } compile;
  struct {
    std::string name = "lenet";
    std::string from;  // an ONNX file instead
    std::string weights, prefix, fresh, unused;
    std::string freeze;  // patterns with commas between, as fresh and unused
    std::string batch_norm = "auto";
    std::string loss = "auto";
    std::vector<double> hidden = {128};  // whole numbers
    std::string activation = "relu";
    std::string task = "auto";
    std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, feed_forward = 0;
  } model;
  struct {
    std::string source = "fashion-mnist";
    // "auto", "test", "none", or the share of the training set as a number.
    std::variant<std::string, double> validation = "auto";
    std::string normalize = "auto";
    bool flip = false;
    std::int64_t crop_pad = 0;
    std::int64_t resize = 0, crop = 0, channels = 0;
    double random_area = 0;
    double rotate = 0;  // degrees
    double jitter_brightness = 0, jitter_contrast = 0, jitter_saturation = 0, jitter_hue = 0;
    std::int64_t sequence = 128, stride = 0, vocabulary = 0;
    std::string token_type = "u16";
    bool drop_last = false;
    std::int64_t threads = 1, prefetch = 4;
    std::string label;
    std::string separator = "auto", missing = "error", onehot;
    std::int64_t subset = 0;
  } data;
  struct {
    std::string name = "adam";
    NamedOptions options;
  } optimizer;
  struct {
    std::string name = "constant";
    NamedOptions options;
  } rate_schedule;
  std::vector<optim::ParameterGroup> groups;
  struct {
    double norm = 0, value = 0;
  } clip;
  struct {
    double decay = 0;
  } ema;
  struct {
    std::int64_t patience = 0;
    std::string metric = "loss";
    double min_delta = 0;
    bool restore_best = true;
  } early_stopping;
  struct {
    std::int64_t every_steps = 0, every_epochs = 1, keep = 3;
    std::string metric = "loss";
  } checkpoint;
  struct {
    std::int64_t shards = 0;  // 0: one for each rank, or none where there is one rank
    bool shard_optimizer = false, overlap = true;
    std::int64_t check_every = 100;
    double timeout = 8;  // seconds
  } distributed;
  struct {
    std::string folder;
    std::string progress = "auto";
    std::optional<std::int64_t> log_interval = {};  // as RunLogOptions
    bool gradient_norm = false, tensorboard = true, plots = true;
  } output;
};

// The config of a TOML file, "": none, with values "key=value" on top. TypeError or ParseError that
// says where a mistake was made and names the nearest key.
RunConfig read_config(const std::filesystem::path& file,
                      const std::vector<std::string>& values = {});

// What the process around a run gives it. Nothing of it changes a number.
struct Surroundings {
  std::filesystem::path plan_cache = {};  // a folder for compiled plans; "": they are not kept
  std::vector<std::string> command = {};  // for environment.json
  // How progress is shown in a mode; empty: on stderr, without a live line.
  std::function<monitor::ProgressOptions(monitor::ProgressMode)> progress = {};
};

struct RunOptions {
  bool resume = false;   // there must be a checkpoint
  bool restart = false;  // what an earlier run left in the folder is removed
  std::function<Request(const Trainer&)> poll = {};  // asked after every batch
  // Asked while plans are compiled, by several threads: true ends the run as a save_and_stop would.
  std::function<bool()> stop = {};
  Surroundings surroundings = {};
  // Several processes make one run, each with its own rank of these; null: this one alone. All are
  // given the same config, and the folder is one that all can read; rank 0 writes.
  std::shared_ptr<distributed::Communicator> ranks = {};
  bool strict_ranks = false;  // end where the same bits cannot be promised
  // Time the kernels (RunOutcome::profile), and write a trace of the run (Session::write_trace; "":
  // none). Bits, logs and checkpoints are the same with and without.
  bool profile = false;
  std::filesystem::path trace = {};
};

struct RunOutcome {
  enum class End : std::uint8_t {
    finished,
    was_finished,  // before: nothing was done
    interrupted,   // and saved
    not_begun,     // stopped while it was being prepared: what was in the folder is as it was
  };
  End end = End::finished;
  std::string result = {};       // what result.json holds, on one line; "" if it was stopped
  std::string result_name = {};  // what messages call it
  std::int64_t steps = 0;        // updates so far
  SessionProfile profile = {};   // of what was trained now, if it was asked for
};
// The whole run, or what is left of it. TypeError listing the keys if the folder holds a run with
// another config; DivergenceError with the diagnosis after FOLDER/diverged was written.
RunOutcome run_training(const RunConfig& config, const RunOptions& options = {});

// --- a trainer of one's own
struct FolderOptions {
  std::filesystem::path folder;
  bool restart = false;  // what an earlier run left in the folder is removed
  monitor::ProgressOptions progress = monitor::progress_on_stderr();
  monitor::RunLogOptions log = {};
  bool plots = true;
  // For environment.json.
  std::vector<std::string> command = {};
  std::string device = "cpu";
  int threads = 0;  // 0: one per CPU
};
// Trainer::fit in a run folder: continues from the newest checkpoint there, shows progress, logs,
// saves into FOLDER/checkpoints, and at the end leaves model.safetensors and the plots. Folder and
// `extra` of fit.checkpoints are the run's own; the rest of `fit` is as for Trainer::fit. The
// trainer keeps the monitor: a second run needs a trainer of its own.
//
// TypeError for a folder with anything else in it, and for one of run_training(); IoError if
// another process trains there.
FitResult fit_in_folder(Trainer& trainer, data::Loader& loader, FitOptions fit,
                        const FolderOptions& options);

}  // namespace pantala::run
