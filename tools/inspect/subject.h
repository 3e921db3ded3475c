// What `pantala inspect` looks at: a model of the zoo, a graph in text form, an ONNX file or a
// run, and the steps that the compiler makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "pantala/compile.h"
#include "pantala/weights.h"
#include "tools/inspect/compile_choice.h"

namespace pantala::tools {

struct InspectSubject {
  std::string name;                        // a model of the zoo, a file, or the folder of a run
  std::optional<std::int64_t> batch = {};  // of a model or run
  std::string loss = {};       // the output of a file that is trained; none: the graph as it is
  std::string optimizer = {};  // or "none"; "": adam, or that of the run
  std::optional<std::int64_t> accumulate = {};  // not given: 1, or as in the run
  bool inference = false;                       // of a model or run: the graph as it is
  std::vector<std::string> sizes = {};          // of an ONNX file: NAME=N, symbolic sizes
  bool unfused = false;
  CompileChoice compile = {};
  int threads = 0;
};

const std::vector<std::string>& model_names();
bool is_model(const std::string& name);
bool is_run(const std::string& name);  // the folder of one

// The graph, and what is to be done with it.
struct Inspected {
  Graph graph;
  Tensor loss;  // empty: nothing is trained
  CompileOptions options;
  Weights weights = {};  // of an ONNX file or a run
};
// TypeError, with the nearest name, for what is neither a model nor a file nor a run.
Inspected read_subject(const InspectSubject& subject);

// The steps as they go to the scheduler, and with their plans but without machine code. A report
// gets what canonicalised them.
std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected);
std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected, Report& report);
std::vector<plan::CompiledStep> planned_steps(const Inspected& inspected);
CompileResult compile_all(const Inspected& inspected);

}  // namespace pantala::tools
