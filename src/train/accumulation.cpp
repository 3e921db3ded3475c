// Every call checks all it was given before it changes anything: a refused micro-batch leaves no
// trace in the sums.
#include "pantala/accumulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace pantala {

namespace {

std::string mismatch_message(const std::string& parameter, const Shape& expected,
                             const Shape& got) {
  const std::string whose = parameter.empty() ? "" : fmt::format(" of '{}'", parameter);
  return fmt::format("the gradient{} must have shape {}, got {}", whose, expected.str(), got.str());
}

void check_weight(double weight) {
  if (!std::isfinite(weight) || weight <= 0)
    throw TypeError(
        fmt::format("the weight of a gradient must be positive and finite, got {}", exact(weight)));
}

// The square root of the sum of all squares. Numbers are scaled by a power of two, which is exact,
// so that no square overflows or vanishes.
class Norm {
 public:
  explicit Norm(double largest) { std::frexp(std::isfinite(largest) ? largest : 1.0, &exponent_); }
  void add(const std::vector<double>& values) {
    for (const double v : values) {
      const double scaled = std::ldexp(v, -exponent_);
      squares_ += scaled * scaled;
    }
  }
  double value() const { return std::ldexp(std::sqrt(squares_), exponent_); }

 private:
  int exponent_ = 0;
  double squares_ = 0;
};

double largest_magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::fabs(v));
  return largest;
}

std::optional<std::int64_t> first_non_finite(const Literal& gradient) {
  const auto values = gradient.f();
  const auto it =
      std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  return it == values.end() ? std::nullopt : std::optional<std::int64_t>(it - values.begin());
}

// Scales all gradients so that their common norm is at most `most`; a norm that is not above it
// leaves every bit. An undefined norm is not below.
void clip(std::map<std::string, std::vector<double>, std::less<>>& gradients, double most) {
  double largest = 0;
  for (const auto& [name, values] : gradients)
    largest = std::max(largest, largest_magnitude(values));
  Norm norm(largest);
  for (const auto& [name, values] : gradients) norm.add(values);
  const double total = norm.value();
  if (total <= most) return;
  const double factor = most / total;
  for (auto& [name, values] : gradients)
    for (double& v : values) v *= factor;
}

}  // namespace

ShapeMismatch::ShapeMismatch(std::string parameter, Shape expected, Shape got)
    : TypeError(mismatch_message(parameter, expected, got)),
      parameter_(std::move(parameter)),
      expected_(std::move(expected)),
      got_(std::move(got)) {}

AccumulationConfig AccumulationConfig::with_steps(std::int64_t steps) {
  AccumulationConfig config;
  config.accumulation_steps = std::max<std::int64_t>(steps, 1);
  return config;
}

std::int64_t AccumulationConfig::effective_batch_size(std::int64_t micro_batch) const {
  std::int64_t size = 0;
  if (__builtin_mul_overflow(micro_batch, accumulation_steps, &size))
    throw TypeError(
        fmt::format("{} micro-batches of {} are too many items", accumulation_steps, micro_batch));
  return size;
}

GradientBuffer::GradientBuffer(Shape shape)
    : shape_(std::move(shape)), sum_(static_cast<std::size_t>(shape_.numel()), 0.0) {}

void GradientBuffer::accumulate(std::span<const double> gradient) {
  const auto count = static_cast<std::int64_t>(gradient.size());
  accumulate(gradient, count == shape_.numel() ? shape_ : Shape{count});
}

void GradientBuffer::accumulate(std::span<const double> gradient, const Shape& shape,
                                double weight) {
  if (!(shape == shape_)) throw ShapeMismatch("", shape_, shape);
  if (gradient.size() != sum_.size())
    throw ShapeMismatch("", shape_, {static_cast<std::int64_t>(gradient.size())});
  check_weight(weight);
  for (std::size_t k = 0; k < sum_.size(); ++k) sum_[k] += weight * gradient[k];
  ++count_;
  weight_ += weight;
}

std::vector<double> GradientBuffer::get(bool normalize) const {
  std::vector<double> values = sum_;
  if (normalize && count_ > 0)
    for (double& v : values) v /= weight_;
  return values;
}

void GradientBuffer::reset() {
  std::fill(sum_.begin(), sum_.end(), 0.0);
  count_ = 0;
  weight_ = 0;
}

double GradientBuffer::l2_norm() const {
  Norm norm(largest_magnitude(sum_));
  norm.add(sum_);
  return norm.value();
}

GradientAccumulator::GradientAccumulator(AccumulationConfig config) : config_(config) {
  if (config_.accumulation_steps < 1)
    throw TypeError(
        fmt::format("accumulation_steps must be at least 1, got {}", config_.accumulation_steps));
  if (config_.max_grad_norm &&
      (!std::isfinite(*config_.max_grad_norm) || *config_.max_grad_norm <= 0))
    throw TypeError(fmt::format("max_grad_norm must be positive and finite, got {}",
                                exact(*config_.max_grad_norm)));
}

void GradientAccumulator::register_parameter(std::string_view name, const Shape& shape) {
  if (!buffers_.contains(name)) buffers_.emplace(std::string(name), GradientBuffer(shape));
}

const GradientBuffer& GradientAccumulator::buffer(std::string_view name) const {
  if (const auto it = buffers_.find(name); it != buffers_.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, buffer] : buffers_) names.push_back(known);
  throw UnknownParameter(
      fmt::format("no parameter '{}' is registered{}", name, did_you_mean(name, names)));
}

void GradientAccumulator::check(std::string_view name, const Literal& gradient) const {
  const GradientBuffer& into = buffer(name);
  if (into.count() >= config_.accumulation_steps)
    throw AccumulatorFull(fmt::format("'{}' has all its {} micro-batches: reset() before the next",
                                      name, config_.accumulation_steps));
  if (!(gradient.shape() == into.shape()))
    throw ShapeMismatch(std::string(name), into.shape(), gradient.shape());
  if (!gradient.is_float())
    throw TypeError(fmt::format("the gradient of '{}' must be a float tensor, got {}", name,
                                gradient.type().str()));
}

// Whether a checked gradient has to be left out; an error under NonFinite::error.
bool GradientAccumulator::refuses(std::string_view name, const Literal& gradient) const {
  if (config_.non_finite == NonFinite::propagate) return false;
  const std::optional<std::int64_t> bad = first_non_finite(gradient);
  if (bad && config_.non_finite == NonFinite::error)
    throw NonFiniteGradient(fmt::format("the gradient of '{}' {} is {} at element {}", name,
                                        gradient.shape().str(), exact(gradient.at(*bad)), *bad));
  return bad.has_value();
}

bool GradientAccumulator::accumulate(std::string_view name, const Literal& gradient,
                                     double weight) {
  check_weight(weight);
  check(name, gradient);
  if (refuses(name, gradient)) return false;
  buffers_.find(name)->second.accumulate(gradient.f(), gradient.shape(), weight);
  return true;
}

bool GradientAccumulator::step(const NamedGradients& gradients, double weight) {
  check_weight(weight);
  for (const auto& [name, gradient] : gradients) check(name, gradient);
  const bool left_out = std::any_of(gradients.begin(), gradients.end(), [&](const auto& entry) {
    return refuses(entry.first, entry.second);
  });
  if (left_out) {
    ++skipped_;
    return should_update();
  }
  for (const auto& [name, gradient] : gradients)
    buffers_.find(name)->second.accumulate(gradient.f(), gradient.shape(), weight);
  ++micro_batches_;
  return should_update();
}

bool GradientAccumulator::should_update() const {
  return std::any_of(buffers_.begin(), buffers_.end(), [&](const auto& entry) {
    return entry.second.count() >= config_.accumulation_steps;
  });
}

NamedGradients GradientAccumulator::gradients() const {
  const bool some = std::any_of(buffers_.begin(), buffers_.end(),
                                [](const auto& entry) { return entry.second.count() > 0; });
  if (!some)
    throw NoGradients(buffers_.empty() ? "no parameter is registered"
                                       : "no gradient has been accumulated");
  std::map<std::string, std::vector<double>, std::less<>> values;
  for (const auto& [name, buffer] : buffers_) values.emplace(name, buffer.get(config_.normalize));
  if (config_.max_grad_norm) clip(values, *config_.max_grad_norm);
  NamedGradients result;
  for (auto& [name, list] : values)
    result.emplace(name,
                   Literal::floats(buffers_.find(name)->second.shape(), std::move(list), f64));
  return result;
}

void GradientAccumulator::reset() {
  for (auto& [name, buffer] : buffers_) buffer.reset();
  ++updates_;
}

AccumulationStats GradientAccumulator::stats() const {
  AccumulationStats s{micro_batches_,
                      updates_,
                      skipped_,
                      config_.accumulation_steps,
                      static_cast<std::int64_t>(buffers_.size()),
                      0};
  for (const auto& [name, buffer] : buffers_) s.elements += buffer.shape().numel();
  return s;
}

}  // namespace pantala
