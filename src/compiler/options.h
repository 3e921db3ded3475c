// What the second half of the pipeline must know, beside the graph of a step: the device, the
// processor and the number of threads. Made from the user's CompileOptions and this machine.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "codegen/compiled.h"
#include "kir/kernel.h"
#include "pantala/compile.h"
#include "schedule/archetype.h"
#include "schedule/cost_table.h"
#include "schedule/target.h"
#include "search/search.h"

namespace pantala::codegen {
struct HostTarget;
}

namespace pantala::compiler {

// What code is for: which of several devices, as their names say it behind a colon ("vulkan:1"),
// and a class of processors by its name; none: this machine's.
struct CodeFor {
  std::string choice, processor;
};

// What the compiler does for a device: one row of a table.
struct Backend {
  std::string_view device;
  // How kernels are made, what for: numbers for the scheduler, and a text that names what objects
  // are compiled for. The latter two are parts of the plan's key.
  const schedule::ArchetypeTable& (*archetypes)(const CodeFor& machine);
  schedule::Target (*target)(const CodeFor& machine);
  std::string (*code_target)(const CodeFor& machine);
  // The cost table that is shipped for a target.
  const schedule::CostTable& (*costs)(const schedule::Target& target);
  // The kernels' code; null: the device takes kernels as they are.
  codegen::CompiledKernels (*generate)(const CodeFor& machine, std::span<const kir::Kernel> kernels,
                                       int threads, const codegen::BeforeEach& before_each);
};
// By the device's name, with a choice or without. UnsupportedError with the list for a device that
// there is none for.
const Backend& backend_of(std::string_view device);
// Those of the devices (device/device.h), in the same order.
std::vector<std::string> backend_names();

struct Options {
  std::string device = "cpu";
  std::string processor = {};  // a class of processors by its name; none: this one
  schedule::Target target = {};
  bool code = true;  // false: none is generated, for plans that are only looked at
  bool fuse = true;
  search::Level level = search::Level::none;
  rewrite::Promise promise = rewrite::Promise::real;
  std::vector<std::string> rules_off = {};
  int greedy_order = 0;
  // Of temporaries, scratch and what is prepared; 0: none.
  std::int64_t memory_limit = 0;
  bool prepares = true;                           // where it pays (schedule/preparation.h)
  std::optional<schedule::CostTable> table = {};  // none: the shipped one
  int threads = 1;  // that generate code, and that will share the launches
  trace::Recorder* trace = nullptr;
  std::function<bool()> cancelled = {};

  CodeFor code_for() const;
};

// For the processor that this process runs on. 0 threads: as many as the process may use.
// UnsupportedError for a device that there is no code for, and for a class of processors that is
// not known.
Options host_options(const std::string& device, int threads, bool fuse,
                     const std::string& processor = {});
// The same, with what the user's options say about rewriting. TypeError for a rule that there is
// none of.
Options host_options(const CompileOptions& options);
// The table that is shipped for the device and the processor.
const schedule::CostTable& shipped_cost_table(const Options& options);
// The table by which candidates are weighed.
const schedule::CostTable& cost_table(const Options& options);
// The numbers of a schedule's target for a processor; the caches are those of this machine.
schedule::Target schedule_target(const codegen::HostTarget& host);

}  // namespace pantala::compiler
