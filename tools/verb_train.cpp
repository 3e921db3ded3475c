// pantala train: trains a model, or continues a run.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/text.h"
#include "io/json.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "run/dry_run.h"
#include "run/result.h"
#include "tools/command.h"
#include "tools/config_flags.h"
#include "tools/options.h"
#include "tools/process.h"
#include "tools/profile/limits.h"
#include "tools/ranks.h"
#include "tools/signals.h"
#include "tools/sweep.h"

namespace pantala::tools {

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  pantala train                                lenet on Fashion-MNIST, 5 epochs\n"
    "  pantala train --model mlp --data csv:iris.csv --epochs 50 --lr 0.01\n"
    "  pantala train run.toml --set optimizer.weight_decay=0.01 --out runs/decay\n"
    "  pantala train run.toml --dry-run             what it would do\n"
    "  pantala train run.toml --sweep optimizer.lr=1e-4,1e-3,1e-2\n"
    "The same command again continues a run that was interrupted. Ctrl-C saves and\n"
    "ends it, a second Ctrl-C two seconds later ends it at once; SIGUSR1 saves and goes on.\n"
    "All keys:\n"
    "pantala train --keys; all options at length: pantala --man | man -l -";

struct TrainOptions {
  std::vector<std::string> sweeps;
  bool resume = false, restart = false, dry_run = false, json = false, keys = false;
  bool profile = false;
  std::string trace;
  std::string distributed = "auto";
  bool strict_ranks = false;
};

constexpr std::size_t kMostKernels = 40;  // that the table shows; JSON has all

void print_result(const run::RunConfig& config, const TrainOptions& options,
                  const run::RunOutcome& outcome) {
  // An interrupted run has no result, and one that was finished before no profile.
  const bool has_profile = options.profile && !outcome.profile.plans.empty();
  const auto limits = [&] {
    return probed_limits(static_cast<int>(config.threads), config.device);
  };
  if (options.json) {
    auto document =
        outcome.result.empty() ? io::OrderedJson::object() : io::OrderedJson::parse(outcome.result);
    if (has_profile) document["profile"] = io::OrderedJson::parse(outcome.profile.json(limits()));
    if (!document.empty()) fmt::print("{}\n", document.dump());
    return;
  }
  if (!outcome.result.empty())
    fmt::print("{}", run::result_text(io::OrderedJson::parse(outcome.result), outcome.result_name));
  if (!has_profile) return;
  std::fflush(stdout);  // the result does not wait for the measurement
  fmt::print("\n{}", outcome.profile.text(limits(), kMostKernels));
}

// For people, or as one more event for whoever reads the progress as JSON.
void tell(const run::RunConfig& config, const std::string& who, const std::string& text) {
  if (config.output.progress == "json")
    print_error("{}\n", io::OrderedJson{{"event", "message"}, {"text", text}}.dump());
  else
    print_error("{}: {}\n", who, text);
}

// How to go on after an interruption: a second --restart would begin anew.
std::string_view way_on(const TrainOptions& options) {
  return options.restart ? "the same command without --restart goes on from there"
                         : "the same command goes on from there";
}

// What is saved, and how to go on.
std::string interruption(const run::RunConfig& config, const TrainOptions& options,
                         const run::RunOutcome& outcome) {
  if (outcome.end == run::RunOutcome::End::not_begun)
    return fmt::format(
        "nothing has been trained yet, and what was in {} is as it was; the same command {}",
        config.output.folder, options.restart ? "begins anew" : "begins, or goes on, there");
  return fmt::format("saved after {} in {}; {}",
                     counted(static_cast<std::size_t>(outcome.steps), "update"),
                     config.output.folder, way_on(options));
}

// Why nothing was trained, and what is not there for that reason.
std::string finished_text(const TrainOptions& options) {
  const std::string_view missing = options.profile && !options.trace.empty()
                                       ? "so there is neither a profile nor a trace of it"
                                   : options.profile        ? "so there is no profile of it"
                                   : !options.trace.empty() ? "so there is no trace of it"
                                                            : "";
  return fmt::format("this run is finished already{}{}; --restart trains anew",
                     missing.empty() ? "" : ", ", missing);
}

int train(const run::RunConfig& config, const TrainOptions& options,
          const std::shared_ptr<distributed::Communicator>& ranks) {
  const SignalWatch signals;
  const run::RunOutcome outcome = run::run_training(
      config, {.resume = options.resume,
               .restart = options.restart,
               .poll =
                   [&](const Trainer& trainer) {
                     meet_planned_fault(ranks.get(), trainer.state().global_steps);
                     return signals.poll();
                   },
               .stop = [&] { return signals.stop_requested(); },
               .surroundings = surroundings(),
               .ranks = ranks,
               .strict_ranks = options.strict_ranks,
               .profile = options.profile,
               .trace = options.trace});
  const bool tells = !ranks || ranks->rank() == 0;
  if (outcome.end == run::RunOutcome::End::interrupted ||
      outcome.end == run::RunOutcome::End::not_begun) {
    if (!tells) return kExitInterrupted;
    const char* const signal = signals.stop_signal();
    tell(config, "pantala",
         fmt::format("{}: {}", signal ? signal : "a signal to another rank",
                     interruption(config, options, outcome)));
    print_result(config, options, outcome);
    return kExitInterrupted;
  }
  if (!tells) return 0;
  if (outcome.end == run::RunOutcome::End::was_finished)
    tell(config, config.output.folder, finished_text(options));
  print_result(config, options, outcome);
  return 0;
}

int train_sweep(const ConfigFlags& flags, const TrainOptions& options) {
  if (options.profile || !options.trace.empty())
    throw TypeError(
        fmt::format("{} is of one run and --sweep trains several: train one of them alone",
                    options.profile ? "--profile" : "--trace"));
  return sweep(flags, {.keys = options.sweeps,
                       .resume = options.resume,
                       .restart = options.restart,
                       .dry_run = options.dry_run,
                       .json = options.json,
                       .tell = tell,
                       .way_on = way_on(options)});
}

}  // namespace

Run train_verb(VerbOptions& verb) {
  const auto options = std::make_shared<TrainOptions>();
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(verb);
  add_repeatable(verb, "--sweep",
                 "One run for each of these values, in sub-folders of --out, then a table of them; "
                 "several keys: every combination",
                 [options](const std::vector<std::string>& texts) { options->sweeps = texts; })
      ->type_name("KEY=V1,V2,...");
  verb.add_flag("--resume", options->resume,
                "Insist on a checkpoint to continue from; without this a run is continued if there "
                "is one");
  verb.add_flag("--restart", options->restart,
                "Remove what an earlier run has left in the folder, and train anew");
  verb.add_flag("--dry-run", options->dry_run,
                "Print the resolved config and what would be trained; train nothing");
  verb.add_flag(
      "--profile", options->profile,
      "Afterwards a table of the kernels: layers, time, share, GFLOP/s, GB/s; of the same "
      "bits");
  verb.add_option("--trace", options->trace,
                  "Write a trace of epochs, steps and kernels that Perfetto opens")
      ->type_name("FILE");
  add_distributed_option(verb, options->distributed, "train");
  verb.add_flag("--strict-ranks", options->strict_ranks,
                "End where the same bits for any number of ranks cannot be promised");
  verb.add_flag("--json", options->json, "The result as one JSON object");
  verb.add_flag("--keys", options->keys, "Print all keys of a config, as a table");
  verb.footer(kExamples);
  return [options, flags] {
    if (options->keys) return fmt::print("{}", run::config_reference()), 0;
    if (!options->sweeps.empty()) return train_sweep(*flags, *options);
    const run::RunConfig config = flags->config();
    if (options->dry_run)
      return fmt::print("{}", run::dry_run(config, options->json, plan_cache())), 0;
    return in_ranks(options->distributed, config,
                    [&](const auto& ranks) { return train(config, *options, ranks); });
  };
}

}  // namespace pantala::tools
