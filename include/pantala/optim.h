// Optimizers. An Optimizer is a plain value: a kind, hyper-parameters by name, flags. append()
// extends a graph by it: new weights and new states as functions of old ones and of gradients,
// registered with Graph::update, so that a session's step() advances everything by itself.
//
// What append() adds has fixed names: scalars `optim.lr`, `optim.beta1`, ... (f64, can be set
// between steps, nothing is rebuilt), states `optim.<state>.<parameter>` such as
// `optim.m.fc1.weight` (zeros at first), and one counter `optim.step` for all parameters, which
// counts finished steps: the first step computes with t = 1.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pantala/graph.h"
#include "pantala/schedule.h"

namespace pantala::optim {

enum class Kind : std::uint8_t {
  sgd,
  adam,
  adamw,
  rmsprop,
  adagrad,
  adadelta,
  nadam,
  radam,
  adamax,
  lion,
  lamb
};
std::string_view kind_name(Kind kind);

class Optimizer {
 public:
  // The kind with its defaults.
  explicit Optimizer(Kind kind);

  Kind kind() const { return kind_; }
  std::string_view name() const { return kind_name(kind_); }
  // A hyper-parameter by name: lr, momentum, beta1, eps, ... TypeError with the nearest name.
  double value(std::string_view name) const;
  bool flag(std::string_view name) const;
  double lr() const { return value("lr"); }
  const std::map<std::string, double, std::less<>>& values() const { return values_; }
  const std::map<std::string, bool, std::less<>>& flags() const { return flags_; }
  // A copy with one hyper-parameter changed. TypeError for a value out of range.
  Optimizer with(std::string_view name, double value) const;
  Optimizer with_flag(std::string_view name, bool value) const;

  // The scalars that it has in a graph, with their values: {"optim.lr", 0.001}, ...
  std::vector<std::pair<std::string, double>> scalars() const;
  // Whether both make the same graph, so that a session of one can take the scalars of the other.
  bool same_graph(const Optimizer& other) const;
  std::string str() const;  // adam(lr=0.001, beta1=0.9, ...)
  friend bool operator==(const Optimizer&, const Optimizer&) = default;

 private:
  friend Optimizer from_options(std::string_view name, const NamedOptions& options);
  // Rules between several hyper-parameters.
  void check() const;

  Kind kind_;
  std::map<std::string, double, std::less<>> values_;
  std::map<std::string, bool, std::less<>> flags_;
};
std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer);

// Names and defaults are PyTorch's. TypeError for a value out of range: rates and decays finite and
// not negative, betas in [0, 1), ...
struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;  // needs momentum, and dampening 0
  double weight_decay = 0;
};
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false;
};
struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};
struct AdagradOptions {
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
};
struct AdadeltaOptions {
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
};
struct NadamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
};
struct RadamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false;
};
struct AdamaxOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
struct LambOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0.01;
};

Optimizer sgd(double lr = 1e-3, const SgdOptions& options = {});
Optimizer adam(double lr = 1e-3, const AdamOptions& options = {});
Optimizer adamw(double lr = 1e-3, const AdamWOptions& options = {});
Optimizer rmsprop(double lr = 1e-2, const RmspropOptions& options = {});
Optimizer adagrad(double lr = 1e-2, const AdagradOptions& options = {});
Optimizer adadelta(double lr = 1.0, const AdadeltaOptions& options = {});
Optimizer nadam(double lr = 2e-3, const NadamOptions& options = {});
Optimizer radam(double lr = 1e-3, const RadamOptions& options = {});
Optimizer adamax(double lr = 2e-3, const AdamaxOptions& options = {});
Optimizer lion(double lr = 1e-4, const LionOptions& options = {});
Optimizer lamb(double lr = 1e-3, const LambOptions& options = {});
// By name, as configs give it; `betas` is a list of two, or beta1 and beta2. TypeError with the
// nearest name.
Optimizer from_options(std::string_view name, const NamedOptions& options = {});

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
// Adam at 1e-3, 0.9, 0.999, 1e-8 unless set, for values of the user's graph; as sgd_on_graph, with
// the names of append().
AdamOnGraph adam_on_graph(Graph& graph, const std::vector<Tensor>& weights,
                          const std::vector<Tensor>& gradients, double lr = 1e-3);

struct IsolatedAdam : AdamSetters {
  std::vector<ValueRef> old_weights, gradients, new_weights;
  Graph graph;
  ValueRef learning_rate;
};
IsolatedAdam adam(const std::vector<Tensor>& gradients);

}  // namespace pantala::optim
