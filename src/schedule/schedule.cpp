#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kir/simplify.h"
#include "pantala/error.h"
#include "schedule/context.h"
#include "schedule/cpu/attend.h"
#include "schedule/cpu/convolution.h"
#include "schedule/cpu/elementwise.h"
#include "schedule/cpu/product.h"
#include "schedule/cpu/reduce.h"
#include "schedule/cpu/serial.h"
#include "schedule/groups.h"
#include "schedule/lowering.h"

namespace pantala::schedule {

namespace {

std::vector<KernelDraft> build(Context& context, const Group& group) {
  switch (group.kind) {
    case Archetype::elemental:
      return {build_map(context, group.outputs)};
    case Archetype::reduce: {
      ReduceGroup reduce = reduce_group(context, group.anchors[0]);
      reduce.reductions.clear();
      for (const std::uint32_t node : group.anchors) reduce.reductions.push_back({node, 0});
      reduce.outputs = group.outputs;
      return build_reduce(context, reduce);
    }
    case Archetype::contract:
      return {build_product(context, group.anchors[0], group.outputs)};
    case Archetype::search:
      return {build_search(context, group.anchors[0], group.outputs)};
    case Archetype::scan:
      return {build_scan(context, group.anchors[0], group.outputs)};
    case Archetype::scatter:
      return build_scatter(context, group.anchors[0], group.outputs);
    case Archetype::attention:
      return build_attend(context, group.anchors[0], group.outputs);
    case Archetype::convolution:
      return build_convolution(context, group.anchors[0], group.outputs);
    default:
      break;
  }
  throw InternalError(
      fmt::format("schedule: no kernel for '{}'", context.node(group.anchors[0]).op->name));
}

// Adds a kernel unless the program has the same code already.
std::uint32_t add_kernel(Program& program, const kir::Kernel& draft) {
  kir::Kernel kernel = kir::simplify(draft);
  for (std::size_t k = 0; k < program.kernels.size(); ++k)
    if (kir::same_code(program.kernels[k], kernel)) return static_cast<std::uint32_t>(k);
  kernel.name = fmt::format("{}_{}", kernel.name, program.kernels.size());
  program.kernels.push_back(std::move(kernel));
  return static_cast<std::uint32_t>(program.kernels.size() - 1);
}

// Of the buffers that a launch is given, each once.
double bytes_of(const Program& program, const ProgramLaunch::Set& set) {
  double bytes = 0;
  for (const std::uint32_t id : std::set(set.buffers.begin(), set.buffers.end())) {
    const ProgramBuffer& buffer = program.buffers[id];
    bytes += static_cast<double>(buffer.shape.numel() * dtype_bytes(buffer.dtype));
  }
  return bytes;
}

void add_launch(Program& program, KernelDraft draft) {
  if (draft.set.items == 0) return;
  ProgramLaunch launch;
  launch.name = std::move(draft.name);
  launch.kernel = add_kernel(program, draft.kernel);
  launch.bytes = bytes_of(program, draft.set);
  launch.sets = {std::move(draft.set)};
  launch.serial = draft.serial;
  launch.flops = draft.flops;
  program.launches.push_back(std::move(launch));
}

void note_host_results(Context& context) {
  const ir::GraphData& graph = context.graph();
  for (const auto& [name, value] : graph.outputs)
    if (context.is_host(value)) context.program.host_outputs.emplace_back(name, value);
  for (const auto& [leaf, value] : graph.updates)
    if (context.is_host({leaf, 0}))
      context.program.host_updates.emplace_back(graph.leaf_name(leaf), value);
}

}  // namespace

Program schedule(const Graph& lowered, const Target& target, const ScheduleOptions& options) {
  Context context(lowered, target, options);
  for (const Group& group : make_groups(context)) {
    const MakingScope making(context, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
    for (KernelDraft& draft : build(context, group)) add_launch(context.program, std::move(draft));
  }
  note_host_results(context);
  return std::move(context.program);
}

}  // namespace pantala::schedule
