// What the second half of the pipeline must know, beside the graph of a step: the device, the
// processor and the number of threads. Made from the user's CompileOptions and this machine.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/trace.h"
#include "codegen/llvm/llvm.h"
#include "schedule/archetype.h"
#include "schedule/target.h"

namespace pantala::compiler {

// What the compiler does for a device: one row of a table.
struct Backend {
  std::string_view device;
  const schedule::ArchetypeTable& (*archetypes)();
  // Whether kernels become machine code of this processor; else the device takes them as they are.
  bool has_code;
};
// UnsupportedError with the list for a device that there is none for.
const Backend& backend_of(std::string_view device);

struct Options {
  std::string device = "cpu";
  schedule::Target target = {};
  codegen::HostTarget code = {};  // what machine code is made for
  bool fuse = true;
  int threads = 1;  // that generate code, and that will share the launches
  trace::Recorder* trace = nullptr;
  std::function<bool()> cancelled = {};
};

// For the processor that this process runs on. 0 threads: as many as the process may use.
// UnsupportedError for a device that there is no code for.
Options host_options(const std::string& device, int threads, bool fuse);
// The numbers of a schedule's target for a processor; the caches are those of this machine.
schedule::Target schedule_target(const codegen::HostTarget& host);

}  // namespace pantala::compiler
