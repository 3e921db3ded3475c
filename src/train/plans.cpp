#include "train/plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/ops/loss.h"
#include "plan/compiled_plan.h"

namespace pantala::train {

namespace {

// "step-64-0123456789abcdef.plan": plans of many models and sizes can share a folder.
std::string cache_file(const PlanNames& names, std::string_view role, std::int64_t items) {
  return (names.cache / fmt::format("{}-{}-{{key}}.plan", role, items)).string();
}

CompileResult compile_step(const Graph& graph, std::int64_t items, const PlanNames& names,
                           const CompileOptions& options) {
  const Tensor loss = graph.output(names.loss);
  if (names.cache.empty()) return compile_training_graph(graph, loss, options);
  return load_or_compile_training(cache_file(names, "step", items), graph, loss, options);
}

CompileResult compile_evaluation(const Graph& graph, std::int64_t items, const PlanNames& names,
                                 const CompileOptions& training) {
  const CompileOptions options = evaluation_options(training);
  if (names.cache.empty()) return compile(graph, options);
  return load_or_compile(cache_file(names, "evaluate", items), graph, options);
}

CompileResult compile_for(const Plans::Use& use, const Graph& graph, const PlanNames& names,
                          const CompileOptions& options) {
  return use.first == Phase::training ? compile_step(graph, use.second, names, options)
                                      : compile_evaluation(graph, use.second, names, options);
}

// What the readers of the labels take beside classes, if they say so.
std::optional<std::int64_t> ignored_label(const Session& session, const std::string& labels) {
  const CompiledPlan plan = session.compiled();
  for (const plan::CompiledStep& step : plan.data()->steps)
    for (const plan::Port& input : step.plan.inputs)
      if (input.name == labels && input.exempt) return input.exempt;
  return {};
}

// TypeError with the nearest name if the session's graph has no such input.
Type input_type(const Session& session, const std::string& name) {
  std::vector<std::string> inputs;
  for (const plan::CompiledLeaf& leaf : session.compiled().data()->leaves) {
    if (leaf.kind != LeafKind::input) continue;
    if (leaf.name == name) return leaf.type;
    inputs.push_back(leaf.name);
  }
  throw TypeError(fmt::format("trainer: the session has no input '{}'{}; its inputs are: {}", name,
                              did_you_mean(name, inputs), fmt::join(inputs, ", ")));
}

std::int64_t items_of(const Type& type, const std::string& name) {
  if (type.shape.rank() == 0)
    throw TypeError(fmt::format(
        "trainer: the input '{}' is a scalar; its first axis must be that of the items", name));
  return type.shape[0];
}

std::string_view phase_name(Phase phase) {
  return phase == Phase::training ? "training" : "evaluation";
}

Session open(const CompileResult& compiled, const SessionOptions& options) {
  Session session(compiled, options);
  logging::info("{}", session.report().text());
  return session;
}

CompileOptions checked_options(CompileOptions options) {
  if (!options.observe.empty())
    throw TypeError(
        "trainer: `observe` names values of one graph, and the model is a function that makes "
        "several; name the values as outputs of the graph");
  // Plans that are compiled later are chosen by the same table, whatever becomes of its file.
  options.cost_table = cost_table_text(options.cost_table);
  return options;
}

// The names of the model's own tensors. A prediction need not be an output: then there is none.
void put_names(const TrainableGraph& model, PlanNames& names) {
  const auto put_input = [&](const Tensor& tensor, const char* what, std::string& name) {
    for (const Leaf& leaf : model.graph.leaves(LeafKind::input))
      if (tensor.valid() && leaf.value.id() == tensor.id()) return name = leaf.name, void();
    throw TypeError(fmt::format("trainer: the model's {} are no input of its graph", what));
  };
  const auto put_output = [&](const Tensor& tensor, std::string& name) {
    for (const auto& [known, value] : model.graph.outputs())
      if (tensor.valid() && value.id() == tensor.id()) return name = known, true;
    return false;
  };
  put_input(model.input, "items", names.data);
  put_input(model.labels, "labels", names.labels);
  if (!put_output(model.loss, names.loss))
    throw TypeError("trainer: the model's loss is no output of its graph");
  put_output(model.prediction, names.prediction);
}

// Going back takes time: steps that are left out as a matter of course change nothing to begin
// with.
NonFiniteGuard guard_of(NonFinite non_finite) {
  switch (non_finite) {
    case NonFinite::error:
      return NonFiniteGuard::watched;
    case NonFinite::skip:
      return NonFiniteGuard::gradients;
    case NonFinite::propagate:
      break;
  }
  return NonFiniteGuard::none;
}

}  // namespace

CompileOptions training_options(const TrainConfig& config, CompileOptions options) {
  if (options.optimizer && *options.optimizer != config.optimizer)
    throw TypeError(fmt::format(
        "trainer: the config's optimizer is {}, that of the options {}; the config's is used, so "
        "leave the other one out",
        config.optimizer.str(), options.optimizer->str()));
  options.optimizer = config.optimizer;
  options.non_finite = guard_of(config.non_finite);
  return options;
}

CompileOptions evaluation_options(const CompileOptions& training) {
  CompileOptions options;
  options.device = training.device;
  options.threads = training.threads;
  options.optimize = training.optimize;
  options.rewrite = training.rewrite;
  options.numerics = training.numerics;
  options.rules_off = training.rules_off;
  options.target = training.target;
  options.greedy_order = training.greedy_order;
  options.memory_limit = training.memory_limit;
  options.cost_table = training.cost_table;
  options.non_finite = NonFiniteGuard::none;
  options.cancelled = training.cancelled;
  return options;
}

Plans::Plans(Session session, PlanNames names)
    : names_(std::move(names)),
      session_(std::move(session)),
      ignored_label_(ignored_label(session_, names_.labels)) {
  batch_size_ = items_of(input_type(session_, names_.data), names_.data);
  input_type(session_, names_.labels);
  steps_.emplace(batch_size_, session_.plan(session_.plans().front()));
}

Plans::Plans(ModelFactory model, std::int64_t batch_size, PlanNames names, CompileOptions options,
             const SessionOptions& session)
    : model_(std::move(model)),
      names_(std::move(names)),
      options_(checked_options(std::move(options))),
      session_(open(
          compile_step(checked_graph(batch_size, Phase::training), batch_size, names_, options_),
          session)),
      batch_size_(batch_size),
      ignored_label_(ignored_label(session_, names_.labels)) {
  steps_.emplace(batch_size_, session_.plan(session_.plans().front()));
}

Graph Plans::checked_graph(std::int64_t items, Phase phase) {
  if (!model_) throw TypeError("trainer: the function that makes the model's graph is empty");
  if (items < 1)
    throw TypeError(fmt::format("trainer: the batch size must be 1 or more, got {}", items));
  TrainableGraph model = model_(items, phase);
  if (model.has_tensors()) put_names(model, names_);
  Graph& graph = model.graph;
  const auto where = [&] {
    return fmt::format("trainer: the model's graph for {} with batches of {}", phase_name(phase),
                       items);
  };
  std::vector<std::string> inputs;
  for (const Leaf& leaf : graph.leaves(LeafKind::input)) inputs.push_back(leaf.name);
  for (const std::string& name : {names_.data, names_.labels})
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
      throw TypeError(
          fmt::format("{} has no input '{}'{}", where(), name, did_you_mean(name, inputs)));
  const Type type = graph.leaf(names_.data).type();
  if (items_of(type, names_.data) != items)
    throw TypeError(fmt::format("{} has an input '{}' of type {}: the first axis must be {}",
                                where(), names_.data, type.str(), items));
  std::vector<std::string> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs.push_back(name);
  if (std::find(outputs.begin(), outputs.end(), names_.loss) == outputs.end())
    throw TypeError(fmt::format("{} has no output '{}'{}", where(), names_.loss,
                                did_you_mean(names_.loss, outputs)));
  return phase == Phase::evaluation ? std::move(graph).without_updates() : graph;
}

const SessionPlan& Plans::step_of_size(std::int64_t items) {
  if (const auto found = steps_.find(items); found != steps_.end()) return found->second;
  if (!model_)
    throw TypeError(fmt::format(
        "trainer: a batch of {} items, but the session was compiled for {}; drop the short last "
        "batch (LoaderOptions::drop_last), or give the trainer the model as a function of the "
        "batch size",
        items, batch_size_));
  const CompileResult compiled = this->compiled({Phase::training, items}).result;
  return steps_.emplace(items, session_.attach_step(fmt::format("step.{}", items), compiled.plan))
      .first->second;
}

bool Plans::has(const Use& use) const {
  return use.first == Phase::training ? steps_.contains(use.second)
                                      : evaluators_.contains(use.second);
}

void Plans::prepare(const Use& use) {
  if (!model_ || has(use) || ahead_.has(use)) return;
  try {
    const Graph& graph = graphs_.emplace(use, checked_graph(use.second, use.first)).first->second;
    ahead_.add(
        use, [use, graph, names = names_, options = options_](const std::stop_token& stop) mutable {
          options.cancelled = [stop, by_user = options.cancelled] {
            return stop.stop_requested() || (by_user && by_user());
          };
          CompileResult result = compile_for(use, graph, names, options);
          return Compiled{std::move(graph), std::move(result)};
        });
  } catch (...) {
    // The model has no graph of this size: compiled() says so, should there be such a batch.
  }
}

void Plans::bring(const Use& use) {
  if (use.first == Phase::training)
    step_of_size(use.second);
  else
    evaluator(use.second);
}

bool Plans::is_at_hand(const Use& use) const { return has(use) || ahead_.is_made(use); }

Plans::Compiled Plans::compiled(const Use& use) {
  const auto prepared = graphs_.extract(use);
  if (std::optional<Compiled> made = ahead_.take(use)) return std::move(*made);
  Graph graph = prepared ? prepared.mapped() : checked_graph(use.second, use.first);
  CompileResult result = compile_for(use, graph, names_, options_);
  return {std::move(graph), std::move(result)};
}

std::int64_t Plans::labels_that_count(const data::Batch& batch) const {
  if (is_float(batch.labels.dtype())) return batch.items();
  return std::visit(
      [&](const auto& labels) {
        return std::ranges::count_if(
            labels, [&](auto label) { return counts(static_cast<std::int64_t>(label)); });
      },
      batch.labels.values);
}

// Where no reader names a label to ignore, what is below 0 is no class.
bool Plans::counts(std::int64_t label) const {
  return ignored_label_ ? label != *ignored_label_ : label >= 0;
}

void Plans::set_inputs(const SessionPlan& plan, const data::Batch& batch) const {
  plan.set_input(names_.data, batch.data.elements());
  plan.set_input(names_.labels, batch.labels.elements());
  for (const data::NamedArray& other : batch.more)
    plan.set_input(other.name, other.array.elements());
}

const SessionPlan& Plans::step_on(const data::Batch& batch) {
  if (batch.items() < 1)
    throw TypeError(fmt::format("trainer: a batch without items: its data are {}{}",
                                dtype_name(batch.data.dtype()), batch.data.shape.str()));
  const SessionPlan& plan = step_of_size(batch.items());
  set_inputs(plan, batch);
  return plan;
}

// A leaf that only evaluation has would be in some checkpoints and not in others.
void Plans::check_known(const CompiledPlan& plan) const {
  std::vector<std::string> unknown;
  for (const plan::CompiledLeaf& leaf : plan.data()->leaves) {
    if (leaf.kind == LeafKind::input) continue;
    const auto& known = session_.compiled().data()->leaves;
    if (std::ranges::find(known, leaf.name, &plan::CompiledLeaf::name) == known.end())
      unknown.push_back(leaf.name);
  }
  if (!unknown.empty())
    throw TypeError(
        fmt::format("trainer: the model's graph for evaluation has parameters or "
                    "states that the one for training does not have: {}",
                    fmt::join(unknown, ", ")));
}

void Plans::check_evaluates() const {
  if (!model_)
    throw TypeError(
        "trainer: evaluation needs a plan of its own: give the trainer the model as a function of "
        "batch size and phase instead of a session");
}

const Plans::Evaluator& Plans::evaluator(std::int64_t items) {
  if (const auto found = evaluators_.find(items); found != evaluators_.end()) return found->second;
  check_evaluates();
  const auto [graph, compiled] = this->compiled({Phase::evaluation, items});
  check_known(compiled.plan);
  std::optional<Type> prediction;
  for (const auto& [name, value] : graph.outputs())
    if (name == names_.prediction) prediction = value.type();
  return evaluators_
      .emplace(items, Evaluator{session_.attach(fmt::format("evaluate.{}", items), compiled.plan),
                                graph.leaf(names_.labels).type(), prediction})
      .first->second;
}

}  // namespace pantala::train
