#include "tools/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
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
    const auto [message, code] = error_answer();
    if (ranks.fail(message, code)) print_error("pantala: {}\n", message);
    return code;
  }
}

}  // namespace

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
