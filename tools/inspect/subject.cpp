#include "tools/inspect/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/text.h"
#include "pantala/zoo/presets.h"
#include "run/run_graph.h"
#include "tools/inspect/file_kinds.h"
#include "tools/onnx/arguments.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kDefaultBatch = 64;

void refuse_sizes(const InspectSubject& subject) {
  if (!subject.sizes.empty())
    throw TypeError("--size is for ONNX files: nothing else has sizes with names");
}

Inspected read_run(const InspectSubject& subject) {
  if (!subject.loss.empty()) throw TypeError("--loss is for files: a run has its own loss");
  refuse_sizes(subject);
  run::RunGraph run =
      run::graph_of_run(run::open_run_folder(subject.name),
                        subject.inference ? Phase::evaluation : Phase::training, subject.batch);
  return {std::move(run.graph), run.loss, std::move(run.options), std::move(run.weights)};
}

Inspected read_file(const InspectSubject& subject) {
  if (!std::filesystem::exists(subject.name))
    throw TypeError(fmt::format("there is no model and no file '{}'{}; the models are {}",
                                subject.name, did_you_mean(subject.name, model_names()),
                                fmt::join(model_names(), ", ")));
  if (subject.batch)
    throw TypeError(
        "--batch is for models: a graph in a file has its sizes (those of an ONNX file that are "
        "symbolic are given by --size)");
  Inspected inspected;
  const std::optional<FileKind> kind = file_kind_of(subject.name);
  if (kind && !kind->compiles)
    throw TypeError(
        fmt::format("{}: a {} has no graph that could be compiled", subject.name, kind->name));
  if (subject.inference && !subject.loss.empty())
    throw TypeError("--inference and --loss: a file is trained with --loss alone");
  const bool is_onnx = kind && kind->compiles;
  if (!is_onnx) refuse_sizes(subject);
  if (is_onnx) {
    onnx::Model model =
        onnx::import_model(subject.name, {.sizes = named_sizes("--size", subject.sizes)});
    inspected.graph = std::move(model.graph);
    inspected.weights = std::move(model.weights);
  } else {
    inspected.graph = parse_graph(io::read_file(subject.name), subject.name);
  }
  if (!subject.loss.empty()) inspected.loss = inspected.graph.output(subject.loss);
  return inspected;
}

Inspected make_model(const zoo::Preset& model, const InspectSubject& subject) {
  if (!subject.loss.empty()) throw TypeError("--loss is for files: a model has its own loss");
  refuse_sizes(subject);
  zoo::Model made =
      model.make({.batch = subject.batch.value_or(kDefaultBatch), .training = !subject.inference});
  Inspected inspected;
  inspected.graph = std::move(made.graph);
  if (!subject.inference) inspected.loss = made.loss;
  return inspected;
}

constexpr const char* kUsualOptimizer = "adam";

Inspected read_source(const InspectSubject& subject) {
  if (!is_model(subject.name) && is_run(subject.name)) return read_run(subject);
  const auto model = std::ranges::find(zoo::presets(), subject.name, &zoo::Preset::name);
  Inspected inspected =
      model != zoo::presets().end() ? make_model(*model, subject) : read_file(subject);
  if (inspected.loss.valid()) inspected.options.optimizer = optim::from_options(kUsualOptimizer);
  return inspected;
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = zoo::preset_names();
  return names;
}

bool is_model(const std::string& name) {
  return std::ranges::find(model_names(), name) != model_names().end();
}

bool is_run(const std::string& name) {
  return std::filesystem::is_directory(name) &&
         run::RunFolder(name).content() == run::RunFolder::Content::run;
}

Inspected read_subject(const InspectSubject& subject) {
  Inspected inspected = read_source(subject);
  CompileOptions& options = inspected.options;
  options.optimize = !subject.unfused;
  subject.compile.apply(options);
  if (subject.threads > 0) options.threads = subject.threads;
  if (!inspected.loss.valid()) {
    if (subject.accumulate)
      throw TypeError("--accumulate is for training: without a loss there is none");
    return inspected;
  }
  if (!subject.optimizer.empty())
    options.optimizer = subject.optimizer == "none"
                            ? std::nullopt
                            : std::optional(optim::from_options(subject.optimizer));
  if (subject.accumulate) options.accumulation_steps = *subject.accumulate;
  return inspected;
}

std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected) {
  Report report;
  return step_graphs(inspected, report);
}

std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected, Report& report) {
  const auto& [graph, loss, options, weights] = inspected;
  return compiler::make_step_graphs(loss.valid()
                                        ? compiler::Compilation::training(graph, loss, options)
                                        : compiler::Compilation::plain(graph, options),
                                    report);
}

std::vector<plan::CompiledStep> planned_steps(const Inspected& inspected) {
  const CompileOptions& given = inspected.options;
  compiler::Options options = compiler::host_options(given);
  options.code = false;
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
