// Extending graphs by optimizers; the optimizers themselves, such as adam(), are in
// ops/optimizers.h. append() adds new weights and new states as functions of old ones and of
// gradients, registered with Graph::update, so that a session's step() advances everything by
// itself.
//
// What append() adds has fixed names: scalars `optim.lr`, `optim.beta1`, ... (f64, can be set
// between steps, nothing is rebuilt), states `optim.<state>.<parameter>` such as
// `optim.m.fc1.weight` (zeros at first), and one counter `optim.step` for all parameters, which
// counts finished steps: the first step computes with t = 1.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/graph.h"
#include "pantala/ops/optimizers.h"

namespace pantala::optim {

// TypeError if a hyper-parameter of this name cannot have this value; what the setters below check.
double checked(std::string_view name, double value);

// --- extending a graph

// Parameters by name (* and ? as in a shell); the first group that matches a parameter counts.
// Factor and decay are scalars of the graph: `optim.group<i>.lr_factor` and
// `optim.group<i>.weight_decay`.
struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;
  std::optional<double> weight_decay = {};  // instead of the optimizer's
  bool frozen = false;                      // never updated, not differentiated
};
// Gradients are first limited to [-value, value], then scaled so that the norm of all of them is at
// most `norm`, as clip_grad_norm_ does it. Scalars `optim.clip_value` and `optim.clip_norm`.
struct ClipOptions {
  std::optional<double> norm = {}, value = {};
};

struct AppendOptions {
  std::vector<ParameterGroup> groups = {};
  ClipOptions clip = {};
  // States `ema.<parameter>`: averages of the weights with this decay (scalar `optim.ema_decay`),
  // started from the weights before the first step.
  std::optional<double> ema_decay = {};
  bool gradient_norms = false;  // outputs `grad_norm.<parameter>`, before clipping
  bool global_norm = false;     // output `grad_norm`, before clipping; always there with clip.norm
  // The parameters that are updated, by name; none: all. The others have no states, and take part
  // in norms and clipping.
  std::optional<std::vector<std::string>> updated = {};
};

// A value of a graph without the graph: it holds in every copy of that graph and in a session's.
struct ValueRef {
  ValueId id;
  Type type;
  Tensor in(const Graph& graph) const { return graph.value(id); }
  friend bool operator==(const ValueRef&, const ValueRef&) = default;
};

struct Appended {
  std::vector<ValueRef> new_weights;     // in the order of the parameters; a frozen one is itself
  std::vector<std::string> state_names;  // all states that were added
  std::vector<std::string> scalar_names;
};

// Adds one optimizer to the graph. `gradients` has one entry per parameter; that of a frozen
// parameter may be an empty handle. Parameters that are leaves are updated by it; for other values
// only the new ones are computed. TypeError naming the entry where lists, types or options do not
// fit.
Appended append(Graph& graph, const Optimizer& optimizer, const std::vector<Tensor>& parameters,
                const std::vector<Tensor>& gradients, const AppendOptions& options = {});

// The group that a parameter belongs to, or nullptr.
const ParameterGroup* find_group(const std::vector<ParameterGroup>& groups,
                                 std::string_view parameter);

// --- setters

// They act on anything with set_scalar(name, value), such as a session; a change acts at the next
// step.
struct RateSetter {
  template <class Session>
  void set_learning_rate(Session& session, double value) const {
    session.set_scalar("optim.lr", checked("lr", value));
  }
};
struct AdamSetters : RateSetter {
  template <class Session>
  void set_beta1(Session& session, double value) const {
    session.set_scalar("optim.beta1", checked("beta1", value));
  }
  template <class Session>
  void set_beta2(Session& session, double value) const {
    session.set_scalar("optim.beta2", checked("beta2", value));
  }
  template <class Session>
  void set_epsilon(Session& session, double value) const {
    session.set_scalar("optim.eps", checked("eps", value));
  }
};
// All scalars of an optimizer at once; it must be of the kind that the session's graph was built
// with.
template <class Session>
void set_scalars(Session& session, const Optimizer& optimizer) {
  for (const auto& [name, value] : optimizer.scalars()) session.set_scalar(name, value);
}

// --- in the user's graph, or in a graph of its own

struct SgdOnGraph : RateSetter {
  std::vector<ValueRef> new_weights;
  ValueRef learning_rate;
};
// Plain SGD, w - lr g, for values of the user's graph. Weights that are parameters (or states) are
// updated by each step; nothing else changes.
SgdOnGraph sgd_on_graph(Graph& graph, const std::vector<Tensor>& weights,
                        const std::vector<Tensor>& gradients, double lr = 3e-4);

struct IsolatedSgd : RateSetter {
  std::vector<ValueRef> old_weights, gradients, new_weights;
  Graph graph;
  ValueRef learning_rate;
};
// The same in a new graph with parameters `weight.<i>`, inputs `gradient.<i>` and outputs
// `new_weight.<i>`, of the types of the given gradients.
IsolatedSgd sgd(const std::vector<Tensor>& gradients);

class AdamOnGraph : public AdamSetters {
 public:
  explicit AdamOnGraph(Appended added, ValueRef learning_rate)
      : added_(std::move(added)), learning_rate_(std::move(learning_rate)) {}
  const std::vector<ValueRef>& new_weights() const { return added_.new_weights; }
  const ValueRef& learning_rate() const { return learning_rate_; }
  const std::vector<std::string>& state_names() const { return added_.state_names; }

 private:
  Appended added_;
  ValueRef learning_rate_;
};
// Adam with the defaults of AdamOptions unless set, for values of the user's graph; as
// sgd_on_graph, with the names of append().
AdamOnGraph adam_on_graph(Graph& graph, const std::vector<Tensor>& weights,
                          const std::vector<Tensor>& gradients,
                          double lr = AdamOptions::kDefaultLr);

struct IsolatedAdam : AdamSetters {
  std::vector<ValueRef> old_weights, gradients, new_weights;
  Graph graph;
  ValueRef learning_rate;
};
IsolatedAdam adam(const std::vector<Tensor>& gradients);

}  // namespace pantala::optim
