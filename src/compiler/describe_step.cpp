#include "compiler/describe_step.h"

#include <algorithm>

#include "ir/graph_data.h"
#include "ops/host_scalars.h"
#include "plan/step_names.h"

namespace pantala::compiler {

namespace {

// What an input takes part in.
void note_readers(const Graph& graph, plan::CompiledLeaf& input) {
  const auto& nodes = graph.data()->nodes();
  std::vector<bool> reached(nodes.size());
  const std::uint32_t first = graph.leaf(input.name).id().node;
  reached[first] = true;
  for (std::uint32_t id = first + 1; id < nodes.size(); ++id)
    reached[id] = std::ranges::any_of(nodes[id].inputs,
                                      [&](const ValueId& value) { return reached[value.node]; });
  for (const auto& [name, value] : graph.outputs())
    if (reached[value.id().node] && name != plan::kFiniteOutput) input.needed_by.push_back(name);
  const auto updates = graph.updates();
  input.feeds_updates = std::ranges::any_of(
      updates, [&](const auto& update) { return reached[update.second.id().node]; });
}

}  // namespace

// What no kernel touches lives on the host if it may.
std::vector<plan::CompiledLeaf> describe_leaves(const Graph& graph, const plan::Plan& plan) {
  std::vector<plan::CompiledLeaf> leaves = plan::leaves_of(graph);
  const auto updates = graph.updates();
  for (plan::CompiledLeaf& leaf : leaves) {
    const bool on_device = std::ranges::any_of(plan.regions, [&](const plan::Region& region) {
      return region.storage == plan::Storage::store && region.name == leaf.name;
    });
    leaf.on_host = !on_device && ops::may_live_on_host(leaf.kind, leaf.type);
    const Tensor value = graph.leaf(leaf.name);
    leaf.updated =
        std::ranges::any_of(updates, [&](const auto& update) { return update.first == value; });
    if (leaf.kind == LeafKind::input) note_readers(graph, leaf);
  }
  return leaves;
}

plan::HostPart host_part(const schedule::Program& program) {
  plan::HostRequest request{.outputs = program.host_outputs, .updates = program.host_updates};
  for (const schedule::Uniform& uniform : program.uniforms)
    request.uniforms.emplace_back(uniform.value, uniform.dtype);
  return {program.graph, request};
}

std::int64_t count_ops(const Graph& lowered) {
  const auto& nodes = lowered.data()->nodes();
  return std::ranges::count_if(nodes, [](const ir::Node& node) {
    return !node.op->leaf && node.op != &ir::constant_op() && node.op != &ir::data_op();
  });
}

void report_kernels(Report& report, const schedule::Program& program) {
  std::vector<Report::Kernel> kernels;
  for (const kir::Kernel& kernel : program.kernels)
    kernels.push_back({.name = kernel.name, .unit = kernel.name});
  for (const schedule::ProgramLaunch& launch : program.launches) {
    Report::Kernel& kernel = kernels.at(launch.kernel);
    ++kernel.launches;
    const double bytes = launch.read_bytes + launch.written_bytes;
    kernel.flops += launch.flops;
    kernel.bytes += bytes;
    report.flops += launch.flops;
    report.bytes += bytes;
    report.launches.push_back({launch.name, kernel.name, launch.layers, launch.ops, launch.flops,
                               launch.read_bytes, launch.written_bytes, launch.predicted_us,
                               launch.group});
  }
  report.kernels = std::move(kernels);
  report.kernels_after = std::ssize(program.launches);
}

}  // namespace pantala::compiler
