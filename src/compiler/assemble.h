// From a Program to a Plan: memory gets its place, parameters become slots, launches their edges.
// The last stage of the compiler. Every leaf and output is a region of its own, called by its name.
#pragma once

#include <string>
#include <vector>

#include "pantala/compile.h"
#include "plan/plan.h"
#include "schedule/program.h"

namespace pantala::compiler {

// The code of a program's kernels, in their order.
struct ProgramCode {
  std::string target;                           // what the objects were compiled for
  std::vector<std::vector<std::byte>> objects;  // none: kernels only
};

struct AssembleOptions {
  std::string name = "step";
  std::vector<CompiledPlan::ParameterGradient> gradients = {};
};

// Gives every kernel a name of its own: objects and units are found by it.
void name_kernels(schedule::Program& program);

// The kernels' names must differ. Only temporaries share memory. The plan is valid; InternalError
// where the program breaks a rule.
plan::Plan assemble(const schedule::Program& program, ProgramCode code,
                    const AssembleOptions& options = {});

}  // namespace pantala::compiler
