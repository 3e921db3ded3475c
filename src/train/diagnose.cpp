#include "train/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "compiler/step_parts.h"
#include "ir/graph_data.h"
#include "ops/arithmetic.h"
#include "ops/face.h"
#include "ops/movement.h"
#include "pantala/ops.h"
#include "plan/step_names.h"

namespace pantala::train {

using compiler::StepParts;

namespace {

// What must be finite, in order of importance.
struct Endpoint {
  std::string what;
  ValueId value;
};
using Endpoints = std::vector<Endpoint>;

// A step to replay.
struct ReplayedStep {
  Graph graph;
  std::vector<Endpoints> endpoints;
  Endpoints norms = {};  // of the gradients: to blame if everything else is finite
  std::uint32_t forward = 0, backward = 0;  // as in StepParts
  bool is_chosen = false;                   // has no such parts
};

Endpoints new_values(const Graph& graph) {
  Endpoints endpoints;
  for (const auto& [leaf, value] : graph.data()->updates())
    endpoints.push_back(
        {fmt::format("the new value of '{}'", graph.data()->leaf_name(leaf)), value});
  return endpoints;
}

// The step that computes gradients: `step` or `accumulate`.
ReplayedStep with_gradients(const StepParts& step) {
  ReplayedStep replayed{
      .graph = step.graph, .endpoints = {}, .forward = step.forward, .backward = step.backward};
  Endpoints gradients;
  for (const auto& [parameter, gradient] : step.gradients) {
    const Tensor norm = sum(square(replayed.graph.value(gradient)));  // what the guard sees
    gradients.push_back({fmt::format("the gradient of '{}'", parameter), gradient});
    replayed.norms.push_back(
        {fmt::format("the norm of the gradient of '{}'", parameter), norm.id()});
  }
  replayed.endpoints = {{{"the loss", step.loss}}, gradients, new_values(step.graph)};
  return replayed;
}

ReplayedStep of_update(const StepParts& step) {
  return {.graph = step.graph,
          .endpoints = {{{"the mean loss", step.loss}}, new_values(step.graph)}};
}

// What the search made of a step. Its gradients have no names any more.
ReplayedStep as_chosen(const StepParts& step) {
  ReplayedStep replayed{.graph = step.chosen, .endpoints = {}, .is_chosen = true};
  for (const auto& [name, value] : std::as_const(step.chosen).data()->outputs())
    if (name == plan::kLossOutput) replayed.endpoints.push_back({{"the loss", value}});
  replayed.endpoints.push_back(new_values(step.chosen));
  return replayed;
}

std::vector<bool> live_nodes(const ReplayedStep& step) {
  const ir::GraphData& graph = *step.graph.data();
  std::vector<bool> live(graph.nodes().size());
  for (const Endpoints& group : step.endpoints)
    for (const Endpoint& endpoint : group) live[endpoint.value.node] = true;
  for (const Endpoint& endpoint : step.norms) live[endpoint.value.node] = true;
  for (auto id = static_cast<std::uint32_t>(live.size()); id-- > 0;)
    if (live[id])
      for (const ValueId& input : graph.node(id).inputs) live[input.node] = true;
  return live;
}

std::string output_name(ValueId id) { return fmt::format("value.{}.{}", id.node, id.result); }

// A session that computes every value of a step and changes nothing.
class Replay {
 public:
  Replay(const ReplayedStep& step, const CompileOptions& options)
      : live_(live_nodes(step)), session_(open(step, live_, options)) {}

  // Values that `changed` has are taken from there, the others from the session.
  void take(const Session& from, const std::map<std::string, Literal, std::less<>>& changed) {
    const auto value = [&](const std::string& name, const auto& otherwise) {
      const auto found = changed.find(name);
      return found == changed.end() ? otherwise() : found->second;
    };
    for (const std::string& name : session_.parameters())
      session_.set_parameter(name, from.parameter(name));
    for (const std::string& name : session_.states())
      session_.set_state(name, value(name, [&] { return from.state(name); }));
    for (const std::string& name : session_.scalars())
      session_.set_scalar(name,
                          value(name, [&] { return Literal::scalar(from.scalar(name)); }).at(0));
  }
  void give(const std::string& name, const data::Array& array) {
    const std::vector<std::string> names = session_.inputs();
    if (std::ranges::find(names, name) != names.end()) session_.set_input(name, array.elements());
  }
  void run() { session_.step(); }
  bool is_live(std::uint32_t node) const { return live_[node]; }
  Literal value(ValueId id) const { return session_.output(output_name(id)); }

 private:
  static Session open(const ReplayedStep& step, const std::vector<bool>& live,
                      const CompileOptions& options) {
    std::vector<std::pair<std::string, Tensor>> values;
    for (std::uint32_t id = 0; id < live.size(); ++id)
      for (std::uint32_t k = 0; live[id] && k < step.graph.data()->node(id).results.size(); ++k)
        values.emplace_back(output_name({id, k}), step.graph.value({id, k}));
    const Graph graph = step.graph.with_outputs(values).without_updates();
    return Session(compile(graph, {.device = options.device,
                                   .threads = options.threads,
                                   .optimize = false,
                                   .non_finite = NonFiniteGuard::none}));
  }

  std::vector<bool> live_;
  Session session_;
};

std::string place_of(const ir::Provenance& where) {
  return where.file.empty() ? "" : fmt::format("{}:{}", where.file, where.line);
}

// Looks for the beginning of what is not finite in a step that was replayed.
class Search {
 public:
  Search(const ReplayedStep& step, const Replay& replay)
      : step_(step), graph_(*step.graph.data()), replay_(replay) {
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id)
      if (replay.is_live(id)) classify(id);
  }

  std::optional<NonFiniteOrigin> run() const {
    for (const Endpoints& group : step_.endpoints)
      if (std::optional<NonFiniteOrigin> found = origin_of(group)) return found;
    return std::nullopt;
  }
  std::optional<NonFiniteOrigin> run_norms() const { return origin_of(step_.norms); }

 private:
  // An infinity that somebody wrote, such as that of a mask, and what it passes through without
  // becoming NaN are no trouble.
  enum class Numbers : std::uint8_t { finite, meant, bad };

  void classify(std::uint32_t id) {
    const ir::Node& node = graph_.node(id);
    const auto has = [&](Numbers kind) {
      return std::ranges::any_of(node.inputs, [&](const ValueId& x) { return numbers(x) == kind; });
    };
    const bool from_meant = node.op == &ir::constant_op() || node.op == &ir::data_op() ||
                            (has(Numbers::meant) && !has(Numbers::bad));
    for (std::uint32_t k = 0; k < node.results.size(); ++k) {
      if (!is_float(node.results[k].dtype)) continue;
      const Literal value = replay_.value({id, k});
      const auto count = [&](const auto& is) { return std::ranges::any_of(value.f(), is); };
      if (!count([](double x) { return !std::isfinite(x); })) continue;
      const bool is_nan = count([](double x) { return std::isnan(x); });
      numbers_[{id, k}] = from_meant && !is_nan ? Numbers::meant : Numbers::bad;
    }
  }
  Numbers numbers(ValueId id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? Numbers::finite : found->second;
  }
  // Of an endpoint: there no infinity is meant.
  bool is_bad(ValueId id) const { return numbers(id) != Numbers::finite; }

  // Follows bad numbers back; the first node with none among its inputs.
  std::uint32_t first_root(ValueId from) const {
    std::set<std::uint32_t> seen = {from.node};
    std::vector<std::uint32_t> left = {from.node};
    std::uint32_t first = from.node;
    while (!left.empty()) {
      const std::uint32_t id = left.back();
      left.pop_back();
      bool is_root = true;
      for (const ValueId& input : graph_.node(id).inputs) {
        if (numbers(input) != Numbers::bad) continue;
        is_root = false;
        if (seen.insert(input.node).second) left.push_back(input.node);
      }
      if (is_root) first = std::min(first, id);
    }
    return first;
  }

  std::optional<NonFiniteOrigin> origin_of(const Endpoints& group) const {
    std::optional<std::uint32_t> first;
    std::string reaches;
    for (const Endpoint& endpoint : group) {
      if (!is_bad(endpoint.value)) continue;
      const std::uint32_t root = first_root(endpoint.value);
      if (first && root >= *first) continue;
      first = root;
      reaches = endpoint.what;
    }
    if (!first) return std::nullopt;
    return describe(*first, std::move(reaches));
  }

  NonFiniteOrigin describe(std::uint32_t id, std::string reaches) const {
    const ir::Node& node = graph_.node(id);
    NonFiniteOrigin origin;
    origin.part = part_of(id);
    origin.op = node.op->name;
    if (node.where.rewrites)
      for (const ir::Rewriting& one : *node.where.rewrites) origin.rules.push_back(one.rule);
    // The optimizer's nodes have no place that the user wrote.
    if (origin.part != StepPart::update) {
      origin.label = node.where.label;
      origin.place = place_of(node.where);
    }
    origin.reaches = std::move(reaches);
    std::uint32_t k = 0;
    while (!is_bad({id, k})) ++k;
    const Literal result = replay_.value({id, k});
    origin.result = summary({id, k}, result);
    if (node.results.size() > 1)
      origin.result.argument =
          k < node.op->results.size() ? node.op->results[k] : fmt::format("[{}]", k);
    const auto bad = std::ranges::find_if(result.f(), [](double x) { return !std::isfinite(x); });
    const auto flat = bad - result.f().begin();
    origin.value = *bad;
    origin.index = index_of(result.shape(), flat);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Literal value = replay_.value(node.inputs[i]);
      ValueSummary input = summary(node.inputs[i], value);
      input.argument = argument_name(*node.op, i);
      if (value.shape() == result.shape()) input.here = value.at(flat);
      origin.inputs.push_back(std::move(input));
    }
    return origin;
  }

  StepPart part_of(std::uint32_t id) const {
    if (graph_.node(id).op->leaf && ir::leaf_kind(*graph_.node(id).op)) return StepPart::given;
    if (step_.is_chosen) return StepPart::chosen;
    if (id < step_.forward) return StepPart::forward;
    return id < step_.backward ? StepPart::backward : StepPart::update;
  }

  ValueSummary summary(ValueId id, const Literal& value) const {
    ValueSummary summary{.argument = "", .source = source_of(id), .type = value.type()};
    bool is_first = true;
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      const double x = value.at(k);
      if (std::isnan(x)) {
        ++summary.nan;
      } else if (std::isinf(x)) {
        ++summary.infinite;
      } else {
        summary.smallest = is_first ? x : std::min(summary.smallest, x);
        summary.largest = is_first ? x : std::max(summary.largest, x);
        is_first = false;
      }
    }
    return summary;
  }

  // What only changes shape or type is looked through.
  std::string source_of(ValueId id) const {
    const ir::Node& node = graph_.node(id.node);
    if (ir::leaf_kind(*node.op))
      return fmt::format("{} '{}'", node.op->name, graph_.leaf_name(id.node));
    if (ops::is<op::BroadcastTo, op::Reshape, op::Cast, op::Permute>(node))
      return source_of(node.inputs[0]);
    const bool has_place = !node.where.file.empty() && id.node < step_.backward;
    return has_place ? fmt::format("{} ({})", node.op->name, place_of(node.where)) : node.op->name;
  }

  static std::string argument_name(const ir::OpDef& op, std::size_t i) {
    const std::size_t last = op.inputs.size() - 1;
    return i >= last && op.inputs[last].variadic
               ? fmt::format("{}[{}]", op.inputs[last].name, i - last)
               : op.inputs[i].name;
  }

  static std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t flat) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    for (int axis = shape.rank(); axis-- > 0;) {
      index[static_cast<std::size_t>(axis)] = flat % shape[axis];
      flat /= shape[axis];
    }
    return index;
  }

  const ReplayedStep& step_;
  const ir::GraphData& graph_;
  const Replay& replay_;
  std::map<ValueId, Numbers> numbers_;  // of those that are not finite
};

using Changed = std::map<std::string, Literal, std::less<>>;

// What the accumulators hold when `apply` runs: what the session has if it has just run it,
// otherwise what the replayed micro-batch leaves there.
Changed accumulators(const Session& session, const StepParts& accumulate, const Replay& replay) {
  Changed changed;
  if (session.accumulated() == 0 && session.state(plan::kAccumulatedWeight).at(0) != 0)
    return changed;
  const ir::GraphData& graph = *accumulate.graph.data();
  for (const auto& [leaf, value] : graph.updates())
    if (graph.leaf_name(leaf).starts_with("accum."))
      changed.emplace(graph.leaf_name(leaf), replay.value(value));
  return changed;
}

Diagnosis diagnose_form(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                        const Session& session, const data::Batch& batch,
                        const BatchInputs& names) {
  const std::vector<StepParts> steps = compiler::training_step_parts(graph, loss, options);

  Diagnosis diagnosis{.origin = {}, .device = options.device};
  const ReplayedStep first = with_gradients(steps[0]);
  const auto give = [&](Replay& replay) {
    const double is_first = session.accumulated() == 0 ? 1.0 : 0.0;
    replay.take(session, {{std::string(plan::kFirstMicroBatch), Literal::scalar(is_first)}});
    replay.give(names.data, batch.data);
    replay.give(names.labels, batch.labels);
    for (const data::NamedArray& other : batch.more) replay.give(other.name, other.array);
  };
  Replay replay(first, options);
  give(replay);
  replay.run();
  const Search search(first, replay);
  diagnosis.origin = search.run();
  if (!diagnosis.origin && steps.size() > 1) {
    const ReplayedStep second = of_update(steps[1]);
    Replay update(second, options);
    update.take(session, accumulators(session, steps[0], replay));
    update.run();
    diagnosis.origin = Search(second, update).run();
  }
  if (!diagnosis.origin) diagnosis.origin = search.run_norms();
  for (std::size_t k = 0; k < steps.size() && !diagnosis.origin; ++k) {
    const ReplayedStep chosen = as_chosen(steps[k]);
    Replay as_it_ran(chosen, options);
    k == 0 ? give(as_it_ran) : as_it_ran.take(session, accumulators(session, steps[0], replay));
    as_it_ran.run();
    diagnosis.origin = Search(chosen, as_it_ran).run();
  }
  return diagnosis;
}

}  // namespace

Diagnosis diagnose(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                   const Session& session, const data::Batch& batch, const BatchInputs& names) {
  Diagnosis found = diagnose_form(graph, loss, options, session, batch, names);
  if (!found.origin || found.origin->rules.empty()) return found;
  // Where the op that the user wrote fails in the same place as what rules made of it, people know
  // it by that name.
  CompileOptions as_written = options;
  as_written.rewrite = Rewrite::none;
  Diagnosis own = diagnose_form(graph, loss, as_written, session, batch, names);
  const bool agrees = own.origin && !own.origin->place.empty() &&
                      own.origin->place == found.origin->place &&
                      own.origin->part == found.origin->part;
  return agrees ? own : found;
}

// --- text

std::string_view part_name(StepPart part) {
  constexpr std::string_view kNames[] = {"given values", "forward pass", "backward pass", "update",
                                         "rewritten step"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string ValueSummary::text() const {
  std::vector<std::string> parts;
  if (finite() > 0)
    parts.push_back(smallest == largest ? exact(smallest)
                                        : fmt::format("{} to {}", exact(smallest), exact(largest)));
  if (nan > 0) parts.push_back(fmt::format("{} nan", nan));
  if (infinite > 0) parts.push_back(fmt::format("{} infinite", infinite));
  if (parts.empty()) parts.emplace_back("no elements");
  std::string text = fmt::format("{}: {}", type.str(), fmt::join(parts, ", "));
  if (here) text += fmt::format("; {} there", exact(*here));
  return text;
}

std::string Diagnosis::text() const {
  if (!origin)
    return fmt::format(
        "Replayed with a kernel per op on {}, the step has only finite numbers on its way to the "
        "loss, the gradients, their norms and the new values.\n",
        device);
  const NonFiniteOrigin& o = *origin;
  const std::string at = o.index.empty() ? "" : fmt::format(" at [{}]", fmt::join(o.index, ","));
  std::string text;
  if (o.part == StepPart::given) {
    text = fmt::format("The {} is {}{} before anything is computed.\n", o.result.source,
                       exact(o.value), at);
  } else {
    const std::string label = o.label.empty() ? "" : fmt::format(" {}", in_quotes(o.label));
    const std::string place = o.place.empty() ? "" : fmt::format(" ({})", o.place);
    text = fmt::format("The first number that is not finite is made in the {} by {}{}{}: {}{}.\n",
                       part_name(o.part), o.op, label, place, exact(o.value), at);
  }
  if (!o.rules.empty()) text += fmt::format("  made by {}\n", fmt::join(o.rules, ", "));
  text += fmt::format("  result {}{}\n", o.result.argument.empty() ? "" : o.result.argument + ", ",
                      o.result.text());
  for (const ValueSummary& input : o.inputs)
    text += fmt::format("  {}, {}, {}\n", input.argument, input.source, input.text());
  return text +
         fmt::format("It reaches {}. Replayed with a kernel per op on {}.\n", o.reaches, device);
}

}  // namespace pantala::train
