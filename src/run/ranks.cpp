#include "run/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/log.h"
#include "base/text.h"
#include "compiler/build_id.h"
#include "device/describe.h"
#include "device/device.h"
#include "distributed/collectives.h"
#include "pantala/error.h"

namespace pantala::run {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "epochs = 3 there, epochs = 5 on rank 0".
std::string difference(const std::string& there, const std::string& first) {
  const std::vector<std::string> a = lines_of(there), b = lines_of(first);
  const std::size_t most = std::max(a.size(), b.size());
  const auto line = [](const std::vector<std::string>& lines, std::size_t k) {
    return k < lines.size() ? lines[k] : std::string("nothing");
  };
  for (std::size_t k = 0; k < most; ++k)
    if (line(a, k) != line(b, k))
      return fmt::format("{} there, {} on rank 0", line(a, k), line(b, k));
  return "";
}

// The CPUs that this process may use, as text: "0-3" is 0,1,2,3.
std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return "";
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus += fmt::format("{},", cpu);
  return cpus;
}

}  // namespace

RunRanks::RunRanks(std::shared_ptr<distributed::Communicator> ranks) : ranks_(std::move(ranks)) {}

void RunRanks::meet() const {
  if (ranks_) distributed::meet(*ranks_);
}

std::string RunRanks::joined(const std::string& own) const {
  if (!are_several()) return own;
  return fmt::format("{}", fmt::join(distributed::gather_texts(*ranks_, own), ""));
}

bool RunRanks::any(bool is_true) const {
  if (!ranks_) return is_true;
  return std::ranges::max(distributed::gather_all(*ranks_, std::uint8_t{is_true})) != 0;
}

void RunRanks::agree(const std::vector<Claim>& claims) const {
  if (!are_several()) return;
  for (const Claim& claim : claims) {
    const std::vector<std::string> texts = distributed::gather_texts(*ranks_, claim.text);
    for (std::size_t rank = 1; rank < texts.size(); ++rank)
      if (texts[rank] != texts[0])
        throw TypeError(fmt::format("rank {} on {} has another {}: {}", rank,
                                    ranks_->host(static_cast<int>(rank)), claim.what,
                                    difference(texts[rank], texts[0])));
  }
}

std::pair<std::int64_t, std::int64_t> RunRanks::range(std::int64_t own) const {
  if (!ranks_) return {own, own};
  const auto [least, most] = std::ranges::minmax(distributed::gather_all(*ranks_, own));
  return {least, most};
}

bool RunRanks::is_first_of_host() const {
  for (int rank = 0; rank < ranks_->rank(); ++rank)
    if (ranks_->host(rank) == ranks_->host(ranks_->rank())) return false;
  return true;
}

void RunRanks::one_first(const std::function<void()>& body) const {
  if (!are_several()) return body();
  if (!is_first_of_host()) meet();
  body();
  if (is_first_of_host()) meet();
}

distributed::Range RunRanks::own_batches(std::int64_t batches) const {
  return distributed::shards_of_rank(batches, size(), ranks_ ? ranks_->rank() : 0);
}

int RunRanks::threads() const {
  const int cpus = device::default_workers();
  if (!are_several()) return cpus;
  const std::string own = ranks_->host(ranks_->rank()) + ' ' + affinity();
  const auto sharing = std::ranges::count(distributed::gather_texts(*ranks_, own), own);
  return std::max(1, cpus / static_cast<int>(sharing));
}

RunConfig with_shards(RunConfig config, const RunConfig* recorded, const RunRanks& ranks) {
  std::int64_t& shards = config.distributed.shards;
  const std::int64_t own = recorded ? std::max<std::int64_t>(recorded->distributed.shards, 1) : 0;
  if (shards == 0 && recorded) shards = recorded->distributed.shards;
  if (shards == 0 && ranks.are_several()) shards = recorded ? 1 : ranks.size();
  if (shards == 0 || shards >= ranks.size()) return config;
  throw TypeError(
      recorded && shards == own
          ? fmt::format("the run in {} has {}, too few for {} ranks: a rank needs one at least. It "
                        "goes on with the same bits on up to {}; --restart trains anew",
                        config.output.folder, counted(static_cast<std::size_t>(shards), "shard"),
                        ranks.size(), counted(static_cast<std::size_t>(shards), "rank"))
          : fmt::format("distributed.shards is {}, too few for {} ranks: a rank needs one at least",
                        shards, ranks.size()));
}

std::vector<Claim> claims_of(const RunConfig& config, const std::string& data) {
  RunConfig compared = config;
  compared.threads = 0;  // may differ: the numbers do not depend on it
  compared.compile.cost_table = "";
  return {{"version of Pantala", std::string(compiler::build_id())},
          {"config", write_toml(compared)},
          {"cost table", cost_table_text(config.compile.cost_table)},
          {"data set", data}};
}

std::string common_target(const RunRanks& ranks, std::int64_t vector_bytes, bool strict) {
  if (!ranks.are_several()) return "";
  const std::vector<std::int64_t> widths =
      distributed::gather_all(*ranks.communicator(), vector_bytes);
  const auto least = std::ranges::min_element(widths), most = std::ranges::max_element(widths);
  if (*least == *most) return "";
  const auto about = [&](auto which) {
    const auto rank = static_cast<int>(which - widths.begin());
    return fmt::format("rank {} on {} has vectors of {} bytes", rank,
                       ranks.communicator()->host(rank), *which);
  };
  const std::string what =
      fmt::format("the ranks have different processors: {}, {}", about(least), about(most));
  if (strict)
    throw TypeError(what + ": the bits would not be those of a run on processors of one kind");
  if (ranks.writes())
    logging::warning("{}; all compute as the narrower one, with the bits of that", what);
  return *least <= 16 ? "x86-64" : "x86-64-v3";
}

void check_devices(const RunConfig& config, const RunRanks& ranks) {
  if (!ranks.are_several() || config.device == "cpu" || config.device == "kir") return;
  const distributed::Communicator& all = *ranks.communicator();
  const std::string own =
      fmt::format("{} on {}", device::describe(config.device).brief, all.host(all.rank()));
  const std::vector<std::string> used = distributed::gather_texts(*ranks.communicator(), own);
  std::map<std::string, std::size_t> user;
  for (std::size_t rank = 0; rank < used.size(); ++rank)
    if (const auto [first, is_new] = user.emplace(used[rank], rank); !is_new)
      throw TypeError(
          fmt::format("ranks {} and {} share a GPU: {}; start one rank for each GPU, or choose "
                      "them by --device "
                      "vulkan:N",
                      first->second, rank, used[rank]));
}

}  // namespace pantala::run
