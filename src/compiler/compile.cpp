#include "compiler/compile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "compiler/assemble.h"
#include "compiler/stages.h"
#include "ir/graph_data.h"
#include "ops/host_scalars.h"
#include "pantala/error.h"
#include "schedule/schedule.h"

namespace pantala::compiler {

using schedule::Program;

namespace {

HostRequest host_request(const Program& program) {
  HostRequest request{.outputs = program.host_outputs, .updates = program.host_updates};
  for (const schedule::Uniform& uniform : program.uniforms)
    request.uniforms.emplace_back(uniform.value, uniform.dtype);
  return request;
}

// Ops of the lowered graph: a kernel each, were nothing fused.
std::int64_t count_ops(const Graph& lowered) {
  const auto& nodes = lowered.data()->nodes();
  return std::ranges::count_if(nodes, [](const ir::Node& node) {
    return !node.op->leaf && node.op != &ir::constant_op() && node.op != &ir::data_op();
  });
}

// What no kernel touches lives on the host if it may.
std::vector<CompiledLeaf> describe_leaves(const Graph& graph, const plan::Plan& plan) {
  std::vector<CompiledLeaf> leaves = leaves_of(graph);
  const auto updates = graph.updates();
  for (CompiledLeaf& leaf : leaves) {
    const bool on_device = std::ranges::any_of(plan.regions, [&](const plan::Region& region) {
      return region.storage == plan::Storage::store && region.name == leaf.name;
    });
    leaf.on_host = !on_device && ops::may_live_on_host(leaf.kind, leaf.type);
    const Tensor value = graph.leaf(leaf.name);
    leaf.updated =
        std::ranges::any_of(updates, [&](const auto& update) { return update.first == value; });
  }
  return leaves;
}

void report_program(Report& report, const Program& program) {
  std::vector<Report::Kernel> kernels;
  for (const kir::Kernel& kernel : program.kernels)
    kernels.push_back({.name = kernel.name, .unit = kernel.name});
  for (const schedule::ProgramLaunch& launch : program.launches) {
    Report::Kernel& kernel = kernels.at(launch.kernel);
    ++kernel.launches;
    kernel.flops += launch.flops;
    kernel.bytes += launch.bytes;
    report.flops += launch.flops;
    report.bytes += launch.bytes;
  }
  report.kernels = std::move(kernels);
  report.kernels_after = std::ssize(program.launches);
}

// The objects of the kernels, in their order.
ProgramCode generate_code(const Program& program, const Options& options, Report& report) {
  if (options.device != "cpu") return {};
  codegen::CompiledKernels compiled =
      codegen::compile_all(program.kernels, options.code, options.threads);
  if (compiled.units.size() != program.kernels.size())
    throw InternalError(fmt::format("code generation: {} kernels are {} different ones",
                                    program.kernels.size(), compiled.units.size()));
  ProgramCode code{.target = codegen::target_name(options.code), .objects = {}};
  for (codegen::CompiledUnit& unit : compiled.units) {
    report.units.push_back({unit.name, unit.milliseconds, std::ssize(unit.object)});
    code.objects.push_back(std::move(unit.object));
  }
  return code;
}

// Larger than any memory: a slip in a size. Kernels need not reckon with such numbers.
constexpr std::int64_t kMaxValueBytes = std::int64_t{1} << 40;

void check_value_sizes(const Graph& graph) {
  for (const ir::Node& node : graph.data()->nodes())
    for (const Type& type : node.results)
      if (type.shape.numel() > kMaxValueBytes / dtype_bytes(type.dtype))
        throw UnsupportedError(fmt::format(
            "{}{} takes more than {} GiB, the most that a value may have",
            ir::message_prefix(node.op->name, node.where), type.str(), kMaxValueBytes >> 30));
}

}  // namespace

schedule::Target schedule_target(const codegen::HostTarget& host) {
  schedule::Target target{.vector_bytes = host.vector_bytes,
                          .vector_registers = host.vector_registers};
  const auto known = [](int name, std::int64_t otherwise) {
    const long value = sysconf(name);
    return value > 0 ? value : otherwise;
  };
  target.l1_bytes = known(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l1_ways = static_cast<int>(known(_SC_LEVEL1_DCACHE_ASSOC, target.l1_ways));
  target.l2_bytes = known(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = known(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

Options host_options(const std::string& device, int threads, bool fuse) {
  if (device != "cpu" && device != "kir")
    throw UnsupportedError(
        fmt::format("there is no code for the device '{}'; there are cpu, kir", device));
  if (threads < 0) throw TypeError(fmt::format("threads must not be negative, got {}", threads));
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const codegen::HostTarget host = codegen::detect_host();
  return {.device = device,
          .target = schedule_target(host),
          .code = host,
          .fuse = fuse,
          .threads = threads == 0 ? available : threads};
}

std::vector<CompiledLeaf> leaves_of(const Graph& graph) {
  std::vector<CompiledLeaf> leaves;
  for (const Leaf& leaf : graph.leaves()) {
    CompiledLeaf described{leaf.kind, leaf.name, leaf.value.type()};
    const ir::AttrValues& attrs = graph.data()->node(leaf.value.id().node).attrs;
    if (leaf.kind == LeafKind::scalar) described.init = init::constant(std::get<double>(attrs[1]));
    if (leaf.kind == LeafKind::parameter || leaf.kind == LeafKind::state)
      described.init = std::get<Initializer>(attrs[3]);
    leaves.push_back(std::move(described));
  }
  return leaves;
}

std::int64_t bytes_in_store(const std::vector<CompiledLeaf>& leaves) {
  std::int64_t bytes = 0;
  for (const CompiledLeaf& leaf : leaves)
    if (leaf.kind == LeafKind::parameter || leaf.kind == LeafKind::state)
      bytes += leaf.type.shape.numel() * dtype_bytes(leaf.type.dtype);
  return bytes;
}

Compiled compile(const StepGraph& step, const Options& options) {
  Compiled result;
  result.role = step.role;
  result.gradients = step.gradients;
  Report& report = result.report;
  Stages stages(report, options.trace);
  check_value_sizes(step.graph);
  Program program = stages.run("schedule", [&] {
    const Graph lowered = schedule::lower(step.graph);
    report.nodes_after = static_cast<std::int64_t>(lowered.size());
    report.kernels_before = count_ops(lowered);
    Program scheduled = schedule::schedule(lowered, options.target,
                                           {.fuse = options.fuse, .workers = options.threads});
    name_kernels(scheduled);
    return scheduled;
  });
  ProgramCode code = stages.run("codegen", [&] { return generate_code(program, options, report); });
  result.plan = stages.run("plan", [&] {
    return assemble(program, std::move(code), {.name = step.role, .gradients = step.gradients});
  });
  result.host = HostProgram(program.graph, host_request(program));
  result.leaves = describe_leaves(step.graph, result.plan);
  result.messages = std::move(program.messages);
  report_program(report, program);
  report.nodes_before = static_cast<std::int64_t>(step.graph.size());
  report.peak_bytes = result.plan.arena_bytes + result.plan.scratch_bytes * options.threads;
  report.store_bytes = bytes_in_store(result.leaves);
  return result;
}

}  // namespace pantala::compiler
