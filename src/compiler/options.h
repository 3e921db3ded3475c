// What the second half of the pipeline must know, beside the graph of a step: the device, the
// processor and the number of threads. Made from the user's CompileOptions and this machine.
#pragma once

#include <string>

#include "base/trace.h"
#include "codegen/llvm/llvm.h"
#include "schedule/target.h"

namespace pantala::compiler {

struct Options {
  std::string device = "cpu";  // "cpu": with compiled code; "kir": kernels only
  schedule::Target target = {};
  codegen::HostTarget code = {};  // what "cpu" compiles for
  bool fuse = true;
  int threads = 1;  // that generate code, and that will share the launches
  trace::Recorder* trace = nullptr;
};

// For the processor that this process runs on. 0 threads: as many as the process may use.
// UnsupportedError for a device that there is no code for.
Options host_options(const std::string& device, int threads, bool fuse);
// The numbers of a schedule's target for a processor; the caches are those of this machine.
schedule::Target schedule_target(const codegen::HostTarget& host);

}  // namespace pantala::compiler
