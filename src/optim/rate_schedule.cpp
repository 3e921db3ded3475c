// Rate schedules in closed form: a rate is a function of the step alone, so nothing drifts and any
// step can be asked for.
#include "pantala/rate_schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <ostream>

#include "base/options.h"
#include "pantala/rate_schedule_table.h"

namespace pantala {

namespace {

enum class Need { optional, required };

// The options of each kind by name, in the order of the alternatives of RateSchedule::Kind;
// `length` is the one that says how many steps it takes, if there is one.
template <class T>
struct About;
template <>
struct About<ConstantRate> {
  static constexpr std::string_view name = "constant";
  static void fields(auto&&, auto&) {}
};
template <>
struct About<StepRate> {
  static constexpr std::string_view name = "step";
  static void fields(auto&& f, auto& s) {
    f("step_size", s.step_size, Need::required), f("gamma", s.gamma, Need::optional);
  }
};
template <>
struct About<MultistepRate> {
  static constexpr std::string_view name = "multistep";
  static void fields(auto&& f, auto& s) {
    f("milestones", s.milestones, Need::required), f("gamma", s.gamma, Need::optional);
  }
};
template <>
struct About<ExponentialRate> {
  static constexpr std::string_view name = "exponential";
  static void fields(auto&& f, auto& s) { f("gamma", s.gamma, Need::required); }
};
template <>
struct About<CosineRate> {
  static constexpr std::string_view name = "cosine", length = "T_max";
  static void fields(auto&& f, auto& s) {
    f("T_max", s.T_max, Need::required), f("eta_min", s.eta_min, Need::optional);
  }
};
template <>
struct About<CosineRestartsRate> {
  static constexpr std::string_view name = "cosine_restarts";
  static void fields(auto&& f, auto& s) {
    f("T_0", s.T_0, Need::required), f("T_mult", s.T_mult, Need::optional),
        f("eta_min", s.eta_min, Need::optional);
  }
};
template <>
struct About<LinearRate> {
  static constexpr std::string_view name = "linear", length = "total_iters";
  static void fields(auto&& f, auto& s) {
    f("start_factor", s.start_factor, Need::optional),
        f("end_factor", s.end_factor, Need::optional),
        f("total_iters", s.total_iters, Need::optional);
  }
};
template <>
struct About<PolynomialRate> {
  static constexpr std::string_view name = "polynomial", length = "total_iters";
  static void fields(auto&& f, auto& s) {
    f("total_iters", s.total_iters, Need::optional), f("power", s.power, Need::optional);
  }
};
template <>
struct About<OneCycleRate> {
  static constexpr std::string_view name = "one_cycle", length = "total_steps";
  static void fields(auto&& f, auto& s) {
    f("max_lr", s.max_lr, Need::required), f("total_steps", s.total_steps, Need::required),
        f("pct_start", s.pct_start, Need::optional);
    f("anneal_strategy", s.anneal_strategy, Need::optional),
        f("div_factor", s.div_factor, Need::optional);
    f("final_div_factor", s.final_div_factor, Need::optional),
        f("three_phase", s.three_phase, Need::optional);
  }
};
template <>
struct About<CyclicRate> {
  static constexpr std::string_view name = "cyclic";
  static void fields(auto&& f, auto& s) {
    f("base_lr", s.base_lr, Need::required), f("max_lr", s.max_lr, Need::required),
        f("step_size_up", s.step_size_up, Need::optional);
    f("step_size_down", s.step_size_down, Need::optional), f("mode", s.mode, Need::optional),
        f("gamma", s.gamma, Need::optional);
  }
};
template <>
struct About<PlateauOptions> {
  static constexpr std::string_view name = "plateau";
  static void fields(auto&& f, auto& s) {
    f("mode", s.mode, Need::optional), f("factor", s.factor, Need::optional),
        f("patience", s.patience, Need::optional);
    f("threshold", s.threshold, Need::optional),
        f("threshold_mode", s.threshold_mode, Need::optional),
        f("cooldown", s.cooldown, Need::optional);
    f("min_lr", s.min_lr, Need::optional), f("eps", s.eps, Need::optional);
  }
};

// --- ranges

void need_count(std::string_view owner, std::string_view name, std::int64_t value,
                std::int64_t least) {
  if (value < least)
    bad_option(owner, name, fmt::format("at least {}", least), fmt::format("{}", value));
}
void need_finite(std::string_view owner, std::string_view name, double value, double low,
                 double high = std::numeric_limits<double>::infinity()) {
  if (std::isfinite(value) && value >= low && value <= high) return;
  bad_option(owner, name,
             std::isinf(high) ? fmt::format("finite and at least {}", low)
                              : fmt::format("in [{}, {}]", low, high),
             exact(value));
}
void need_positive(std::string_view owner, std::string_view name, double value) {
  if (!(std::isfinite(value) && value > 0))
    bad_option(owner, name, "finite and above 0", exact(value));
}
void need_one_of(std::string_view owner, std::string_view name, const std::string& value,
                 const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw TypeError(fmt::format("{}: {} must be one of {}, got {}{}", owner, name,
                              fmt::join(choices, ", "), in_quotes(value),
                              did_you_mean(value, choices)));
}

void check(ConstantRate&) {}
void check(StepRate& s) {
  need_count("step", "step_size", s.step_size, 1);
  need_finite("step", "gamma", s.gamma, 0);
}
void check(MultistepRate& s) {
  std::sort(s.milestones.begin(), s.milestones.end());
  if (!s.milestones.empty()) need_count("multistep", "milestones", s.milestones[0], 0);
  need_finite("multistep", "gamma", s.gamma, 0);
}
void check(ExponentialRate& s) { need_finite("exponential", "gamma", s.gamma, 0); }
void check(CosineRate& s) {
  need_count("cosine", "T_max", s.T_max, 1);
  need_finite("cosine", "eta_min", s.eta_min, 0);
}
void check(CosineRestartsRate& s) {
  need_count("cosine_restarts", "T_0", s.T_0, 1);
  need_count("cosine_restarts", "T_mult", s.T_mult, 1);
  need_finite("cosine_restarts", "eta_min", s.eta_min, 0);
}
void check(LinearRate& s) {
  need_finite("linear", "start_factor", s.start_factor, 0, 1);
  need_finite("linear", "end_factor", s.end_factor, 0, 1);
  need_count("linear", "total_iters", s.total_iters, 1);
}
void check(PolynomialRate& s) {
  need_count("polynomial", "total_iters", s.total_iters, 1);
  need_finite("polynomial", "power", s.power, 0);
}
void check(OneCycleRate& s) {
  need_finite("one_cycle", "max_lr", s.max_lr, 0);
  need_count("one_cycle", "total_steps", s.total_steps, 1);
  need_finite("one_cycle", "pct_start", s.pct_start, 0, 1);
  need_one_of("one_cycle", "anneal_strategy", s.anneal_strategy, {"cos", "linear"});
  need_positive("one_cycle", "div_factor", s.div_factor);
  need_positive("one_cycle", "final_div_factor", s.final_div_factor);
}
void check(CyclicRate& s) {
  need_finite("cyclic", "base_lr", s.base_lr, 0);
  need_finite("cyclic", "max_lr", s.max_lr, 0);
  need_count("cyclic", "step_size_up", s.step_size_up, 1);
  need_count("cyclic", "step_size_down", s.step_size_down, 0);
  need_one_of("cyclic", "mode", s.mode, {"triangular", "triangular2", "exp_range"});
  need_finite("cyclic", "gamma", s.gamma, 0);
}
void check(PlateauOptions& o) {
  need_one_of("plateau", "mode", o.mode, {"min", "max"});
  if (!(o.factor >= 0 && o.factor < 1))
    bad_option("plateau", "factor", "in [0, 1)", exact(o.factor));
  need_count("plateau", "patience", o.patience, 0);
  need_finite("plateau", "threshold", o.threshold, 0);
  need_one_of("plateau", "threshold_mode", o.threshold_mode, {"rel", "abs"});
  need_count("plateau", "cooldown", o.cooldown, 0);
  need_finite("plateau", "min_lr", o.min_lr, 0);
  need_finite("plateau", "eps", o.eps, 0);
}

// --- rates

double real(std::int64_t n) { return static_cast<double>(n); }
// From `start` to `end` on half a cosine, or on a line.
double cosine_between(double start, double end, double part) {
  return end + (start - end) * (1 + std::cos(std::numbers::pi * part)) / 2;
}
double line_between(double start, double end, double part) { return start + (end - start) * part; }

double rate(const ConstantRate&, std::int64_t, double base) { return base; }
double rate(const StepRate& s, std::int64_t step, double base) {
  return base * std::pow(s.gamma, real(step / s.step_size));
}
double rate(const MultistepRate& s, std::int64_t step, double base) {
  const auto passed =
      std::upper_bound(s.milestones.begin(), s.milestones.end(), step) - s.milestones.begin();
  return base * std::pow(s.gamma, static_cast<double>(passed));
}
double rate(const ExponentialRate& s, std::int64_t step, double base) {
  return base * std::pow(s.gamma, real(step));
}
double rate(const CosineRate& s, std::int64_t step, double base) {
  return cosine_between(base, s.eta_min,
                        real(step % s.T_max) / real(s.T_max) + real(step / s.T_max % 2));
}
double rate(const CosineRestartsRate& s, std::int64_t step, double base) {
  std::int64_t length = s.T_0;
  if (s.T_mult == 1) {
    step %= length;
  } else {
    for (; step >= length; length *= s.T_mult) {
      step -= length;
      if (length > std::numeric_limits<std::int64_t>::max() / s.T_mult)
        return cosine_between(base, s.eta_min, real(step) / (real(length) * real(s.T_mult)));
    }
  }
  return cosine_between(base, s.eta_min, real(step) / real(length));
}
double rate(const LinearRate& s, std::int64_t step, double base) {
  return base * line_between(s.start_factor, s.end_factor,
                             real(std::min(step, s.total_iters)) / real(s.total_iters));
}
double rate(const PolynomialRate& s, std::int64_t step, double base) {
  return base * std::pow(1 - real(std::min(step, s.total_iters)) / real(s.total_iters), s.power);
}
double rate(const OneCycleRate& s, std::int64_t step, double) {
  struct Phase {
    double end, from, to;
  };
  const double total = real(s.total_steps), first = s.max_lr / s.div_factor,
               last = first / s.final_div_factor, up = s.pct_start * total - 1;
  std::vector<Phase> phases{{up, first, s.max_lr}};
  if (s.three_phase) phases.push_back({2 * s.pct_start * total - 2, s.max_lr, first});
  phases.push_back({total - 1, s.three_phase ? first : s.max_lr, last});
  const double at = real(std::min(step, s.total_steps - 1));
  double begin = 0;
  std::size_t k = 0;
  while (k + 1 < phases.size() && at > phases[k].end) begin = phases[k++].end;
  const Phase& phase = phases[k];
  const double part = phase.end > begin ? (at - begin) / (phase.end - begin) : 1;
  return s.anneal_strategy == "cos" ? cosine_between(phase.from, phase.to, part)
                                    : line_between(phase.from, phase.to, part);
}
double rate(const CyclicRate& s, std::int64_t step, double) {
  const double up = real(s.step_size_up),
               total = up + (s.step_size_down == 0 ? up : real(s.step_size_down));
  const double position = real(step) / total, cycle = std::floor(1 + position),
               x = 1 + position - cycle, top = up / total;
  const double height = (s.max_lr - s.base_lr) * (x <= top ? x / top : (x - 1) / (top - 1));
  const double scale = s.mode == "triangular"    ? 1
                       : s.mode == "triangular2" ? std::exp2(1 - cycle)
                                                 : std::pow(s.gamma, real(step));
  return s.base_lr + height * scale;
}

// --- text and options

std::string field_text(double value) { return exact(value); }
std::string field_text(std::int64_t value) { return fmt::format("{}", value); }
std::string field_text(bool value) { return value ? "true" : "false"; }
std::string field_text(const std::string& value) { return value; }
std::string field_text(const std::vector<std::int64_t>& value) {
  return fmt::format("[{}]", fmt::join(value, ","));
}

template <class T>
std::vector<std::string> field_texts(const T& options) {
  std::vector<std::string> texts;
  About<T>::fields([&](std::string_view name, const auto& field,
                       Need) { texts.push_back(fmt::format("{}={}", name, field_text(field))); },
                   options);
  return texts;
}

// `also` is read elsewhere.
template <class T>
T read_options(const NamedOptions& options, const std::vector<std::string>& also = {}) {
  T result;
  std::vector<std::string> known = also;
  About<T>::fields([&](std::string_view name, auto&, Need) { known.emplace_back(name); }, result);
  check_option_names(About<T>::name, options, known);
  About<T>::fields(
      [&](std::string_view name, auto& field, Need need) {
        const auto found = options.find(name);
        if (found != options.end())
          read_option(About<T>::name, name, found->second, field);
        else if (need == Need::required)
          throw TypeError(fmt::format("{}: the option {} is missing", About<T>::name, name));
      },
      result);
  return result;
}

template <std::size_t... I>
constexpr auto names_of(std::index_sequence<I...>) {
  return std::array{About<std::variant_alternative_t<I, RateSchedule::Kind>>::name...};
}
template <class T>
constexpr std::string_view length_of() {
  if constexpr (requires { About<T>::length; })
    return About<T>::length;
  else
    return "";
}
template <std::size_t... I>
constexpr auto lengths_of(std::index_sequence<I...>) {
  return std::array{length_of<std::variant_alternative_t<I, RateSchedule::Kind>>()...};
}
constexpr auto kKinds = std::make_index_sequence<std::variant_size_v<RateSchedule::Kind>>{};
constexpr auto kNames = names_of(kKinds), kLengths = lengths_of(kKinds);

template <std::size_t... I>
RateSchedule::Kind read_kind(std::size_t index, const NamedOptions& options,
                             std::index_sequence<I...>) {
  RateSchedule::Kind kind;
  ((I == index ? void(kind = read_options<std::variant_alternative_t<I, RateSchedule::Kind>>(
                          options, {"warmup_steps"}))
               : void()),
   ...);
  return kind;
}

template <class T>
OptionValue default_value(const T& field) {
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return std::vector<double>(field.begin(), field.end());
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return real(field);
  else
    return field;
}

template <class T>
RateDescription description_of() {
  RateDescription description{std::string(About<T>::name), {}};
  const T defaults;
  About<T>::fields(
      [&]<class Field>(std::string_view name, const Field& field, Need need) {
        constexpr bool kWhole =
            std::is_same_v<Field, std::int64_t> || std::is_same_v<Field, std::vector<std::int64_t>>;
        description.options.push_back(
            {std::string(name), default_value(field), need == Need::required, kWhole});
      },
      defaults);
  return description;
}
template <std::size_t... I>
std::vector<RateDescription> all_descriptions(std::index_sequence<I...>) {
  return {description_of<std::variant_alternative_t<I, RateSchedule::Kind>>()...,
          description_of<PlateauOptions>()};
}

}  // namespace

const std::vector<RateDescription>& rate_descriptions() {
  static const std::vector<RateDescription> all = all_descriptions(kKinds);
  return all;
}

RateSchedule::RateSchedule(Kind kind, std::int64_t warmup_steps)
    : kind_(std::move(kind)), warmup_steps_(warmup_steps) {
  std::visit([](auto& options) { check(options); }, kind_);
  need_count(name(), "warmup_steps", warmup_steps, 0);
}

std::vector<std::string> RateSchedule::names() { return {kNames.begin(), kNames.end()}; }

std::string_view RateSchedule::length_option(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  return found != kNames.end() ? kLengths[static_cast<std::size_t>(found - kNames.begin())] : "";
}

RateSchedule RateSchedule::from_options(std::string_view name, const NamedOptions& options) {
  if (name == About<PlateauOptions>::name)
    throw TypeError(
        "plateau follows a metric, not the step: it is made with Plateau::from_options");
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    throw TypeError(fmt::format("there is no schedule '{}'{}", name, did_you_mean(name, names())));
  std::int64_t warmup_steps = 0;
  if (const auto it = options.find("warmup_steps"); it != options.end())
    read_option(name, "warmup_steps", it->second, warmup_steps);
  return RateSchedule(read_kind(static_cast<std::size_t>(found - kNames.begin()), options, kKinds),
                      warmup_steps);
}

RateSchedule RateSchedule::with_warmup(std::int64_t steps) const {
  return RateSchedule(kind_, steps);
}

double RateSchedule::lr(std::int64_t step, double base_lr) const {
  if (step < 0) throw TypeError(fmt::format("{}: steps count from 0, got {}", name(), step));
  const auto at = [&](std::int64_t n) {
    return std::visit([&](const auto& options) { return rate(options, n, base_lr); }, kind_);
  };
  return step < warmup_steps_ ? at(0) * (real(step + 1) / real(warmup_steps_))
                              : at(step - warmup_steps_);
}

std::string_view RateSchedule::name() const { return kNames[kind_.index()]; }

std::string RateSchedule::str() const {
  std::vector<std::string> texts =
      std::visit([](const auto& options) { return field_texts(options); }, kind_);
  if (warmup_steps_ > 0) texts.push_back(fmt::format("warmup_steps={}", warmup_steps_));
  return fmt::format("{}({})", name(), fmt::join(texts, ", "));
}

std::ostream& operator<<(std::ostream& out, const RateSchedule& schedule) {
  return out << schedule.str();
}

Plateau::Plateau(double base_lr, const PlateauOptions& options) : options_(options) {
  check(options_);
  need_finite("plateau", "base_lr", base_lr, 0);
  const double worst = std::numeric_limits<double>::infinity();
  state_ = {base_lr, options_.mode == "min" ? worst : -worst, 0, 0};
}

Plateau Plateau::from_options(double base_lr, const NamedOptions& options) {
  return Plateau(base_lr, read_options<PlateauOptions>(options));
}

bool Plateau::improves(double metric) const {
  const bool relative = options_.threshold_mode == "rel";
  if (options_.mode == "min")
    return metric <
           (relative ? state_.best * (1 - options_.threshold) : state_.best - options_.threshold);
  return metric >
         (relative ? state_.best * (1 + options_.threshold) : state_.best + options_.threshold);
}

bool Plateau::report(double metric) {
  if (improves(metric)) {
    state_.best = metric;
    state_.bad_reports = 0;
  } else {
    ++state_.bad_reports;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.bad_reports = 0;
  }
  if (state_.bad_reports <= options_.patience) return false;
  state_.cooldown_left = options_.cooldown;
  state_.bad_reports = 0;
  const double lower = std::max(state_.lr * options_.factor, options_.min_lr);
  if (!(state_.lr - lower > options_.eps)) return false;
  state_.lr = lower;
  return true;
}

void Plateau::restore(const State& state) {
  need_finite("plateau", "lr", state.lr, 0);
  need_count("plateau", "bad_reports", state.bad_reports, 0);
  need_count("plateau", "cooldown_left", state.cooldown_left, 0);
  state_ = state;
}

std::string Plateau::str() const {
  return fmt::format("plateau({}) at lr={}", fmt::join(field_texts(options_), ", "),
                     exact(state_.lr));
}

std::ostream& operator<<(std::ostream& out, const Plateau& plateau) { return out << plateau.str(); }

}  // namespace pantala
