// The ways into the pipeline.
#include "pantala/compile.h"

#include <fmt/format.h>

#include "compiler/pipeline.h"
#include "compiler/plan_key.h"
#include "pantala/error.h"

namespace pantala::compiler {

Compilation Compilation::plain(const Graph& graph, const CompileOptions& options) {
  const auto refuse = [](bool given, std::string_view what) {
    if (given)
      throw TypeError(fmt::format("compile: {} needs a loss; use compile_training_graph", what));
  };
  refuse(options.optimizer.has_value(), "optimizer");
  refuse(options.observe_gradients, "observe_gradients");
  refuse(options.accumulation_steps != 1, "accumulation_steps");
  refuse(options.split_update, "split_update");
  refuse(!options.normalize, "normalize = false");
  return {graph, {}, options};
}

Compilation Compilation::training(const Graph& graph, const Tensor& loss,
                                  const CompileOptions& options) {
  if (options.accumulation_steps < 1)
    throw TypeError(fmt::format("compile: accumulation_steps must be at least 1, got {}",
                                options.accumulation_steps));
  if (!loss.valid()) throw TypeError("compile: the loss is an empty handle");
  return {graph, loss, options};
}

}  // namespace pantala::compiler

namespace pantala {

using compiler::Compilation;

CompileResult compile(const Graph& graph, const CompileOptions& options) {
  const Compilation given = Compilation::plain(graph, options);
  return compiler::run_pipeline(given, compiler::plan_key(graph, {}, options));
}

CompileResult compile_training_graph(const Graph& graph, const Tensor& loss,
                                     const CompileOptions& options) {
  const Compilation given = Compilation::training(graph, loss, options);
  return compiler::run_pipeline(given, compiler::plan_key(graph, loss, options));
}

}  // namespace pantala
