#include "schedule/building.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "kir/simplify.h"
#include "schedule/contents.h"
#include "schedule/work.h"

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

// What one of a group's kernels moves of what the group does. Memory that only these kernels know
// is theirs as a whole.
void count_bytes(const Context& context, const KernelDraft& draft, const Work& work, int number,
                 ProgramLaunch& launch) {
  std::set<std::uint32_t> seen;
  for (std::size_t k = 0; k < draft.set.buffers.size(); ++k) {
    const std::uint32_t buffer = draft.set.buffers[k];
    if (!seen.insert(buffer).second) continue;
    const kir::Access access = draft.kernel.buffers[k].access;
    const bool is_known =
        std::ranges::any_of(work.uses, [&](const MemoryUse& use) { return use.buffer == buffer; });
    for (const bool is_write : {false, true}) {
      if (access == (is_write ? kir::Access::read : kir::Access::write)) continue;
      double bytes = 0;
      if (!is_known)
        bytes = static_cast<double>(context.buffer(buffer).shape.numel() *
                                    dtype_bytes(context.buffer(buffer).dtype));
      for (const MemoryUse& use : work.uses)
        if (use.buffer == buffer && use.is_write == is_write &&
            (use.kernel == kEveryKernel || use.kernel == number))
          bytes += use.bytes;
      (is_write ? launch.written_bytes : launch.read_bytes) += bytes;
    }
  }
}

// A group while its kernels become launches.
struct LaunchedGroup {
  std::uint32_t number;
  Work work;
  Contents contents;
  int kernels = 0;  // so far
};

ProgramLaunch launch_of(const Context& context, Kernels& kernels, KernelDraft draft,
                        const LaunchedGroup& group) {
  ProgramLaunch launch;
  count_bytes(context, draft, group.work, group.kernels, launch);
  launch.name = std::move(draft.name);
  launch.kernel = kernels.add(std::move(draft.kernel));
  launch.sets = {std::move(draft.set)};
  launch.serial = draft.serial;
  launch.layers = group.contents.layers;
  launch.ops = group.contents.ops;
  launch.flops = draft.flops;
  launch.group = group.number;
  launch.part = static_cast<std::uint32_t>(group.kernels);
  return launch;
}

void note_host_results(const Context& context, Program& program) {
  const ir::GraphData& graph = context.graph();
  for (const auto& [name, value] : graph.outputs())
    if (context.is_host(value)) program.host_outputs.emplace_back(name, value);
  for (const auto& [leaf, value] : graph.updates())
    if (context.is_host({leaf, 0})) program.host_updates.emplace_back(graph.leaf_name(leaf), value);
}

}  // namespace

Program Building::run() {
  Program program;
  Kernels kernels(program);
  for (const Group& group : context_.decisions().groups) {
    context_.check();
    const auto number = static_cast<std::uint32_t>(&group - context_.decisions().groups.data());
    LaunchedGroup launched{number, work_of(context_, group), contents_of(context_, group)};
    const MakingScope making(context_, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
    std::vector<KernelDraft> drafts = group.archetype->build(*this, group);
    if (drafts.size() == 1) drafts[0].flops = launched.work.flops;
    for (KernelDraft& draft : drafts) {
      if (draft.set.items > 0)
        program.launches.push_back(launch_of(context_, kernels, std::move(draft), launched));
      ++launched.kernels;
    }
  }
  note_host_results(context_, program);
  Decisions decisions = context_.take_decisions();
  program.graph = std::move(decisions.graph);
  program.buffers = std::move(decisions.buffers);
  program.messages = std::move(decisions.messages);
  program.emitted = decisions.emitted;
  program.searched = decisions.searched;
  program.uniforms = std::move(uniforms_);
  return program;
}

}  // namespace pantala::schedule
