#include "schedule/building.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/shared_graph.h"
#include "kir/simplify.h"
#include "schedule/code_form.h"
#include "schedule/contents.h"
#include "schedule/work.h"

namespace pantala::schedule {

namespace {

// The kernels of a program, each once. Layers of the same form make the same draft again and again,
// and to simplify one takes far longer than to find it here. Those that differ in the sizes of
// their scratch alone are one kernel, with room for either.
class Kernels {
 public:
  explicit Kernels(Program& program) : program_(program) {}

  // The number of the kernel with the draft's code, which is added if there is none.
  std::uint32_t add(kir::Kernel draft) {
    std::vector<Known>& alike = known_[kir::hash_code_but_scratch(draft)];
    for (const Known& one : alike)
      if (kir::same_code_but_scratch(one.draft, draft)) {
        kir::widen_scratch(program_.kernels[one.number], draft);
        return one.number;
      }
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
      if (kir::same_code_but_scratch(program_.kernels[k], kernel)) {
        kir::widen_scratch(program_.kernels[k], kernel);
        return static_cast<std::uint32_t>(k);
      }
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

// A launch of a group; what it is called and belongs to is to be added.
ProgramLaunch launch_of(const Context& context, Kernels& kernels, KernelDraft draft,
                        const Work& work, int part) {
  ProgramLaunch launch;
  count_bytes(context, draft, work, part, launch);
  launch.name = std::move(draft.name);
  launch.kernel = kernels.add(std::move(draft.kernel));
  launch.sets = {std::move(draft.set)};
  launch.serial = draft.serial;
  launch.flops = draft.flops;
  launch.part = static_cast<std::uint32_t>(part);
  return launch;
}

// The launches of a group for others of the same form. Buffers are numbers of the form's, behind
// them those of the memory that the kernels pass on to each other; values of the host are numbers
// of the form's, too.
struct KnownGroup {
  std::vector<std::uint32_t> anchors;  // by whose numbers launches and scratch are called
  std::vector<ProgramLaunch> launches;
  std::vector<ProgramBuffer> scratch;
  std::vector<Uniform> uniforms;  // `value.node` is the number
};

// Takes launches apart; nothing if something about them is not known by the form.
std::optional<KnownGroup> known_group(KnownGroup known, const GroupForm& form,
                                      std::uint32_t first_scratch,
                                      const std::vector<Uniform>& uniforms) {
  for (ProgramLaunch& launch : known.launches)
    for (ProgramLaunch::Set& set : launch.sets) {
      for (std::uint32_t& buffer : set.buffers) {
        const auto found = std::ranges::find(form.buffers, buffer);
        const bool is_scratch = buffer >= first_scratch;
        if (!is_scratch && found == form.buffers.end()) return std::nullopt;
        buffer = is_scratch
                     ? buffer - first_scratch + static_cast<std::uint32_t>(form.buffers.size())
                     : static_cast<std::uint32_t>(found - form.buffers.begin());
      }
      for (ParamValue& param : set.params) {
        if (param.kind != ParamValue::Kind::uniform) continue;
        const Uniform& uniform = uniforms[static_cast<std::size_t>(param.integer)];
        const auto host = std::ranges::find(form.hosts, uniform.value);
        if (host == form.hosts.end()) return std::nullopt;
        param.integer = std::ssize(known.uniforms);
        known.uniforms.push_back(
            {{static_cast<std::uint32_t>(host - form.hosts.begin()), 0}, uniform.dtype});
      }
    }
  return known;
}

// "contract.17" as the group with other anchors calls it.
std::string renamed(const std::string& name, const std::vector<std::uint32_t>& anchors,
                    const std::vector<std::uint32_t>& others) {
  for (std::size_t k = 0; k < anchors.size(); ++k) {
    const std::string number = fmt::format(".{}", anchors[k]);
    const std::size_t at = name.find(number), end = at + number.size();
    if (at != std::string::npos && (end == name.size() || name[end] == '.'))
      return fmt::format("{}.{}{}", name.substr(0, at), others[k], name.substr(end));
  }
  return name;
}

void note_host_results(const Context& context, Program& program) {
  const ir::GraphData& graph = context.graph();
  for (const auto& [name, value] : graph.outputs())
    if (context.is_host(value)) program.host_outputs.emplace_back(name, value);
  for (const auto& [leaf, value] : graph.updates())
    if (context.is_host({leaf, 0})) program.host_updates.emplace_back(graph.leaf_name(leaf), value);
}

// Makes the launches of groups one after the other. Of groups of the same form the kernels are
// built once.
class GroupBuilder {
 public:
  GroupBuilder(Building& building, Context& context, std::vector<Uniform>& uniforms,
               Program& program)
      : building_(building),
        context_(context),
        uniforms_(uniforms),
        kernels_(program),
        forms_(context) {}

  std::vector<ProgramLaunch> launches_of(const Group& group) {
    const GroupForm form = forms_.of(group);
    if (const auto known = known_.find(form.words); known != known_.end())
      return launches_like(known->second, form, group);
    const auto first_scratch = static_cast<std::uint32_t>(context_.decisions().buffers.size());
    const std::uint64_t checks = context_.index_checks();
    std::vector<ProgramLaunch> launches = built(group);
    // What is said about indices belongs to a node, and is said anew each time.
    if (checks != context_.index_checks()) return launches;
    const std::vector<ProgramBuffer>& buffers = context_.decisions().buffers;
    if (std::optional<KnownGroup> known = known_group(
            {group.anchors, launches, {buffers.begin() + first_scratch, buffers.end()}, {}}, form,
            first_scratch, uniforms_))
      known_.emplace(form.words, std::move(*known));
    return launches;
  }

 private:
  std::vector<ProgramLaunch> built(const Group& group) {
    const Work work = work_of(context_, group);
    const MakingScope making(context_, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
    std::vector<KernelDraft> drafts = group.archetype->build(building_, group);
    if (drafts.size() == 1) drafts[0].flops = work.flops;
    std::vector<ProgramLaunch> launches;
    for (std::size_t k = 0; k < drafts.size(); ++k)
      if (drafts[k].set.items > 0)
        launches.push_back(
            launch_of(context_, kernels_, std::move(drafts[k]), work, static_cast<int>(k)));
    return launches;
  }

  std::vector<ProgramLaunch> launches_like(const KnownGroup& known, const GroupForm& form,
                                           const Group& group) {
    std::vector<std::uint32_t> buffers = form.buffers;
    for (ProgramBuffer scratch : known.scratch) {
      scratch.name = renamed(scratch.name, known.anchors, group.anchors);
      buffers.push_back(context_.add_buffer(std::move(scratch)));
    }
    std::vector<ProgramLaunch> launches = known.launches;
    for (ProgramLaunch& launch : launches) {
      launch.name = renamed(launch.name, known.anchors, group.anchors);
      for (ProgramLaunch::Set& set : launch.sets) {
        for (std::uint32_t& buffer : set.buffers) buffer = buffers[buffer];
        for (ParamValue& param : set.params)
          if (param.kind == ParamValue::Kind::uniform) {
            const Uniform& uniform = known.uniforms[static_cast<std::size_t>(param.integer)];
            param = ParamValue::of_uniform(
                uniform_index(uniforms_, form.hosts[uniform.value.node], uniform.dtype));
          }
      }
    }
    return launches;
  }

  Building& building_;
  Context& context_;
  std::vector<Uniform>& uniforms_;
  Kernels kernels_;
  GroupForms forms_;
  std::unordered_map<FormWords, KnownGroup, FormHash> known_;
};

}  // namespace

Program Building::run() {
  Program program;
  GroupBuilder builder(*this, context_, uniforms_, program);
  for (const Group& group : context_.decisions().groups) {
    context_.check();
    const Contents contents = contents_of(context_, group);
    for (ProgramLaunch& launch : builder.launches_of(group)) {
      launch.layers = contents.layers;
      launch.ops = contents.ops;
      launch.group = static_cast<std::uint32_t>(&group - context_.decisions().groups.data());
      program.launches.push_back(std::move(launch));
    }
  }
  note_host_results(context_, program);
  Decisions decisions = context_.take_decisions();
  program.graph = ir::shared(*decisions.graph);
  program.buffers = std::move(decisions.buffers);
  program.messages = std::move(decisions.messages);
  program.emitted = decisions.emitted;
  program.searched = decisions.searched;
  program.uniforms = std::move(uniforms_);
  return program;
}

}  // namespace pantala::schedule
