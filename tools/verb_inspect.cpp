// pantala inspect MODEL|FILE: graph, schedule, kernels, memory and report of what the compiler
// makes of a model of the zoo, of a graph in text form or of an ONNX file; the content of weights,
// ONNX and plan files. Nothing is run but for --profile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/doing.h"
#include "compiler/options.h"
#include "pantala/text.h"
#include "tools/command.h"
#include "tools/inspect/file_kinds.h"
#include "tools/inspect/profile.h"
#include "tools/inspect/render.h"
#include "tools/inspect/subject.h"
#include "tools/options.h"
#include "tools/subject_options.h"

namespace pantala::tools {

namespace {

struct Options {
  InspectSubject subject;
  bool graph = false, lowered = false, schedule = false, kernels = false, memory = false,
       report = false, profile = false;
  std::string kernel;
  bool kir = false, llvm = false, assembly = false, spirv = false, json = false;

  int pictures() const {
    return graph + lowered + schedule + kernels + !kernel.empty() + memory + report + profile;
  }
};

std::vector<RoleText> graph_texts(const Inspected& inspected, bool lowered) {
  const compiler::Options options = compiler::host_options(inspected.options);
  Report report;
  std::vector<RoleText> texts;
  for (const compiler::StepGraph& step : step_graphs(inspected))
    texts.push_back(
        {step.role, to_text(lowered ? compiler::choose_graph(step, options, report) : step.graph)});
  return texts;
}

// The content of a file that needs no compiler; empty if it is not such a file.
std::optional<std::string> file_content(const Options& o) {
  if (is_model(o.subject.name)) return std::nullopt;
  const std::optional<FileKind> kind = file_kind_of(o.subject.name);
  const bool compiles = (kind && kind->compiles) || is_run(o.subject.name);
  if (!kind || (compiles && o.pictures() > 0)) return std::nullopt;
  if (!o.subject.sizes.empty())
    throw TypeError(
        "--size needs a picture, such as --schedule: without one the file is shown as it is");
  if (o.pictures() > 0)
    throw TypeError(fmt::format("{}: a {} is shown as it is: only --json goes with it",
                                o.subject.name, kind->name));
  return kind->show(o.subject.name, o.json);
}

std::string picture(const Options& o) {
  const Doing doing("inspecting " + o.subject.name);
  if (std::optional<std::string> content = file_content(o)) return std::move(*content);
  const Inspected inspected = read_subject(o.subject);
  if (o.graph || o.lowered) {
    const std::vector<RoleText> texts = graph_texts(inspected, o.lowered);
    return o.json ? roles_json(texts) : roles_text(texts);
  }
  if (o.profile) return profile_picture(inspected, o.json);
  if (!o.schedule && !o.kernels && !o.memory && o.kernel.empty()) {
    const Report report = compile_all(inspected).report;
    return o.json ? report.json() : report.text();
  }
  const std::vector<plan::CompiledStep> steps = planned_steps(inspected);
  if (o.schedule) return o.json ? schedule_json(steps) : schedule_text(steps);
  if (o.kernels) return o.json ? kernels_json(steps) : kernels_text(steps);
  if (o.memory) return o.json ? memory_json(steps) : memory_text(steps);
  const KernelForm form = o.llvm       ? KernelForm::llvm
                          : o.assembly ? KernelForm::assembly
                          : o.spirv    ? KernelForm::spirv
                                       : KernelForm::kir;
  const std::string code = kernel_code(steps, o.kernel, form);
  return o.json ? roles_json({{o.kernel, code}}) : code;
}

void add_pictures(VerbOptions& verb, Options& o) {
  const auto what = [&](Option* option) { option->group("What to show"); };
  what(verb.add_flag("--graph", o.graph, "The step as a graph"));
  what(verb.add_flag("--lowered", o.lowered, "The graph as the scheduler sees it"));
  what(verb.add_flag("--schedule", o.schedule, "Launches in order with their buffers"));
  what(verb.add_flag("--kernels", o.kernels, "The kernels and what they cost"));
  what(verb.add_option("--kernel", o.kernel, "The code of one kernel, in one of the forms below"));
  what(verb.add_flag("--memory", o.memory, "The memory map"));
  what(verb.add_flag("--report", o.report, "Stages, sizes, kernels, units (the default)"));
  what(verb.add_flag("--profile", o.profile,
                     "Run it for a moment on made-up inputs: layers, time, GFLOP/s, GB/s"));
  const auto form = [&](Option* option) { option->group("Forms of a kernel"); };
  form(verb.add_flag("--kir", o.kir, "Kernel IR (the default)"));
  form(verb.add_flag("--llvm", o.llvm, "LLVM IR"));
  form(verb.add_flag("--asm", o.assembly, "Assembly of this machine"));
  form(verb.add_flag("--spirv", o.spirv, "SPIR-V, as GPUs get it; with --device vulkan for one"));
}

void check(const Options& o) {
  if (o.pictures() > 1)
    throw TypeError(
        "one at a time: --graph, --lowered, --schedule, --kernels, --kernel, --memory, --report, "
        "--profile");
  if (o.kir + o.llvm + o.assembly + o.spirv > 1)
    throw TypeError("one at a time: --kir, --llvm, --asm, --spirv");
  if (o.kernel.empty() && (o.kir || o.llvm || o.assembly || o.spirv))
    throw TypeError("--kir, --llvm, --asm and --spirv need --kernel NAME");
}

}  // namespace

Run inspect_verb(VerbOptions& verb) {
  const auto o = std::make_shared<Options>();
  add_subject_options(verb, o->subject);
  add_pictures(verb, *o);
  verb.add_flag("--json", o->json, "JSON instead of text");
  return [o] {
    check(*o);
    fmt::print("{}", picture(*o));
    return 0;
  };
}

}  // namespace pantala::tools
