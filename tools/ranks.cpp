#include "tools/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/text.h"
#include "distributed/launcher.h"
#include "distributed/mpi.h"
#include "io/json.h"
#include "pantala/error.h"
#include "tools/command.h"

namespace pantala::tools {

namespace {

namespace fs = std::filesystem;
using distributed::MpiCommunicator;

// In a build tree and where the command is installed, or where the variable says.
std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("PANTALA_PLUGINS")) return {given};
  std::error_code unknown;
  const fs::path command = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path prefix = command.parent_path().parent_path();
  for (const char* folder : {"lib", PANTALA_LIBDIR})
    if (const fs::path path = prefix / folder / "pantala";
        folders.empty() || folders.back() != path)
      folders.push_back(path);
  return folders;
}

// For tests: microseconds that every message is late.
std::chrono::microseconds delay() {
  const char* given = std::getenv("PANTALA_MPI_DELAY");
  return std::chrono::microseconds(given ? std::strtol(given, nullptr, 10) : 0);
}

// For tests of faults: "1:20:exit" is a callback of rank 1 that calls exit() after 20 updates,
// "1:20:throw" one that throws.
struct Fault {
  int rank = 0;
  std::int64_t steps = 0;
  std::string how;
};
std::optional<Fault> planned_fault() {
  const char* given = std::getenv("PANTALA_MPI_FAULT");
  if (!given || *given == '\0') return {};
  Fault fault;
  char colon = 0;
  std::istringstream text(given);
  text >> fault.rank >> colon >> fault.steps >> colon >> fault.how;
  return fault;
}

void tell(const run::RunConfig& config, const std::string& text) {
  if (config.output.progress == "json")
    print_error("{}\n", io::OrderedJson{{"event", "message"}, {"text", text}}.dump());
  else
    print_error("pantala: {}\n", text);
}

std::shared_ptr<MpiCommunicator> open_ranks(const run::RunConfig& config,
                                            const distributed::Launch* launch) {
  using Milliseconds = std::chrono::milliseconds;
  return distributed::open_mpi(
      {.folders = plugin_folders(),
       .plugins = launch ? launch->plugins : distributed::all_plugins(),
       .timeout = Milliseconds(static_cast<std::int64_t>(1000 * config.distributed.timeout)),
       .delay = delay(),
       .tell = [config](const std::string& text) { tell(config, text); }});
}

int run_body(MpiCommunicator& ranks, const std::function<int()>& body) {
  try {
    return body();
  } catch (const distributed::OtherRankError& error) { return error.code(); } catch (...) {
    const auto [plain, code] = error_answer();
    // What rank 0 meets, all of them do as a rule.
    const std::string message = ranks.rank() == 0 ? plain
                                                  : fmt::format("rank {} on {}: {}", ranks.rank(),
                                                                ranks.host(ranks.rank()), plain);
    if (ranks.fail(message, code)) print_error("pantala: {}\n", message);
    return code;
  }
}

}  // namespace

void add_distributed_option(VerbOptions& verb, std::string& mode, const std::string& what) {
  verb.add_option("--distributed", mode,
                  fmt::format("Several processes {} together: mpi, none, or auto, which is mpi "
                              "where mpirun or srun has started them",
                              what))
      ->type_name("HOW");
}

run::Trained open_on_ranks(const std::string& folder, run::OpenOptions options,
                           const run::RunRanks& ranks) {
  const run::RunFolder opened = run::open_run_folder(folder);
  if (ranks.are_several() && options.threads == 0 && opened.config().threads == 0)
    options.threads = ranks.threads();
  std::optional<run::Trained> trained;
  ranks.one_first([&] { trained.emplace(run::open_trained(opened, options)); });
  run::check_devices(trained->config, ranks);
  return std::move(*trained);
}

void agree_on_items(const run::RunRanks& ranks, const run::Trained& trained,
                    const data::Dataset& items) {
  ranks.agree(run::claims_of(trained.config,
                             fmt::format("{}\n{}\n{}, {}", run::facts_json(trained.facts),
                                         trained.weights_text(), items.name, items.size())));
}

OwnBatches::OwnBatches(const run::RunRanks& ranks, std::unique_ptr<data::Loader> all)
    : all_(std::move(all)), own_(ranks.own_batches(all_->batches().value_or(0))) {
  reset();
}

void OwnBatches::shuffle(std::uint64_t) { reset(); }

void OwnBatches::reset() {
  next_ = own_.first;
  all_->seek(0, own_.first);
}

std::optional<data::Batch> OwnBatches::next_batch() {
  if (next_ == own_.last) return {};
  ++next_;
  return all_->next_batch();
}

// All batches but the last one have the same size.
std::int64_t OwnBatches::first_item() const {
  const std::vector<std::int64_t> sizes = all_->batch_sizes();
  return sizes.empty() ? 0 : own_.first * std::ranges::max(sizes);
}

void meet_planned_fault(const distributed::Communicator* ranks, std::int64_t steps) {
  static const std::optional<Fault> fault = planned_fault();
  if (!fault || !ranks || ranks->rank() != fault->rank || steps < fault->steps) return;
  if (fault->how == "exit") std::exit(3);
  throw DeviceError("a callback has failed, as PANTALA_MPI_FAULT asks for");
}

int in_ranks(const std::string& mode, const run::RunConfig& config,
             const std::function<int(const std::shared_ptr<distributed::Communicator>&)>& body) {
  const std::vector<std::string> modes = {"auto", "mpi", "none"};
  if (std::ranges::find(modes, mode) == modes.end())
    throw TypeError(fmt::format("--distributed must be auto, mpi or none, got '{}'{}", mode,
                                did_you_mean(mode, modes)));
  const auto launch = distributed::launch_of([](const char* name) { return std::getenv(name); });
  if (mode == "none" || (mode == "auto" && !launch)) return body(nullptr);
  std::shared_ptr<MpiCommunicator> ranks;
  try {
    ranks = open_ranks(config, launch ? &*launch : nullptr);
  } catch (const Error&) {
    // All of them find the same: the first one says it.
    if (launch && launch->rank > 0) return kExitUsage;
    throw;
  }
  const int code = run_body(*ranks, [&] { return body(ranks); });
  ranks->close();
  return code;
}

}  // namespace pantala::tools
