#include "tools/inspect/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "pantala/zoo/presets.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kDefaultBatch = 64;

Inspected read_file(const InspectSource& source) {
  if (!std::filesystem::exists(source.name))
    throw TypeError(fmt::format("there is no model and no file '{}'{}; the models are {}",
                                source.name, did_you_mean(source.name, model_names()),
                                fmt::join(model_names(), ", ")));
  if (source.batch) throw TypeError("--batch is for models: a graph in a file has its sizes");
  Inspected inspected;
  inspected.graph = parse_graph(io::read_file(source.name), source.name);
  if (!source.loss.empty()) inspected.loss = inspected.graph.output(source.loss);
  return inspected;
}

Inspected make_model(const zoo::Preset& model, const InspectSource& source) {
  if (!source.loss.empty()) throw TypeError("--loss is for files: a model has its own loss");
  zoo::Model made =
      model.make({.batch = source.batch.value_or(kDefaultBatch), .training = !source.inference});
  Inspected inspected;
  inspected.graph = std::move(made.graph);
  if (!source.inference) inspected.loss = made.loss;
  return inspected;
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = zoo::preset_names();
  return names;
}

Inspected read_source(const InspectSource& source) {
  Inspected inspected;
  bool found = false;
  for (const zoo::Preset& model : zoo::presets())
    if (model.name == source.name) {
      inspected = make_model(model, source);
      found = true;
    }
  if (!found) inspected = read_file(source);
  CompileOptions& options = inspected.options;
  options.optimize = source.fused;
  options.threads = source.threads;
  if (!inspected.loss.valid()) {
    if (source.accumulate != 1)
      throw TypeError("--accumulate is for training: without a loss there is none");
    return inspected;
  }
  if (source.optimizer != "none") options.optimizer = optim::from_options(source.optimizer);
  options.accumulation_steps = source.accumulate;
  return inspected;
}

std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected) {
  Report report;
  const auto& [graph, loss, options] = inspected;
  return compiler::make_step_graphs(loss.valid()
                                        ? compiler::Compilation::training(graph, loss, options)
                                        : compiler::Compilation::plain(graph, options),
                                    report);
}

std::vector<plan::CompiledStep> planned_steps(const Inspected& inspected) {
  const compiler::Options options =
      compiler::host_options("kir", inspected.options.threads, inspected.options.optimize);
  std::vector<plan::CompiledStep> steps;
  for (const compiler::StepGraph& step : step_graphs(inspected))
    steps.push_back(compiler::compile_step(step, options));
  return steps;
}

CompileResult compile_all(const Inspected& inspected) {
  return inspected.loss.valid()
             ? compile_training_graph(inspected.graph, inspected.loss, inspected.options)
             : compile(inspected.graph, inspected.options);
}

}  // namespace pantala::tools
