#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "base/host_caches.h"
#include "base/text.h"
#include "codegen/llvm/llvm.h"
#include "io/file.h"
#include "pantala/error.h"
#include "rewrite/rules/rules.h"
#include "schedule/cpu/archetypes.h"

namespace pantala::compiler {

namespace {

codegen::HostTarget processor_named(const std::string& name) {
  return name.empty() ? codegen::detect_host() : codegen::known_target(name);
}
schedule::Target target_of(const std::string& processor) {
  return schedule_target(processor_named(processor));
}
std::string code_of(const std::string& processor) {
  return codegen::target_name(processor_named(processor));
}
codegen::CompiledKernels compile_for(const std::string& processor,
                                     std::span<const kir::Kernel> kernels, int threads,
                                     const codegen::BeforeEach& before_each) {
  return codegen::compile_all(kernels, processor_named(processor), threads, before_each);
}

// The interpreter runs the kernels of the CPU.
constexpr Backend kBackends[] = {
    {"cpu", schedule::cpu::archetypes, target_of, code_of, compile_for},
    {"kir", schedule::cpu::archetypes, target_of, code_of, nullptr},
};

}  // namespace

const Backend& backend_of(std::string_view device) {
  for (const Backend& backend : kBackends)
    if (backend.device == device) return backend;
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

Options host_options(const std::string& device, int threads, bool fuse,
                     const std::string& processor) {
  const Backend& backend = backend_of(device);
  if (threads < 0) throw TypeError(fmt::format("threads must not be negative, got {}", threads));
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {.device = device,
          .processor = processor,
          .target = backend.target(processor),
          .fuse = fuse,
          .threads = threads == 0 ? available : threads};
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
  if (!options.cost_table.empty()) lower.table = named_table(options.cost_table);
  lower.trace = options.trace;
  lower.cancelled = options.cancelled;
  return lower;
}

const schedule::CostTable& cost_table(const Options& options) {
  return options.table ? *options.table : schedule::shipped_cost_table(options.target.vector_bytes);
}

}  // namespace pantala::compiler

namespace pantala {

std::string cost_table_text(const std::string& cost_table) {
  return cost_table.empty() ? "" : schedule::to_text(compiler::named_table(cost_table));
}

}  // namespace pantala
