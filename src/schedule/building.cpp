#include "schedule/building.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "kir/simplify.h"

namespace pantala::schedule {

namespace {

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
double bytes_of(const Context& context, const ProgramLaunch::Set& set) {
  double bytes = 0;
  for (const std::uint32_t id : std::set(set.buffers.begin(), set.buffers.end())) {
    const ProgramBuffer& buffer = context.buffer(id);
    bytes += static_cast<double>(buffer.shape.numel() * dtype_bytes(buffer.dtype));
  }
  return bytes;
}

ProgramLaunch launch_of(const Context& context, Kernels& kernels, KernelDraft draft) {
  ProgramLaunch launch;
  launch.name = std::move(draft.name);
  launch.kernel = kernels.add(std::move(draft.kernel));
  launch.bytes = bytes_of(context, draft.set);
  launch.sets = {std::move(draft.set)};
  launch.serial = draft.serial;
  launch.flops = draft.flops;
  return launch;
}

void note_host_results(const Context& context, Program& program) {
  const ir::GraphData& graph = context.graph();
  for (const auto& [name, value] : graph.outputs)
    if (context.is_host(value)) program.host_outputs.emplace_back(name, value);
  for (const auto& [leaf, value] : graph.updates)
    if (context.is_host({leaf, 0})) program.host_updates.emplace_back(graph.leaf_name(leaf), value);
}

}  // namespace

Program Building::run() {
  Program program;
  Kernels kernels(program);
  for (const Group& group : context_.decisions().groups) {
    const MakingScope making(context_, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
    for (KernelDraft& draft : group.archetype->build(*this, group))
      if (draft.set.items > 0)
        program.launches.push_back(launch_of(context_, kernels, std::move(draft)));
  }
  note_host_results(context_, program);
  Decisions decisions = context_.take_decisions();
  program.graph = std::move(decisions.graph);
  program.buffers = std::move(decisions.buffers);
  program.messages = std::move(decisions.messages);
  program.emitted = decisions.emitted;
  program.uniforms = std::move(uniforms_);
  return program;
}

}  // namespace pantala::schedule
