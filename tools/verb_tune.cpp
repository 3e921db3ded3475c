// pantala tune: measures a cost table for the machine at hand, or for one of its devices.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/doing.h"
#include "base/text.h"
#include "compiler/options.h"
#include "device/describe.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "pantala/error.h"
#include "tools/bench/workloads.h"
#include "tools/command.h"
#include "tools/compile_flags.h"
#include "tools/options.h"
#include "tools/process.h"
#include "tools/tune/fit.h"
#include "tools/tune/measure.h"
#include "tools/tune/probes.h"

namespace pantala::tools {

namespace {

using schedule::CostField;
using schedule::CostTable;

struct TuneOptions {
  std::string out, device, target, table;
  std::vector<std::string> workloads;
  double seconds = 20;
  bool json = false;
};

// The time that was given, and how much of it is left for each of so many measurements.
class Budget {
 public:
  explicit Budget(double seconds) : seconds_(seconds) {}
  double left() const {
    return std::max(0.0, seconds_ - std::chrono::duration<double>(Clock::now() - begin_).count());
  }
  double share(std::size_t measurements) const {
    return left() / static_cast<double>(std::max<std::size_t>(measurements, 1));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  double seconds_;
};

// What was measured: launches to fit constants to, and those that a table is judged by.
struct Measurements {
  std::vector<Measured> fitted, held_out;
  double launch_us = 0, shared_launch_us = 0;
};

constexpr double kMostOfProbe = 0.4;  // seconds: more runs find nothing better
constexpr double kOfWorkload = 1;

class Tuning {
 public:
  Tuning(const TuneOptions& options, Machine machine, schedule::Target target)
      : options_(options),
        budget_(options.seconds),
        machine_(std::move(machine)),
        target_(target) {}

  Measurements measure_all() {
    Measurements all;
    measure_launches(all);
    measure_probes(all);
    measure_held_out(all);
    // Beyond the time for what is always measured.
    for (const std::string& name : options_.workloads)
      all.fitted.push_back(measure(make_workload(name, BenchMode::train), machine_, kOfWorkload));
    return all;
  }

 private:
  void measure_probes(Measurements& all) {
    std::vector<std::vector<Probe>> rounds = probe_rounds(target_, machine_.threads);
    // There is no part of a device that shares memory with none.
    if (machine_.takes_times())
      for (std::vector<Probe>& round : rounds) std::erase_if(round, std::mem_fn(&Probe::is_alone));
    // Half of what is left is for the launches that judge, and for fitting.
    const double enough = budget_.left() / 2;
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      const std::vector<Probe>& probes = rounds[round];
      for (std::size_t k = 0; k < probes.size(); ++k) {
        if (round > 0 && budget_.left() < enough) break;
        const double left = std::max(0.0, budget_.left() - enough);
        all.fitted.push_back(
            measure(probes[k], machine_,
                    std::min(kMostOfProbe, left / static_cast<double>(probes.size() - k))));
      }
    }
  }

  void measure_held_out(Measurements& all) {
    all.held_out.push_back(
        measure(make_workload("lenet64", BenchMode::train), machine_, budget_.left() / 4));
    all.held_out.push_back(measure(
        transformer_workload(
            {.batch = 2, .sequence = 64, .layers = 2, .width = 128, .heads = 2, .vocabulary = 1024},
            BenchMode::train),
        machine_, budget_.left() / 3));
  }

  void measure_launches(Measurements& all) {
    const auto overhead = [&](bool serial) {
      const double seconds = std::min(0.2, budget_.share(20));
      return overhead_of_launch(measure(launch_chain(serial, 8), machine_, seconds),
                                measure(launch_chain(serial, 72), machine_, seconds));
    };
    all.launch_us = overhead(true);
    all.shared_launch_us = overhead(false);
  }

  const TuneOptions& options_;
  Budget budget_;
  Machine machine_;
  schedule::Target target_;
};

double within(std::string_view name, double value) {
  for (const CostField& field : schedule::cost_fields())
    if (field.name == name) return std::clamp(rounded(value), field.least, field.most);
  throw InternalError(fmt::format("tune: a cost table has no {}", name));
}

// The table that was named, or the shipped one with this machine's vectors, caches and threads, or
// the device's groups.
CostTable starting_table(const compiler::Options& options) {
  if (options.table) return *options.table;
  CostTable table = compiler::shipped_cost_table(options);
  table.name = "tuned";
  table.target = options.target;
  if (!options.target.has_groups()) table.workers = options.threads;
  return table;
}

Fitted tuned_table(const CostTable& start, const Measurements& all) {
  const Doing doing("fitting the constants");
  CostTable table = start;
  table.launch = within("launch", all.launch_us);
  table.barrier =
      within("barrier", start.target.has_groups() ? 0 : all.shared_launch_us - all.launch_us);
  Fitted fitted = fit(table, all.fitted);
  for (Constant& constant : fitted.constants)
    if (constant.name == "launch" || constant.name == "barrier") {
      constant.before = constant.name == "launch" ? start.launch : start.barrier;
      constant.launches = 64;
    }
  return fitted;
}

std::string file_text(const CostTable& table, const Machine& machine) {
  const std::string threads =
      machine.takes_times() ? ""
                            : ", " + counted(static_cast<std::size_t>(machine.threads), "thread");
  return fmt::format(
             "# A cost table, measured by pantala tune: {}{}.\n"
             "# It is used where it is named: --cost-table FILE, or compile.cost_table of a run.\n",
             device::describe(machine.device).brief, threads) +
         to_text(table);
}

void write_table(const std::string& file, const std::string& text) {
  schedule::parse_cost_table(text, file);  // what is written can be read
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty())
    if (const std::error_code error = io::make_folders(folder))
      throw IoError(fmt::format("{} cannot be made: {}", folder.string(), error.message()));
  io::write_file(file, text);
}

// A table for each device: cost-table.txt, cost-table-vulkan-0.txt.
std::string usual_file(const Machine& machine) {
  std::string name = machine.takes_times() ? "cost-table-" + machine.device : "cost-table";
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '-');
  return (config_folder() / (name + ".txt")).string();
}

struct Result {
  std::string file, device;
  CostTable shipped;
  Fitted fitted;
  Score before, after;
};

void print_text(const Result& result) {
  fmt::print("{:<20} {:>10} {:>10}  launches\n", "constant", result.shipped.name, "tuned");
  for (const Constant& one : result.fitted.constants)
    fmt::print("{:<20} {:>10} {:>10}  {}\n", one.name, exact(one.before), exact(one.after),
               one.launches > 0 ? fmt::format("{}", one.launches) : "not measured");
  const auto tell = [](std::string_view name, const Score& score) {
    fmt::print("{:<7} rank correlation {:.3f}, median error {:.0f} %\n", name,
               score.rank_correlation, 100 * score.median_error);
  };
  fmt::print("{} launches of lenet64 and a small transformer, which no constant was fitted to:\n",
             result.before.launches);
  tell(result.shipped.name, result.before);
  tell("tuned", result.after);
  if (result.after.median_error > result.before.median_error)
    fmt::print("The shipped table predicts these better; was the machine busy?\n");
  fmt::print(
      "Written to {}. It is not used by itself, so that the same graph comes out everywhere; to "
      "use "
      "it:\n  pantala train {}--cost-table {}\n",
      result.file, result.device == "cpu" ? "" : fmt::format("--device {} ", result.device),
      result.file);
}

void print_json(const Result& result) {
  const auto of = [](const Score& score) {
    return nlohmann::ordered_json{{"rank_correlation", score.rank_correlation},
                                  {"median_error", score.median_error}};
  };
  nlohmann::ordered_json document{{"file", result.file},
                                  {"digest", hex(digest_of(result.fitted.table))},
                                  {"launches", result.before.launches},
                                  {"shipped", of(result.before)},
                                  {"tuned", of(result.after)},
                                  {"constants", nlohmann::ordered_json::array()}};
  for (const Constant& one : result.fitted.constants)
    document["constants"].push_back({{"name", one.name},
                                     {"shipped", one.before},
                                     {"tuned", one.after},
                                     {"launches", one.launches}});
  fmt::print("{}\n", document.dump());
}

int tune(const TuneOptions& options) {
  if (std::isnan(options.seconds)) throw TypeError("--seconds must be a number, got nan");
  CompileOptions wanted;
  if (!options.device.empty()) wanted.device = options.device;
  wanted.target = options.target;
  wanted.cost_table = options.table;
  for (const std::string& name : options.workloads) require_workload(name);
  const compiler::Options host = compiler::host_options(wanted);
  const Machine machine{host.device, options.target, host.threads};
  const std::string file = options.out.empty() ? usual_file(machine) : options.out;
  if (std::filesystem::is_directory(file))
    throw TypeError(fmt::format("--out {}: this is a folder; name a file", file));
  const Measurements all = [&] {
    const Doing doing("measuring this machine");
    return Tuning(options, machine, host.target).measure_all();
  }();
  const CostTable& shipped = compiler::shipped_cost_table(host);
  Result result{.file = file,
                .device = host.device,
                .shipped = shipped,
                .fitted = tuned_table(starting_table(host), all),
                .before = score(all.held_out, shipped),
                .after = {}};
  result.after = score(all.held_out, result.fitted.table);
  for (Constant& constant : result.fitted.constants)
    if (constant.name == "workers") constant.before = shipped.workers;
  write_table(file, file_text(result.fitted.table, machine));
  (options.json ? print_json : print_text)(result);
  return 0;
}

}  // namespace

Run tune_verb(VerbOptions& verb) {
  const auto options = std::make_shared<TuneOptions>();
  verb.add_option("workload", options->workloads,
                  "Workloads of `pantala bench`: their training steps are measured, too, and the "
                  "table is fitted to what they launch");
  verb.add_option("--out", options->out,
                  "The file to write; not given: pantala/cost-table.txt in $XDG_CONFIG_HOME or "
                  "~/.config, for a GPU cost-table-vulkan.txt")
      ->type_name("FILE");
  add_device_flag(verb, options->device, "cpu");
  verb.add_option("--target", options->target,
                  "A table for a class of processors, such as x86-64-v3 (AVX2), that this one "
                  "belongs to; not given: for this one");
  verb.add_option("--cost-table", options->table,
                  "Begin with this table and keep the processor that it describes; not given: the "
                  "shipped one, with this machine's caches and threads")
      ->type_name("FILE");
  verb.add_option("--seconds", options->seconds,
                  "How long to measure; a little more where this is not enough for the least")
      ->between(0.0, 3600.0)
      ->capture_default_str();
  verb.add_flag("--json", options->json, "One JSON object");
  verb.footer(
      "A table is used where it is named: --cost-table of train, bench, inspect and explain.");
  return [options] { return tune(*options); };
}

}  // namespace pantala::tools
