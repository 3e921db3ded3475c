#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

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

// The kernels of a program, each once. Layers of the same form make the same draft again and again,
// and to simplify one takes far longer than to find it here.
class Kernels {
 public:
  explicit Kernels(Program& program) : program_(program) {}

  // The number of the kernel with the draft's code, which is added if there is none.
  std::uint32_t add(kir::Kernel draft) {
    std::vector<Known>& alike = known_[kir::hash_code(draft)];
    for (const Known& one : alike)
      if (kir::same_code(one.draft, draft)) return one.number;
    const std::uint32_t number = add_simplified(kir::simplify(draft));
    alike.push_back({std::move(draft), number});
    return number;
  }

 private:
  struct Known {
    kir::Kernel draft;
    std::uint32_t number;
  };

  std::uint32_t add_simplified(kir::Kernel kernel) {
    for (std::size_t k = 0; k < program_.kernels.size(); ++k)
      if (kir::same_code(program_.kernels[k], kernel)) return static_cast<std::uint32_t>(k);
    kernel.name = fmt::format("{}_{}", kernel.name, program_.kernels.size());
    program_.kernels.push_back(std::move(kernel));
    return static_cast<std::uint32_t>(program_.kernels.size() - 1);
  }

  Program& program_;
  std::unordered_map<std::uint64_t, std::vector<Known>> known_;
};

// Of the buffers that a launch is given, each once.
double bytes_of(const Program& program, const ProgramLaunch::Set& set) {
  double bytes = 0;
  for (const std::uint32_t id : std::set(set.buffers.begin(), set.buffers.end())) {
    const ProgramBuffer& buffer = program.buffers[id];
    bytes += static_cast<double>(buffer.shape.numel() * dtype_bytes(buffer.dtype));
  }
  return bytes;
}

void add_launch(Program& program, Kernels& kernels, KernelDraft draft) {
  if (draft.set.items == 0) return;
  ProgramLaunch launch;
  launch.name = std::move(draft.name);
  launch.kernel = kernels.add(std::move(draft.kernel));
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
  Kernels kernels(context.program);
  for (const Group& group : make_groups(context)) {
    const MakingScope making(context, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
    for (KernelDraft& draft : build(context, group))
      add_launch(context.program, kernels, std::move(draft));
  }
  note_host_results(context);
  return std::move(context.program);
}

}  // namespace pantala::schedule
