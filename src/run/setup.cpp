#include "run/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/doing.h"
#include "base/text.h"
#include "device/describe.h"
#include "device/device.h"
#include "pantala/error.h"
#include "run/parameter_groups.h"
#include "train/plans.h"

namespace pantala::run {

namespace {

NonFinite non_finite_of(const RunConfig& config) {
  if (config.non_finite == "skip") return NonFinite::skip;
  return config.non_finite == "propagate" ? NonFinite::propagate : NonFinite::error;
}

KeptStatistics kept_statistics_of(const RunConfig& config) {
  if (config.model.batch_norm == "frozen") return KeptStatistics::all;
  return config.model.batch_norm == "training" ? KeptStatistics::none : KeptStatistics::of_frozen;
}

// On one machine messages are copies that take as long as they take: what they gain while the
// backward pass runs it loses.
bool has_network(const std::shared_ptr<distributed::Communicator>& ranks) {
  for (int rank = 1; ranks && rank < ranks->size(); ++rank)
    if (ranks->host(rank) != ranks->host(0)) return true;
  return false;
}

// The model, with a look at whether the config's groups are its own.
ModelFactory checked_factory(const RunConfig& config, const ModelShape& shape) {
  return [config, make = model_factory(config, shape)](std::int64_t batch, Phase phase) {
    TrainableGraph model = make(batch, phase);
    if (phase == Phase::training) {
      std::vector<std::string> names;
      for (const Leaf& leaf : model.graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
      check_groups(config, names);
    }
    return model;
  };
}

}  // namespace

RunLength run_length(const RunConfig& config, const data::Loader& training) {
  const std::int64_t batches = training.batches().value_or(0);
  if (batches < 1)
    throw TypeError(
        fmt::format("an epoch has no batch: the training set has fewer than {} items (batch_size), "
                    "and the short last batch is left out (data.drop_last)",
                    config.batch_size));
  RunLength length{.batches = batches,
                   .steps_per_epoch = (batches + config.accumulate - 1) / config.accumulate};
  // Only rate schedules need the total: more steps than this they cannot tell apart.
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  length.total_steps = config.epochs > kMost / length.steps_per_epoch
                           ? kMost
                           : config.epochs * length.steps_per_epoch;
  if (config.max_steps > 0) length.total_steps = std::min(length.total_steps, config.max_steps);
  return length;
}

CompileOptions compile_options(const RunConfig& config) {
  CompileOptions options;
  options.device = config.device;
  options.threads = compute_threads(config);
  options.rewrite = rewrite_named(config.compile.rewrite);
  options.numerics = numerics_named(config.compile.numerics);
  options.rules_off = comma_parts(config.compile.rules_off);
  options.memory_limit = memory_limit_named(config.compile.memory_limit);
  options.cost_table = cost_table_text(config.compile.cost_table);
  options.accumulation_steps = config.accumulate;
  options.normalize = config.accumulate_normalize;
  if (config.clip.norm > 0) options.training.clip.norm = config.clip.norm;
  if (config.clip.value > 0) options.training.clip.value = config.clip.value;
  if (config.ema.decay > 0) options.training.ema_decay = config.ema.decay;
  options.training.groups = parameter_groups(config);
  options.training.kept_statistics = kept_statistics_of(config);
  options.training.global_norm = config.output.gradient_norm;
  return options;
}

CompileOptions compile_options(const RunConfig& config, Phase phase) {
  const CompileOptions training = train::training_options(
      {.optimizer = optimizer_of(config), .non_finite = non_finite_of(config)},
      compile_options(config));
  return phase == Phase::training ? training : train::evaluation_options(training);
}

Trainer make_trainer(const RunConfig& config, const ModelShape& shape, std::int64_t total_steps,
                     const std::filesystem::path& plan_cache, std::function<bool()> cancelled,
                     std::shared_ptr<distributed::Communicator> ranks, const std::string& target) {
  const bool overlaps = config.distributed.overlap && has_network(ranks);
  const Doing doing(
      fmt::format("compiling {} for batches of {}", model_title(config), config.batch_size));
  RateRule rate = rate_of(config, total_steps);
  TrainConfig train{.optimizer = optimizer_of(config),
                    .log_interval = 0,  // the run has logs of its own
                    .class_axis = shape.positions.rank() > 0 ? -1 : 1,
                    .measured = shape.measured,
                    .rate_schedule = std::move(rate.rate_schedule),
                    .plateau = std::move(rate.plateau),
                    .plateau_metric = std::move(rate.plateau_metric),
                    .non_finite = non_finite_of(config),
                    .plan_cache = plan_cache,
                    .distributed = {.ranks = std::move(ranks),
                                    .shards = config.distributed.shards,
                                    .shard_optimizer = config.distributed.shard_optimizer,
                                    .overlap = overlaps,
                                    .check_every = config.distributed.check_every}};
  CompileOptions compile = compile_options(config);
  compile.cancelled = std::move(cancelled);
  compile.target = target;
  return Trainer(checked_factory(config, shape), config.batch_size, std::move(train),
                 std::move(compile), {.seed = static_cast<std::uint64_t>(config.seed)});
}

int compute_threads(const RunConfig& config) {
  return config.threads > 0 ? static_cast<int>(config.threads) : device::default_workers();
}

std::string device_line(const RunConfig& config) {
  const device::Description device = device::describe(config.device);
  if (device.checks) return fmt::format("device {}: {}", config.device, device.brief);
  return fmt::format("device {}: {}, {}", config.device, device.brief,
                     counted(static_cast<std::size_t>(compute_threads(config)), "thread"));
}

}  // namespace pantala::run
