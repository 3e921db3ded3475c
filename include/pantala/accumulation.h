// Gradient accumulation: sums the gradients of several micro-batches and hands out their mean, as
// if they had been one batch. This is the stand-alone component, in double, for gradients that the
// host holds; compiled training accumulates on the device and follows the same rules.
//
// Means are weighted: a gradient that is the mean over n items is added with weight n, and the
// result is the mean over all items, however they were split. With the default weight 1 every
// micro-batch counts the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/error.h"
#include "pantala/literal.h"

namespace pantala {

// A gradient whose shape is not that of its parameter.
class ShapeMismatch : public TypeError {
 public:
  ShapeMismatch(std::string parameter, Shape expected, Shape got);
  // "" where a buffer is used on its own.
  const std::string& parameter() const { return parameter_; }
  const Shape& expected() const { return expected_; }
  const Shape& got() const { return got_; }

 private:
  std::string parameter_;
  Shape expected_, got_;
};

class UnknownParameter : public TypeError {
 public:
  using TypeError::TypeError;
};

// Gradients were asked for before any was accumulated.
class NoGradients : public Error {
 public:
  using Error::Error;
};

// A parameter has all its micro-batches; reset() begins the next window.
class AccumulatorFull : public Error {
 public:
  using Error::Error;
};

// An infinite or undefined gradient under NonFinite::error.
class NonFiniteGradient : public ValueError {
 public:
  using ValueError::ValueError;
};

// What becomes of a micro-batch that holds an infinite or undefined gradient.
enum class NonFinite : std::uint8_t {
  // NonFiniteGradient; nothing is added.
  error,
  // The whole micro-batch is left out: not added, not counted towards the window, only counted as
  // skipped.
  skip,
  // Added like any other. With max_grad_norm the factor is still max / norm: 0 for an infinite
  // norm, NaN for an undefined one.
  propagate
};

struct AccumulationConfig {
  std::int64_t accumulation_steps = 4;  // micro-batches per update, at least 1
  bool normalize = true;                // the weighted mean; false: the weighted sum
  // Limit of the norm over all parameters together; positive and finite.
  std::optional<double> max_grad_norm = {};
  NonFinite non_finite = NonFinite::error;

  // The defaults with another number of steps; less than 1 means 1.
  static AccumulationConfig with_steps(std::int64_t steps);
  std::int64_t effective_batch_size(std::int64_t micro_batch) const;
};

// The weighted sum of the gradients of one parameter.
class GradientBuffer {
 public:
  explicit GradientBuffer(Shape shape);

  // Adds weight * gradient. ShapeMismatch for another shape; TypeError for a weight that is not
  // positive and finite. An error leaves the buffer unchanged.
  void accumulate(std::span<const double> gradient, const Shape& shape, double weight = 1);
  // Values without a shape: as many as the buffer has.
  void accumulate(std::span<const double> gradient);

  // The mean (zeros while nothing was added), or the sum.
  std::vector<double> get(bool normalize) const;
  void reset();
  double l2_norm() const;  // of the sum
  // A temporary gives copies, not references to what is about to vanish.
  const Shape& shape() const& { return shape_; }
  Shape shape() const&& { return shape_; }
  const std::vector<double>& sum() const& { return sum_; }
  std::vector<double> sum() const&& { return sum_; }
  std::int64_t count() const { return count_; }  // gradients added
  double weight() const { return weight_; }      // and the sum of their weights

 private:
  Shape shape_;
  std::vector<double> sum_;
  std::int64_t count_ = 0;
  double weight_ = 0;
};

struct AccumulationStats {
  std::int64_t micro_batches = 0;  // since the start, by step()
  std::int64_t updates = 0;        // calls of reset()
  std::int64_t skipped = 0;        // micro-batches left out by NonFinite::skip
  std::int64_t accumulation_steps = 0;
  std::int64_t parameters = 0;
  std::int64_t elements = 0;  // of all parameters
  std::int64_t effective_batch_multiplier() const { return accumulation_steps; }
};

// Gradients by parameter name. Sorted, so that sums over parameters are taken in one order and have
// the same bits every time.
using NamedGradients = std::map<std::string, Literal, std::less<>>;

class GradientAccumulator {
 public:
  // TypeError for less than 1 step, or a maximum norm that is not positive and finite.
  explicit GradientAccumulator(AccumulationConfig config = {});

  // A name that is registered already stays as it is.
  void register_parameter(std::string_view name, const Shape& shape);

  // Adds the gradient of one parameter. Judged in this order: UnknownParameter, AccumulatorFull,
  // ShapeMismatch, NonFiniteGradient (a weight that is not positive and finite is a TypeError
  // before all). False if the gradient was skipped for not being finite. Counts no micro-batch.
  bool accumulate(std::string_view name, const Literal& gradient, double weight = 1);
  // Adds the gradients of one micro-batch: all of them, or none where one is refused. Parameters
  // that are not named do not advance. Returns should_update().
  bool step(const NamedGradients& gradients, double weight = 1);

  // Some parameter has all its micro-batches.
  bool should_update() const;
  // What was accumulated so far: normalised by what each parameter received, then clipped. f64
  // literals for all registered parameters, zeros for one that received nothing. NoGradients if
  // none received anything. Changes nothing.
  NamedGradients gradients() const;
  // Begins the next window and counts an update; registrations and the count of micro-batches stay.
  void reset();

  AccumulationStats stats() const;
  const AccumulationConfig& config() const { return config_; }
  const GradientBuffer& buffer(std::string_view name) const;  // UnknownParameter

 private:
  void check(std::string_view name, const Literal& gradient) const;
  bool refuses(std::string_view name, const Literal& gradient) const;

  AccumulationConfig config_;
  std::map<std::string, GradientBuffer, std::less<>> buffers_;
  std::int64_t micro_batches_ = 0, updates_ = 0, skipped_ = 0;
};

}  // namespace pantala
