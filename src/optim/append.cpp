// Extending a graph by an optimizer: its scalars, the states that its declaration asks for, and one
// update op for each parameter. What depends on scalars and on the counter alone (bias corrections)
// is built in f64.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ir/graph_data.h"
#include "ops/optimizers/table.h"
#include "optim/added_scalars.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/optim.h"

namespace pantala::optim {

namespace {

ValueRef ref(const Tensor& t) { return {t.id(), t.type()}; }

std::optional<LeafKind> kind_of_leaf(const Tensor& t) {
  return ir::leaf_kind(*t.graph()->node(t.id().node).op);
}

// Parameters and states can be updated; other values are only read.
bool is_updatable(const Tensor& t) {
  return kind_of_leaf(t) == LeafKind::parameter || kind_of_leaf(t) == LeafKind::state;
}

// The name of a leaf; other values are called by their position.
std::string weight_name(const Tensor& t, std::size_t position) {
  return kind_of_leaf(t) ? t.graph()->leaf_name(t.id().node) : fmt::format("weight{}", position);
}

void check_owner(const Graph& graph, const Tensor& t, std::size_t entry, std::string_view what) {
  if (!t.valid() || t.graph() != graph.data())
    throw TypeError(
        fmt::format("optim: entry {}: the {} is not a value of the graph", entry, what));
}

void check_lists(const Graph& graph, const std::vector<Tensor>& weights,
                 const std::vector<Tensor>& gradients, const std::vector<bool>& frozen) {
  if (weights.size() != gradients.size()) {
    const bool more_weights = weights.size() > gradients.size();
    throw TypeError(fmt::format(
        "optim: {} weights but {} gradients; entry {} has no {}", weights.size(), gradients.size(),
        std::min(weights.size(), gradients.size()), more_weights ? "gradient" : "weight"));
  }
  for (std::size_t k = 0; k < weights.size(); ++k) {
    check_owner(graph, weights[k], k, "weight");
    if (frozen[k]) continue;
    check_owner(graph, gradients[k], k, "gradient");
    if (!is_float(weights[k].dtype()))
      throw TypeError(fmt::format("optim: entry {} ('{}'): a weight must be a float tensor, got {}",
                                  k, weight_name(weights[k], k), weights[k].type().str()));
    if (weights[k].type() != gradients[k].type())
      throw TypeError(fmt::format("optim: entry {} ('{}'): the weight is {}, its gradient {}", k,
                                  weight_name(weights[k], k), weights[k].type().str(),
                                  gradients[k].type().str()));
  }
}

class Appender {
 public:
  Appender(Graph& graph, const Optimizer& optimizer, const AppendOptions& options)
      : graph_(graph),
        optimizer_(optimizer),
        definition_(optimizer.definition()),
        variant_(definition_.variant(optimizer)),
        options_(options) {
    for (const auto& [name, value] : optimizer.scalars()) add_scalar(name, value);
    append_counter();
    if (definition_.shared) append_shared();
    for (const auto& [name, value] : added_scalars(options)) add_scalar(name, value);
  }

  // `weights` and `gradients` are those that are not frozen.
  std::vector<Tensor> run(const std::vector<Tensor>& weights, std::vector<Tensor> gradients,
                          const std::vector<std::string>& names) {
    report_norms(gradients, names);
    if (options_.clip.value) limit_values(gradients);
    if (options_.clip.norm) limit_norm(gradients);
    std::vector<Tensor> fresh;
    for (std::size_t k = 0; k < weights.size(); ++k)
      fresh.push_back(is_updated(names[k]) ? append_weight(weights[k], gradients[k], names[k])
                                           : weights[k]);
    return fresh;
  }
  Appended& added() { return added_; }

 private:
  bool is_updated(const std::string& name) const {
    return !options_.updated || std::ranges::count(*options_.updated, name) > 0;
  }
  void add_scalar(const std::string& name, double value) {
    scalars_.emplace(name, graph_.scalar(name, value));
    added_.scalar_names.push_back(name);
  }
  const Tensor& scalar(std::string_view name) const {
    return scalars_.at(fmt::format("optim.{}", name));
  }

  Tensor add_state(const std::string& name, const Type& type, const Initializer& init) {
    added_.state_names.push_back(name);
    return graph_.state(name, type.shape, init, type.dtype);
  }

  void append_counter() {
    const Tensor count = add_state("optim.step", Type{i64, {}}, init::zeros());
    const Tensor t = count + 1;
    graph_.update(count, t);
    is_first_ = eq(t, 1);
    t_ = cast(t, f64);
  }

  // --- gradients

  // Squares are summed per tensor in its own dtype, over tensors in f64.
  static Tensor squared_norm(const Tensor& g) { return cast(sum(square(g)), f64); }
  static Tensor total_norm(const std::vector<Tensor>& gradients) {
    std::vector<Tensor> squares;
    for (const Tensor& g : gradients) squares.push_back(squared_norm(g));
    return sqrt(squares.size() == 1 ? squares[0] : add_n(squares));
  }
  void report_norms(const std::vector<Tensor>& gradients, const std::vector<std::string>& names) {
    for (std::size_t k = 0; options_.gradient_norms && k < gradients.size(); ++k)
      graph_.output("grad_norm." + names[k], sqrt(squared_norm(gradients[k])));
    if (options_.global_norm || options_.clip.norm)
      graph_.output("grad_norm", total_norm(gradients));
  }
  void limit_values(std::vector<Tensor>& gradients) const {
    for (Tensor& g : gradients) {
      const Tensor limit = cast(scalar("clip_value"), g.dtype());
      g = minimum(maximum(g, -limit), limit);
    }
  }
  // The small number is PyTorch's; a norm below the limit leaves the gradients bit-equal.
  void limit_norm(std::vector<Tensor>& gradients) const {
    const Tensor factor = minimum(scalar("clip_norm") / (total_norm(gradients) + 1e-6), 1.0);
    for (Tensor& g : gradients) g = g * cast(factor, g.dtype());
  }

  // --- scalars that depend on the step
  ops::StepScalars::Values option_scalars() const {
    ops::StepScalars::Values values;
    for (const ops::NumberOption& number : definition_.numbers)
      if (const auto found = scalars_.find(fmt::format("optim.{}", number.name));
          found != scalars_.end())
        values.emplace(number.name, found->second);
    return values;
  }

  void append_shared() {
    const auto keep = [&](std::string_view name, const Initializer& first, const auto& next) {
      const Tensor old = add_state(fmt::format("optim.{}", name), Type{f64, {}}, first);
      const Tensor fresh = next(old);
      graph_.update(old, fresh);
      return fresh;
    };
    shared_ = definition_.shared({t_, is_first_, option_scalars()}, keep);
  }

  // What the update op reads for one parameter, in the order of its inputs.
  std::vector<Tensor> update_scalars(const ops::StepScalars& s) const {
    ops::HostScalars computed = shared_;
    if (definition_.scalars)
      for (const auto& one : definition_.scalars(s, optimizer_)) computed.push_back(one);
    std::vector<Tensor> result;
    for (const ops::Slot& slot : variant_.slots) {
      if (!slot.scalar) continue;
      const auto found = std::find_if(computed.begin(), computed.end(),
                                      [&](const auto& one) { return one.first == slot.name; });
      result.push_back(found != computed.end() ? found->second : s[slot.name]);
    }
    return result;
  }

  // --- one parameter
  ops::StepScalars scalars_for(const std::string& name) const {
    ops::StepScalars::Values values = option_scalars();
    if (const ParameterGroup* group = find_group(options_.groups, name)) {
      const std::string prefix = fmt::format("group{}.", group - options_.groups.data());
      values["lr"] = values["lr"] * scalar(prefix + "lr_factor");
      if (group->weight_decay) values["weight_decay"] = scalar(prefix + "weight_decay");
    }
    return {t_, is_first_, std::move(values)};
  }

  // What its states begin with.
  Initializer first_value() const {
    const std::vector<ops::Role> roles = definition_.roles(optimizer_);
    for (std::size_t k = 0; k < roles.size(); ++k)
      if (roles[k] == ops::Role::first_value)
        return init::constant(optimizer_.value(definition_.numbers[k].name));
    return init::zeros();
  }

  Tensor append_weight(const Tensor& weight, const Tensor& gradient, const std::string& name) {
    std::vector<Tensor> states;
    for (const ops::Slot& slot : variant_.slots)
      if (!slot.scalar)
        states.push_back(
            add_state(fmt::format("optim.{}.{}", slot.name, name), weight.type(), first_value()));
    const UpdateResult result = ops::apply_update(*definition_.update, variant_, weight, gradient,
                                                  states, update_scalars(scalars_for(name)));
    for (std::size_t k = 0; k < states.size(); ++k) graph_.update(states[k], result.states[k]);
    if (is_updatable(weight)) graph_.update(weight, result.weight);
    if (options_.ema_decay) append_average(weight, result.weight, name);
    return result.weight;
  }

  // The average starts from the weight before the first step: it is that weight's only possible
  // past.
  void append_average(const Tensor& old_weight, const Tensor& new_weight, const std::string& name) {
    const Tensor average = add_state("ema." + name, old_weight.type(), init::zeros());
    const Tensor &decay = scalar("ema_decay"), past = where(is_first_, old_weight, average);
    graph_.update(average, cast(decay, old_weight.dtype()) * past +
                               cast(1.0 - decay, old_weight.dtype()) * new_weight);
  }

  Graph& graph_;
  const Optimizer& optimizer_;
  const ops::OptimizerDef& definition_;
  const ops::UpdateVariant variant_;
  const AppendOptions& options_;
  std::map<std::string, Tensor, std::less<>> scalars_;
  Tensor t_, is_first_;  // the number of this step, from 1, as f64
  ops::HostScalars shared_;
  Appended added_;
};

void check_groups(const std::vector<ParameterGroup>& groups,
                  const std::vector<std::string>& names) {
  for (std::size_t k = 0; k < groups.size(); ++k)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return glob_match(groups[k].pattern, name); }))
      throw TypeError(fmt::format("optim: no parameter matches '{}' of group {}{}",
                                  groups[k].pattern, k, did_you_mean(groups[k].pattern, names)));
}

}  // namespace

const ParameterGroup* find_group(const std::vector<ParameterGroup>& groups,
                                 std::string_view parameter) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
    return glob_match(group.pattern, parameter);
  });
  return found == groups.end() ? nullptr : &*found;
}

Appended append(Graph& graph, const Optimizer& optimizer, const std::vector<Tensor>& parameters,
                const std::vector<Tensor>& gradients, const AppendOptions& options) {
  std::vector<std::string> names;
  std::vector<bool> frozen;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    check_owner(graph, parameters[k], k, "weight");
    names.push_back(weight_name(parameters[k], k));
    const ParameterGroup* group = find_group(options.groups, names.back());
    frozen.push_back(group != nullptr && group->frozen);
  }
  check_lists(graph, parameters, gradients, frozen);
  check_groups(options.groups, names);
  std::vector<Tensor> live, live_gradients;
  std::vector<std::string> live_names;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (frozen[k]) continue;
    live.push_back(parameters[k]);
    live_gradients.push_back(gradients[k]);
    live_names.push_back(names[k]);
  }
  if (live.empty())
    throw TypeError(fmt::format("optim: there is nothing to train: {} parameters, all frozen",
                                parameters.size()));
  Appender appender(graph, optimizer, options);
  const std::vector<Tensor> fresh = appender.run(live, live_gradients, live_names);
  auto next = fresh.begin();
  for (std::size_t k = 0; k < parameters.size(); ++k)
    appender.added().new_weights.push_back(ref(frozen[k] ? parameters[k] : *next++));
  return appender.added();
}

SgdOnGraph sgd_on_graph(Graph& graph, const std::vector<Tensor>& weights,
                        const std::vector<Tensor>& gradients, double lr) {
  check_lists(graph, weights, gradients, std::vector<bool>(weights.size(), false));
  const Tensor rate = graph.scalar("optim.lr", checked("lr", lr)),
               no_decay = graph.constant(0, {}, f64);
  SgdOnGraph result;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const Tensor fresh = sgd_update(weights[k], gradients[k], {}, {rate, no_decay}).weight;
    if (is_updatable(weights[k])) graph.update(weights[k], fresh);
    result.new_weights.push_back(ref(fresh));
  }
  result.learning_rate = ref(rate);
  return result;
}

AdamOnGraph adam_on_graph(Graph& graph, const std::vector<Tensor>& weights,
                          const std::vector<Tensor>& gradients, double lr) {
  Appended added = append(graph, adam(lr), weights, gradients);
  return AdamOnGraph(std::move(added), ref(graph.leaf("optim.lr")));
}

namespace {
struct Leaves {
  std::vector<Tensor> weights, gradients;
};

// Leaves of a new graph in the types of the given gradients.
Leaves make_leaves(Graph& graph, const std::vector<Tensor>& gradients) {
  Leaves leaves;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    if (!gradients[k].valid())
      throw TypeError(fmt::format("optim: entry {}: the gradient is an empty handle", k));
    const Type& type = gradients[k].type();
    leaves.weights.push_back(
        graph.parameter(fmt::format("weight.{}", k), type.shape, init::zeros(), type.dtype));
    leaves.gradients.push_back(graph.input(fmt::format("gradient.{}", k), type.shape, type.dtype));
  }
  return leaves;
}

template <class Result>
void describe(Result& result, const Leaves& leaves, const std::vector<ValueRef>& new_weights) {
  for (const Tensor& t : leaves.weights) result.old_weights.push_back(ref(t));
  for (const Tensor& t : leaves.gradients) result.gradients.push_back(ref(t));
  result.new_weights = new_weights;
  for (std::size_t k = 0; k < new_weights.size(); ++k)
    result.graph.output(fmt::format("new_weight.{}", k), new_weights[k].in(result.graph));
  result.learning_rate = ref(result.graph.leaf("optim.lr"));
}
}  // namespace

IsolatedSgd sgd(const std::vector<Tensor>& gradients) {
  IsolatedSgd result;
  const Leaves leaves = make_leaves(result.graph, gradients);
  describe(result, leaves,
           sgd_on_graph(result.graph, leaves.weights, leaves.gradients).new_weights);
  return result;
}

IsolatedAdam adam(const std::vector<Tensor>& gradients) {
  IsolatedAdam result;
  const Leaves leaves = make_leaves(result.graph, gradients);
  describe(result, leaves,
           adam_on_graph(result.graph, leaves.weights, leaves.gradients).new_weights());
  return result;
}

}  // namespace pantala::optim
