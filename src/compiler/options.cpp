#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "base/host_caches.h"
#include "base/text.h"
#include "codegen/llvm/llvm.h"
#include "io/file.h"
#include "pantala/error.h"
#include "rewrite/rules/rules.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/gpu/archetypes.h"
#include "schedule/gpu/cost_tables.h"
#include "vulkan/instance.h"

namespace pantala::compiler {

namespace {

codegen::HostTarget processor_named(const std::string& name) {
  return name.empty() ? codegen::detect_host() : codegen::known_target(name);
}
schedule::Target target_of(const CodeFor& machine) {
  return schedule_target(processor_named(machine.processor));
}
std::string code_of(const CodeFor& machine) {
  return codegen::target_name(processor_named(machine.processor));
}
codegen::CompiledKernels compile_for(const CodeFor& machine, std::span<const kir::Kernel> kernels,
                                     int threads, const codegen::BeforeEach& before_each) {
  return codegen::compile_all(kernels, processor_named(machine.processor), threads, before_each);
}

const schedule::ArchetypeTable& archetypes_of(const CodeFor&) {
  return schedule::cpu::archetypes();
}

const schedule::CostTable& costs_of(const schedule::Target& target) {
  return schedule::cpu::shipped_cost_table(target.vector_bytes);
}

// The interpreter runs the kernels of the CPU, or those of a GPU that there need not be.
bool is_gpu(const CodeFor& machine) { return machine.processor == "gpu"; }
const schedule::ArchetypeTable& interpreted_archetypes(const CodeFor& machine) {
  return is_gpu(machine) ? schedule::gpu::archetypes() : schedule::cpu::archetypes();
}
schedule::Target interpreted_target(const CodeFor& machine) {
  return is_gpu(machine) ? schedule::gpu::least_target() : target_of(machine);
}
const schedule::CostTable& interpreted_costs(const schedule::Target& target) {
  return target.has_groups() ? schedule::gpu::shipped_cost_table(target) : costs_of(target);
}
std::string interpreted_code(const CodeFor& machine) {
  return is_gpu(machine) ? "gpu" : code_of(machine);
}

const schedule::ArchetypeTable& gpu_archetypes(const CodeFor&) {
  return schedule::gpu::archetypes();
}
// Shared memory that sums over a workgroup need beside what kernels ask for.
constexpr std::int64_t kGroupSums = 4 << 10;

schedule::Target gpu_target(const CodeFor& machine) {
  const vulkan::DeviceInfo info = vulkan::choose(machine.choice);
  schedule::Target target = schedule::gpu::least_target();
  const auto most =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(info.max_invocations, 1, 256));
  target.group_threads = static_cast<int>(std::bit_floor(most));
  target.subgroup_threads = std::max(info.subgroup, 1);
  target.group_bytes = info.shared_bytes - kGroupSums;
  return target;
}
// Modules are made when a plan is loaded, since they depend on its sizes.
std::string gpu_code(const CodeFor& machine) { return vulkan::choose(machine.choice).identity; }

constexpr Backend kBackends[] = {
    {"cpu", archetypes_of, target_of, code_of, costs_of, compile_for},
    {"kir", interpreted_archetypes, interpreted_target, interpreted_code, interpreted_costs,
     nullptr},
    {"vulkan", gpu_archetypes, gpu_target, gpu_code, schedule::gpu::shipped_cost_table, nullptr},
};

}  // namespace

const Backend& backend_of(std::string_view device) {
  for (const Backend& backend : kBackends)
    if (backend.device == device.substr(0, device.find(':'))) return backend;
  throw UnsupportedError(fmt::format("there is no code for the device '{}'; there are {}", device,
                                     fmt::join(backend_names(), ", ")));
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.emplace_back(backend.device);
  return names;
}

schedule::Target schedule_target(const codegen::HostTarget& host) {
  const HostCaches caches = host_caches();
  return {.vector_bytes = host.vector_bytes,
          .vector_registers = host.vector_registers,
          .l1_bytes = caches.l1_bytes,
          .l2_bytes = caches.l2_bytes,
          .l3_bytes = caches.l3_bytes,
          .l1_ways = caches.l1_ways};
}

Options host_options(const std::string& name, int threads, bool fuse,
                     const std::string& processor) {
  const std::string device = vulkan::resolved_device(name);
  const Backend& backend = backend_of(device);
  if (threads < 0) throw TypeError(fmt::format("threads must not be negative, got {}", threads));
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Options options{.device = device,
                  .processor = processor,
                  .fuse = fuse,
                  .threads = threads == 0 ? available : threads};
  options.target = backend.target(options.code_for());
  return options;
}

CodeFor Options::code_for() const {
  const std::size_t colon = device.find(':');
  return {colon == std::string::npos ? "" : device.substr(colon + 1), processor};
}

namespace {

search::Level level_of(const CompileOptions& options) {
  if (!options.optimize || options.rewrite == Rewrite::none) return search::Level::none;
  return options.rewrite == Rewrite::greedy ? search::Level::greedy : search::Level::egraph;
}

// Equal bits, or the same numbers added in the same order, which are equal bits too.
rewrite::Promise promise_of(Numerics numerics) {
  switch (numerics) {
    case Numerics::strict:
      return rewrite::Promise::order;
    case Numerics::relaxed:
      return rewrite::Promise::real;
    case Numerics::fast:
      break;
  }
  return rewrite::Promise::finite;
}

void check_rules(const std::vector<std::string>& off) {
  std::vector<std::string> names;
  for (const rewrite::Rule& rule : rewrite::all_rules()) names.push_back(rule.name);
  names.emplace_back(search::kLayoutsName);
  for (const std::string& name : off)
    if (std::ranges::find(names, name) == names.end())
      throw TypeError(fmt::format("rules_off: there is no rule '{}'{}; there are {}", name,
                                  did_you_mean(name, names), fmt::join(names, ", ")));
}

// Tables have less than a kilobyte; comments may stand between the lines.
constexpr std::uint64_t kMaxTableBytes = 64 << 10;

schedule::CostTable named_table(const std::string& named) {
  if (named.find('\n') != std::string::npos)
    return schedule::parse_cost_table(named, "the cost table");
  return schedule::parse_cost_table(io::read_file(named, kMaxTableBytes), named);
}

// What tiles are made of is in the table, too.
void check_table(const schedule::CostTable& table, const Options& options) {
  const auto kind = [](bool has_groups) { return has_groups ? "a GPU" : "a processor"; };
  if (table.target.has_groups() == options.target.has_groups()) return;
  throw TypeError(
      fmt::format("the cost table '{}' is of {}, the device {} is {}; `pantala tune "
                  "--device {}` makes one for it",
                  table.name, kind(table.target.has_groups()), options.device,
                  kind(options.target.has_groups()), options.device));
}

}  // namespace

Options host_options(const CompileOptions& options) {
  check_rules(options.rules_off);
  if (options.memory_limit < 0)
    throw TypeError(fmt::format("memory_limit must not be negative, got {}", options.memory_limit));
  Options lower = host_options(options.device, options.threads, options.optimize, options.target);
  lower.level = level_of(options);
  lower.promise = promise_of(options.numerics);
  lower.rules_off = options.rules_off;
  lower.greedy_order = options.greedy_order;
  lower.memory_limit = options.memory_limit;
  if (!options.cost_table.empty()) {
    lower.table = named_table(options.cost_table);
    check_table(*lower.table, lower);
  }
  lower.trace = options.trace;
  lower.cancelled = options.cancelled;
  return lower;
}

const schedule::CostTable& shipped_cost_table(const Options& options) {
  return backend_of(options.device).costs(options.target);
}

const schedule::CostTable& cost_table(const Options& options) {
  return options.table ? *options.table : shipped_cost_table(options);
}

}  // namespace pantala::compiler

namespace pantala {

std::string cost_table_text(const std::string& cost_table) {
  return cost_table.empty() ? "" : schedule::to_text(compiler::named_table(cost_table));
}

}  // namespace pantala
