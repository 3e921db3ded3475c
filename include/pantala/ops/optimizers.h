// The optimizers: for each its options, its maker, and the function of its update op. An Optimizer
// is a plain value: a name, hyper-parameters by name, flags. optim.h extends graphs by one.
//
// Names and defaults are PyTorch's; Lion and LAMB are their papers'. A value out of range is a
// TypeError: rates and decays are finite and not negative, betas lie in [0, 1), ...; descriptions()
// lists them all.
//
// An update op is one step of one parameter. `states` are tensors of the weight's type, `scalars`
// are f64 values without axes, both in the order given beside each function; what depends on
// hyper-parameters alone (bias corrections) is computed outside and handed in, too. The results are
// the new weight and the new states, in the same order.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pantala/options.h"
#include "pantala/tensor.h"

namespace pantala {

namespace ops {
struct OptimizerDef;
}

struct UpdateResult {
  Tensor weight;
  std::vector<Tensor> states;
};
using UpdateStates = std::vector<Tensor>;
using UpdateScalars = std::vector<Tensor>;

namespace optim {

class Optimizer {
 public:
  std::string_view name() const;
  // A hyper-parameter by name: lr, momentum, beta1, eps, ... TypeError with the nearest name.
  double value(std::string_view name) const;
  bool flag(std::string_view name) const;
  double lr() const { return value("lr"); }
  // A temporary gives copies, not references to what is about to vanish.
  using Values = std::map<std::string, double, std::less<>>;
  using Flags = std::map<std::string, bool, std::less<>>;
  const Values& values() const& { return values_; }
  Values values() const&& { return values_; }
  const Flags& flags() const& { return flags_; }
  Flags flags() const&& { return flags_; }
  // A copy with one hyper-parameter changed. TypeError for a value out of range.
  Optimizer with(std::string_view name, double value) const;
  Optimizer with_flag(std::string_view name, bool value) const;

  // The scalars that it has in a graph, with their values: {"optim.lr", 0.001}, ...
  std::vector<std::pair<std::string, double>> scalars() const;
  // Whether both make the same graph, so that a session of one can take the scalars of the other.
  bool same_graph(const Optimizer& other) const;
  std::string str() const;  // adam(lr=0.001, beta1=0.9, ...)
  const ops::OptimizerDef& definition() const { return *definition_; }
  friend bool operator==(const Optimizer&, const Optimizer&) = default;

 private:
  friend Optimizer from_options(std::string_view name, const NamedOptions& options);
  // With the defaults.
  explicit Optimizer(const ops::OptimizerDef& definition);
  // Ranges, and rules between several hyper-parameters.
  void check() const;

  const ops::OptimizerDef* definition_;
  Values values_;
  Flags flags_;
};
std::ostream& operator<<(std::ostream& out, const Optimizer& optimizer);

// By name, as configs give it; `betas` is a list of two, or beta1 and beta2. TypeError with the
// nearest name.
Optimizer from_options(std::string_view name, const NamedOptions& options = {});

// What there is, for configs, help and documentation.
struct OptionDescription {
  std::string name;
  OptionValue default_value;  // a number or a flag
  std::string rule;           // what a value must be: "in [0, 1)", "true or false"
  std::string doc;
};
struct OptimizerDescription {
  std::string name, doc;
  std::vector<OptionDescription> options;  // lr first
};
const std::vector<OptimizerDescription>& descriptions();

}  // namespace optim

// --- SGD

namespace optim {
struct SgdOptions {
  static constexpr double kDefaultLr = 1e-3;
  double momentum = 0, dampening = 0;
  bool nesterov = false;  // needs momentum, and dampening 0
  double weight_decay = 0;
};
Optimizer sgd(double lr = SgdOptions::kDefaultLr, const SgdOptions& options = {});
}  // namespace optim

struct SgdUpdateFlags {
  bool momentum = false, nesterov = false;
};
// Scalars lr, weight_decay. With momentum: state buffer, further scalars momentum, gain (1 -
// dampening; 1 in the first step).
UpdateResult sgd_update(Operand weight, Operand gradient, const UpdateStates& states,
                        const UpdateScalars& scalars, const SgdUpdateFlags& flags = {});

// --- Adam and AdamW

namespace optim {
struct AdamOptions {
  static constexpr double kDefaultLr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};
Optimizer adam(double lr = AdamOptions::kDefaultLr, const AdamOptions& options = {});

struct AdamWOptions {
  static constexpr double kDefaultLr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false;
};
Optimizer adamw(double lr = AdamWOptions::kDefaultLr, const AdamWOptions& options = {});
}  // namespace optim

struct AdamUpdateFlags {
  bool decoupled = false, amsgrad = false;
};
// States m, v and, with amsgrad, max_v. Scalars lr, beta1, beta2, eps, weight_decay, correction1 =
// 1 - beta1^t, correction2 = 1 - beta2^t. Decoupled weight decay makes it AdamW.
UpdateResult adam_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars, const AdamUpdateFlags& flags = {});

// --- RMSprop

namespace optim {
struct RmspropOptions {
  static constexpr double kDefaultLr = 1e-2;
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};
Optimizer rmsprop(double lr = RmspropOptions::kDefaultLr, const RmspropOptions& options = {});
}  // namespace optim

struct RmspropUpdateFlags {
  bool centered = false, momentum = false;
};
// States v, average if centered, buffer with momentum. Scalars lr, alpha, eps, weight_decay and,
// with momentum, momentum.
UpdateResult rmsprop_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars, const RmspropUpdateFlags& flags = {});

// --- Adagrad

namespace optim {
struct AdagradOptions {
  static constexpr double kDefaultLr = 1e-2;
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
};
Optimizer adagrad(double lr = AdagradOptions::kDefaultLr, const AdagradOptions& options = {});
}  // namespace optim

// State sum. Scalars lr (already decayed), eps, weight_decay.
UpdateResult adagrad_update(Operand weight, Operand gradient, const UpdateStates& states,
                            const UpdateScalars& scalars);

// --- Adadelta

namespace optim {
struct AdadeltaOptions {
  static constexpr double kDefaultLr = 1.0;
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
};
Optimizer adadelta(double lr = AdadeltaOptions::kDefaultLr, const AdadeltaOptions& options = {});
}  // namespace optim

// States v, delta. Scalars lr, rho, eps, weight_decay.
UpdateResult adadelta_update(Operand weight, Operand gradient, const UpdateStates& states,
                             const UpdateScalars& scalars);

// --- NAdam

namespace optim {
struct NadamOptions {
  static constexpr double kDefaultLr = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
};
Optimizer nadam(double lr = NadamOptions::kDefaultLr, const NadamOptions& options = {});
}  // namespace optim

struct DecayFlags {
  bool decoupled = false;
};
// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction2, gradient_gain = (1 - mu_t)
// / (1 - prod mu), momentum_gain = mu_t+1 / (1 - prod mu * mu_t+1).
UpdateResult nadam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& flags = {});

// --- RAdam

namespace optim {
struct RadamOptions {
  static constexpr double kDefaultLr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false;
};
Optimizer radam(double lr = RadamOptions::kDefaultLr, const RadamOptions& options = {});
}  // namespace optim

// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction1, correction2,
// rectification; not above 0: the variance is not yet tractable and the step is not adaptive.
UpdateResult radam_update(Operand weight, Operand gradient, const UpdateStates& states,
                          const UpdateScalars& scalars, const DecayFlags& flags = {});

// --- Adamax

namespace optim {
struct AdamaxOptions {
  static constexpr double kDefaultLr = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
Optimizer adamax(double lr = AdamaxOptions::kDefaultLr, const AdamaxOptions& options = {});
}  // namespace optim

// States m, u. Scalars lr, beta1, beta2, eps, weight_decay, correction1.
UpdateResult adamax_update(Operand weight, Operand gradient, const UpdateStates& states,
                           const UpdateScalars& scalars);

// --- Lion

namespace optim {
struct LionOptions {
  static constexpr double kDefaultLr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
Optimizer lion(double lr = LionOptions::kDefaultLr, const LionOptions& options = {});
}  // namespace optim

// State m. Scalars lr, beta1, beta2, weight_decay (decoupled).
UpdateResult lion_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars);

// --- LAMB

namespace optim {
struct LambOptions {
  static constexpr double kDefaultLr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0.01;
};
Optimizer lamb(double lr = LambOptions::kDefaultLr, const LambOptions& options = {});
}  // namespace optim

// States m, v. Scalars lr, beta1, beta2, eps, weight_decay, correction1, correction2. The step is
// scaled by |weight| / |step|, or by 1 if either is 0.
UpdateResult lamb_update(Operand weight, Operand gradient, const UpdateStates& states,
                         const UpdateScalars& scalars);

}  // namespace pantala
