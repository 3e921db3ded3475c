// The ways to a session in one call.
#include "base/log.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/session.h"

namespace pantala {

namespace {

SessionWithReport open(const CompileResult& compiled, const SessionOptions& options) {
  Session session(compiled, options);
  Report report = session.report();
  return {std::move(session), std::move(report)};
}

Session open_and_log(const CompileResult& compiled, const SessionOptions& options) {
  SessionWithReport built = open(compiled, options);
  logging::info("{}", built.report.text());
  return std::move(built.session);
}

struct InferenceStep {
  Graph graph;
  CompileOptions options;
};
InferenceStep inference_step(const Graph& graph, const CompileOptions& options) {
  if (options.optimizer || options.accumulation_steps != 1 || !options.normalize ||
      options.split_update || options.observe_gradients)
    throw TypeError(
        "build_inference_session: optimizer, accumulation_steps, normalize, split_update and "
        "observe_gradients are options of training");
  if (graph.outputs().empty())
    throw TypeError("build_inference_session: the graph has no output; name one with output()");
  InferenceStep step{graph.without_updates(), options};
  step.options.non_finite = NonFiniteGuard::none;  // there is nothing to guard
  return step;
}

}  // namespace

SessionWithReport build_session_with_report(const Graph& graph, const Tensor& loss,
                                            const CompileOptions& options,
                                            const SessionOptions& session) {
  return open(compile_training_graph(graph, loss, options), session);
}

Session build_session(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                      const SessionOptions& session) {
  return open_and_log(compile_training_graph(graph, loss, options), session);
}

Session build_session_unoptimized(const Graph& graph, const Tensor& loss,
                                  const CompileOptions& options, const SessionOptions& session) {
  CompileOptions plain = options;
  plain.optimize = false;
  return build_session(graph, loss, plain, session);
}

Session build_session_cached(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                             const std::filesystem::path& path, const SessionOptions& session) {
  return open_and_log(load_or_compile_training(path.string(), graph, loss, options), session);
}

Session build_inference_session(const Graph& graph, const CompileOptions& options,
                                const SessionOptions& session) {
  const InferenceStep step = inference_step(graph, options);
  return open_and_log(compile(step.graph, step.options), session);
}

Session build_inference_session_cached(const Graph& graph, const CompileOptions& options,
                                       const std::filesystem::path& path,
                                       const SessionOptions& session) {
  const InferenceStep step = inference_step(graph, options);
  return open_and_log(load_or_compile(path.string(), step.graph, step.options), session);
}

}  // namespace pantala
