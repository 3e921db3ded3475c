#include "compiler/plan_key.h"

#include <fmt/format.h>

#include "base/text.h"
#include "compiler/build_id.h"
#include "compiler/options.h"
#include "compiler/step_graphs.h"
#include "ops/optimizers/table.h"
#include "pantala/text.h"
#include "plan/plan_file.h"
#include "plan/serialize.h"

namespace pantala::compiler {

namespace {

std::string value_text(const Tensor& value) {
  return value.valid() ? fmt::format("%{}:{}", value.id().node, value.id().result) : "none";
}

std::string target_text(const Options& options) {
  return fmt::format("code {}\n{}\n", backend_of(options.device).code_target(options.code_for()),
                     schedule::target_text(options.target));
}

// What a graph is chosen by. The table says in any case what the report predicts.
std::string rewrite_text(const Options& options) {
  std::string text = fmt::format("rewrite {} promise {}", static_cast<int>(options.level),
                                 static_cast<int>(options.promise));
  if (options.memory_limit > 0) text += fmt::format(" memory {}", options.memory_limit);
  if (options.level != search::Level::none)
    for (const std::string& rule : options.rules_off) text += fmt::format(" off {}", rule);
  if (options.greedy_order != 0) text += fmt::format(" order {}", options.greedy_order);
  return text + fmt::format(" table {}\n", hex(schedule::digest_of(cost_table(options))));
}

std::string optimizer_text(const std::optional<optim::Optimizer>& optimizer) {
  return fmt::format("optimizer {}\n", optimizer ? ops::graph_key(*optimizer) : "none");
}

std::string training_text(const TrainingStepOptions& options) {
  std::string text = "training";
  for (const std::string& name : options.parameters) text += fmt::format(" {}", in_quotes(name));
  for (const optim::ParameterGroup& group : options.groups)
    text += fmt::format(" group({}, decay={}, frozen={})", in_quotes(group.pattern),
                        group.weight_decay.has_value(), group.frozen);
  if (options.updated) text += " updated";
  for (const std::string& name : options.updated.value_or(std::vector<std::string>()))
    text += fmt::format(" {}", in_quotes(name));
  text += fmt::format(" statistics={}", static_cast<int>(options.kept_statistics));
  return text + fmt::format(" clip({}, {}) ema={} norms={} {}\n", options.clip.norm.has_value(),
                            options.clip.value.has_value(), options.ema_decay.has_value(),
                            options.gradient_norms, options.global_norm);
}

}  // namespace

std::string key_text(const Graph& graph, const Tensor& loss, const CompileOptions& options) {
  const Options lower = host_options(options);
  std::string text =
      fmt::format("plan file {} plan {}\nbuild {}\nllvm {}\n", plan::kPlanFileVersion,
                  plan::kPlanVersion, build_id(), llvm_version());
  text += fmt::format(
      "device {} threads {} optimize {} guard {} accumulate {} mean {} split {} guarded {} "
      "gradients "
      "{}\n",
      lower.device, lower.threads, options.optimize, static_cast<int>(options.non_finite),
      options.accumulation_steps, options.normalize, splits_update(options),
      options.guard_micro_batches, options.observe_gradients);
  text += rewrite_text(lower) + target_text(lower) + optimizer_text(options.optimizer) +
          training_text(options.training);
  for (const std::string& name : options.outputs)
    text += fmt::format("output {}\n", in_quotes(name));
  for (const auto& [name, value] : options.observe)
    text += fmt::format("observe {} {}\n", in_quotes(name), value_text(value));
  return text + fmt::format("loss {}\n", value_text(loss)) + to_text(graph);
}

Digest plan_key(const Graph& graph, const Tensor& loss, const CompileOptions& options) {
  return sha256(key_text(graph, loss, options));
}

}  // namespace pantala::compiler
