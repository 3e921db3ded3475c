#include "tools/bench_plan.h"

#include <fmt/format.h>

#include "base/doing.h"
#include "compiler/pipeline.h"

namespace pantala::tools {

void plan_workload(const std::string& name, const BenchOptions& options) {
  const Doing planning("planning " + name);
  const Workload w = make_workload(name, options.infer ? BenchMode::infer : BenchMode::train);
  const CompileOptions compile = compile_options(w, options);
  const Graph graph = options.infer ? w.graph.without_updates() : w.graph;
  const auto given = options.infer ? compiler::Compilation::plain(graph, compile)
                                   : compiler::Compilation::training(graph, w.loss, compile);
  Report canonical;
  const compiler::StepGraph step = compiler::make_step_graphs(given, canonical).at(0);
  compiler::Options lower = compiler::host_options(compile);
  lower.code = false;
  const Report report = compiler::compile_step(step, lower).report;
  if (!options.json) {
    fmt::print("{}", report.text());
    return;
  }
  nlohmann::ordered_json line = line_of(name, options);
  add_figures(report, line);
  if (options.kernels) {
    line["launches"] = nlohmann::ordered_json::array();
    for (const Report::Launch& launch : report.launches)
      line["launches"].push_back({{"name", launch.name},
                                  {"layers", launch.layers},
                                  {"ops", launch.ops},
                                  {"flops", launch.flops},
                                  {"read_bytes", launch.read_bytes},
                                  {"written_bytes", launch.written_bytes},
                                  {"predicted_us", launch.predicted_us}});
  }
  fmt::print("{}\n", line.dump());
}

}  // namespace pantala::tools
