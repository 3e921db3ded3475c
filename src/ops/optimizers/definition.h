// OptimizerDef: everything that the system knows about one optimizer, type-erased. The files of
// this folder fill these entries from their declarations (define.h); the values that users hold,
// configs, the appending of graphs, the key of a plan and documentation read them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/op.h"
#include "pantala/init.h"
#include "pantala/ops/optimizers.h"

namespace pantala::ops {

// What a number must be, and how messages say it.
struct OptionRange {
  std::string_view rule;
  bool (*holds)(double value);
};
inline constexpr OptionRange kFinite{"finite", [](double x) { return std::isfinite(x); }};
inline constexpr OptionRange kNotNegative{"finite and not negative",
                                          [](double x) { return std::isfinite(x) && x >= 0; }};
inline constexpr OptionRange kPositive{"finite and above 0",
                                       [](double x) { return std::isfinite(x) && x > 0; }};
inline constexpr OptionRange kBelowOne{"in [0, 1)", [](double x) { return x >= 0 && x < 1; }};
inline constexpr OptionRange kUpToOne{"in [0, 1]", [](double x) { return x >= 0 && x <= 1; }};

// What a number is in the graph. It may depend on the values: without momentum there is no buffer.
enum class Role : std::uint8_t {
  scalar,       // `optim.<name>`, which can be set between steps
  unused,       // the graph has no use for it
  first_value,  // what the states begin with, in place of 0
};

struct NumberOption {
  std::string_view name;
  double default_value;
  OptionRange range;
  std::string_view doc;
};
struct FlagOption {
  std::string_view name;
  bool default_value;
  std::string_view doc;
};

// An input of an update op after weight and gradient.
struct Slot {
  std::string name;
  bool scalar;  // otherwise a state
};

// The update op as an optimizer with certain options uses it.
struct UpdateVariant {
  ir::AttrValues attrs;
  std::vector<Slot> slots;
};

// Scalars that are computed from others on the host, in f64, by the names of the update op's
// inputs.
using HostScalars = std::vector<std::pair<std::string_view, Tensor>>;

// What they are computed from: f64 without axes.
class StepScalars {
 public:
  using Values = std::map<std::string, Tensor, std::less<>>;
  StepScalars(Tensor number, Tensor first, Values options)
      : t(std::move(number)), is_first(std::move(first)), options_(std::move(options)) {}

  // The scalar of an option; lr and weight_decay as they hold for the parameter at hand.
  const Tensor& operator[](std::string_view option) const;
  // 1 - beta^t.
  Tensor correction(std::string_view beta) const;

  Tensor t;         // the number of this step, from 1
  Tensor is_first;  // whether it is the first, as bool

 private:
  Values options_;
};

// Adds a state `optim.<name>` of the whole optimizer, f64 without axes, that each step replaces by
// next(old); gives the new value.
using KeepState = std::function<Tensor(std::string_view name, const Initializer& first,
                                       const std::function<Tensor(const Tensor& old)>& next)>;

struct OptimizerDef {
  std::string_view name, doc;
  std::vector<NumberOption> numbers;  // in the order of printing, lr first
  std::vector<FlagOption> flags;
  const ir::OpDef* update = nullptr;

  // One role for each number.
  std::vector<Role> (*roles)(const optim::Optimizer&) = nullptr;
  UpdateVariant (*variant)(const optim::Optimizer&) = nullptr;
  // TypeError where options do not go together; may be null.
  void (*check)(const optim::Optimizer&) = nullptr;
  // What is computed once for all parameters, and for each of them; may be null. What neither
  // gives is the scalar of the option of that name.
  HostScalars (*shared)(const StepScalars&, const KeepState&) = nullptr;
  HostScalars (*scalars)(const StepScalars&, const optim::Optimizer&) = nullptr;
};

}  // namespace pantala::ops
