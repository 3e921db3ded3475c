// Learning-rate schedules: values that turn a number of optimizer steps into a rate. They know
// nothing of graphs: whoever runs the steps sets the scalar `optim.lr` from them. Names, options
// and defaults are PyTorch's.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "pantala/options.h"

namespace pantala {

struct ConstantRate {
  friend bool operator==(const ConstantRate&, const ConstantRate&) = default;
};
// The rate times gamma after every step_size steps.
struct StepRate {
  std::int64_t step_size = 0;
  double gamma = 0.1;
  friend bool operator==(const StepRate&, const StepRate&) = default;
};
// The rate times gamma at every milestone.
struct MultistepRate {
  std::vector<std::int64_t> milestones;
  double gamma = 0.1;
  friend bool operator==(const MultistepRate&, const MultistepRate&) = default;
};
struct ExponentialRate {
  double gamma = 0;
  friend bool operator==(const ExponentialRate&, const ExponentialRate&) = default;
};
// Half a cosine from the rate to eta_min in T_max steps; after that it comes back, as in PyTorch.
struct CosineRate {
  std::int64_t T_max = 0;
  double eta_min = 0;
  friend bool operator==(const CosineRate&, const CosineRate&) = default;
};
// The same, started anew after T_0 steps, then after T_0 T_mult steps, ...
struct CosineRestartsRate {
  std::int64_t T_0 = 0, T_mult = 1;
  double eta_min = 0;
  friend bool operator==(const CosineRestartsRate&, const CosineRestartsRate&) = default;
};
struct LinearRate {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;
  friend bool operator==(const LinearRate&, const LinearRate&) = default;
};
// The rate times (1 - step / total_iters) ** power, then 0.
struct PolynomialRate {
  std::int64_t total_iters = 5;
  double power = 1;
  friend bool operator==(const PolynomialRate&, const PolynomialRate&) = default;
};
// Up to max_lr and down to almost nothing; the base rate plays no part. Past total_steps the last
// rate stays.
struct OneCycleRate {
  double max_lr = 0;
  std::int64_t total_steps = 0;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
  friend bool operator==(const OneCycleRate&, const OneCycleRate&) = default;
};
// Up and down between base_lr and max_lr; the base rate of lr() plays no part.
struct CyclicRate {
  double base_lr = 0, max_lr = 0;
  std::int64_t step_size_up = 2000, step_size_down = 0;  // 0: as step_size_up
  // Or "triangular2": halved each cycle, or "exp_range": times gamma ** step.
  std::string mode = "triangular";
  double gamma = 1;
  friend bool operator==(const CyclicRate&, const CyclicRate&) = default;
};

class RateSchedule {
 public:
  using Kind =
      std::variant<ConstantRate, StepRate, MultistepRate, ExponentialRate, CosineRate,
                   CosineRestartsRate, LinearRate, PolynomialRate, OneCycleRate, CyclicRate>;

  // The constant schedule.
  RateSchedule() = default;
  // TypeError for an option out of range.
  template <class K>
    requires std::is_constructible_v<Kind, const K&> && (!std::is_same_v<K, RateSchedule>)
  RateSchedule(const K& kind) : RateSchedule(Kind(kind), 0) {}
  // By name: constant, step, multistep, exponential, cosine, cosine_restarts, linear, polynomial,
  // one_cycle or cyclic; every one also takes warmup_steps. TypeError with the nearest name for
  // unknown names, for missing options and for values out of range.
  static RateSchedule from_options(std::string_view name, const NamedOptions& options);
  static std::vector<std::string> names();
  // The option by which a schedule of this name is told how many steps it takes: "T_max" of cosine;
  // "" where there is none.
  static std::string_view length_option(std::string_view name);

  // In the first `steps` steps the rate is (step + 1) / steps of the schedule's first one; then the
  // schedule runs from its beginning.
  RateSchedule with_warmup(std::int64_t steps) const;

  // The rate of optimizer step 0, 1, 2, ...; `base_lr` is the optimizer's own rate.
  double lr(std::int64_t step, double base_lr) const;

  const Kind& kind() const { return kind_; }
  std::string_view name() const;
  std::int64_t warmup_steps() const { return warmup_steps_; }
  std::string str() const;  // cosine(T_max=30, eta_min=0.001)
  friend bool operator==(const RateSchedule&, const RateSchedule&) = default;

 private:
  RateSchedule(Kind kind, std::int64_t warmup_steps);

  Kind kind_;
  std::int64_t warmup_steps_ = 0;
};
std::ostream& operator<<(std::ostream& out, const RateSchedule& schedule);

// Lowers the rate when a metric has stopped improving. It reacts to what is reported, so it is an
// object with a state and no RateSchedule; for a warm-up, hand its rate to
// `RateSchedule().with_warmup(n)` as the base rate.
struct PlateauOptions {
  std::string mode = "min";  // the metric is to become small; "max": large
  double factor = 0.1;
  std::int64_t patience = 10;          // so many reports without improvement are allowed
  double threshold = 1e-4;             // an improvement is larger than this
  std::string threshold_mode = "rel";  // a part of the best value, or "abs"
  std::int64_t cooldown = 0;           // reports that are ignored after a reduction
  double min_lr = 0;
  double eps = 1e-8;  // smaller changes of the rate are not made
  friend bool operator==(const PlateauOptions&, const PlateauOptions&) = default;
};

class Plateau {
 public:
  // All that changes; saved and restored as it is.
  struct State {
    double lr = 0, best = 0;
    std::int64_t bad_reports = 0, cooldown_left = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Plateau(double base_lr, const PlateauOptions& options = {});
  static Plateau from_options(double base_lr, const NamedOptions& options);

  // Takes the metric of one evaluation; says whether the rate was lowered. A NaN is no improvement.
  bool report(double metric);
  double lr() const { return state_.lr; }

  const PlateauOptions& options() const { return options_; }
  const State& state() const { return state_; }
  void restore(const State& state);
  std::string str() const;
  friend bool operator==(const Plateau&, const Plateau&) = default;

 private:
  bool improves(double metric) const;

  PlateauOptions options_;
  State state_;
};
std::ostream& operator<<(std::ostream& out, const Plateau& plateau);

}  // namespace pantala
