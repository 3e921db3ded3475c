#include "tools/inspect/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/text.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "pantala/text.h"
#include "pantala/zoo/presets.h"
#include "tools/inspect/file_kinds.h"
#include "tools/onnx/arguments.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kDefaultBatch = 64;

void refuse_sizes(const InspectSubject& subject) {
  if (!subject.sizes.empty())
    throw TypeError("--size is for ONNX files: nothing else has sizes with names");
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

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = zoo::preset_names();
  return names;
}

Inspected read_subject(const InspectSubject& subject) {
  Inspected inspected;
  bool found = false;
  for (const zoo::Preset& model : zoo::presets())
    if (model.name == subject.name) {
      inspected = make_model(model, subject);
      found = true;
    }
  if (!found) inspected = read_file(subject);
  CompileOptions& options = inspected.options;
  options.optimize = !subject.unfused;
  subject.compile.apply(options);
  options.threads = subject.threads;
  if (!inspected.loss.valid()) {
    if (subject.accumulate != 1)
      throw TypeError("--accumulate is for training: without a loss there is none");
    return inspected;
  }
  if (subject.optimizer != "none") options.optimizer = optim::from_options(subject.optimizer);
  options.accumulation_steps = subject.accumulate;
  return inspected;
}

std::vector<compiler::StepGraph> step_graphs(const Inspected& inspected, Report* report) {
  Report unread;
  const auto& [graph, loss, options, weights] = inspected;
  return compiler::make_step_graphs(loss.valid()
                                        ? compiler::Compilation::training(graph, loss, options)
                                        : compiler::Compilation::plain(graph, options),
                                    report != nullptr ? *report : unread);
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
