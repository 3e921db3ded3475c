#include "tools/tune/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "pantala/error.h"

namespace pantala::tools {

namespace {

using schedule::CostField;
using schedule::CostTable;

// Microseconds that a launch must take to be counted: shorter ones are mostly clock.
constexpr double kLeastTime = 5, kLeastFitted = 2;
// A launch speaks for a constant if its prediction follows it by at least this power.
constexpr double kLeastSay = 0.5;
constexpr double kStep = 1.25;  // by which a constant is moved to see what follows it
// No machine is further from the one that the shipped table describes than this.
constexpr double kFurthest = 30;
// By how much constants are moved, in logarithms: less and less, until more would be noise.
constexpr double kSteps[] = {0.6, 0.3, 0.15, 0.07, 0.03};
constexpr int kSweeps = 4;  // at most, of each of them
// From here on (in logarithms) twice the error of a launch is twice as bad, and not four times: a
// launch that nothing explains must not bend what the others say.
constexpr double kLargeError = 0.2;
// What it costs that a constant leaves the machine that the shipped table describes by e, beside
// what all of them do: as much as that one launch is predicted wrong by e. What few launches speak
// for stays where it was, relative to the others.
constexpr double kHold = 1;

// What is fitted to launches.
constexpr double CostTable::* kFitted[] = {
    &CostTable::vector_op, &CostTable::memory_byte, &CostTable::shared_memory_byte,
    &CostTable::l3_byte,   &CostTable::l2_byte,     &CostTable::contract,
    &CostTable::conv,      &CostTable::attention,   &CostTable::vector_access,
    &CostTable::item,      &CostTable::row,         &CostTable::strided,
    &CostTable::gathered,
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) { return values[k]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t k = begin; k < end; ++k)
      ranks[order[k]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double both = 0, aa = 0, bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    both += (a[k] - mean_a) * (b[k] - mean_b);
    aa += (a[k] - mean_a) * (a[k] - mean_a);
    bb += (b[k] - mean_b) * (b[k] - mean_b);
  }
  return aa > 0 && bb > 0 ? both / std::sqrt(aa * bb) : 0;
}

class Fitting {
 public:
  Fitting(const CostTable& start, std::span<const Measured> measured)
      : start_(start), table_(start), measured_(measured) {}

  Fitted run() {
    double badness = badness_of(table_);
    for (const double step : kSteps)
      for (int sweep = 0; sweep < kSweeps; ++sweep)
        if (!improve(step, badness)) break;
    put_in_order();
    Fitted fitted{.table = table_, .constants = {}};
    for (const CostField& field : schedule::cost_fields()) {
      double& value = fitted.table.*field.value;
      value = std::clamp(rounded(value), field.least, field.most);
      const bool is_fitted = std::ranges::find(kFitted, field.value) != std::end(kFitted);
      fitted.constants.push_back({field.name, start_.*field.value, value,
                                  is_fitted ? launches_that_follow(field.value) : 0});
    }
    return fitted;
  }

 private:
  // How badly a table predicts, and how far it is from the shipped one: less is better.
  double badness_of(const CostTable& table) const {
    double badness = 0;
    for (const Measured& one : measured_) {
      const std::vector<double> predicted = one.predicted_us(table);
      for (std::size_t k = 0; k < predicted.size(); ++k) {
        if (one.launch_us[k] < kLeastFitted) continue;
        const double error = std::abs(std::log(predicted[k] / one.launch_us[k]));
        badness +=
            error < kLargeError ? error * error / (2 * kLargeError) : error - kLargeError / 2;
      }
    }
    double common = 0;
    for (const auto constant : kFitted) common += moved_by(table, constant) / std::size(kFitted);
    for (const auto constant : kFitted) {
      const double apart = moved_by(table, constant) - common;
      badness += kHold * apart * apart;
    }
    return badness;
  }

  double moved_by(const CostTable& table, double CostTable::* constant) const {
    return std::log(table.*constant / start_.*constant);
  }

  // All constants together, then each by itself, up or down by the step as long as that helps.
  bool improve(double step, double& badness) {
    bool has_improved = false;
    const auto try_moving = [&](std::span<double CostTable::* const> constants, double by) {
      CostTable moved = table_;
      for (const auto constant : constants)
        moved.*constant = within(constant, moved.*constant * std::exp(by));
      const double now = badness_of(moved);
      if (now >= badness) return false;
      table_ = moved;
      badness = now;
      return has_improved = true;
    };
    const auto move = [&](std::span<double CostTable::* const> constants) {
      if (!try_moving(constants, step)) try_moving(constants, -step);
    };
    move(kFitted);
    for (const auto& constant : kFitted) move({&constant, 1});
    return has_improved;
  }

  double within(double CostTable::* constant, double value) const {
    const CostField& field = field_of(constant);
    const double shipped = start_.*constant;
    return std::clamp(value, std::max(field.least, shipped / kFurthest),
                      std::min(field.most, shipped * kFurthest));
  }

  std::size_t launches_that_follow(double CostTable::* constant) const {
    std::size_t count = 0;
    CostTable moved = table_;
    moved.*constant *= kStep;
    for (const Measured& one : measured_) {
      const std::vector<double> now = one.predicted_us(table_), then = one.predicted_us(moved);
      for (std::size_t k = 0; k < now.size(); ++k)
        count += one.launch_us[k] >= kLeastFitted &&
                 std::log(then[k] / now[k]) / std::log(kStep) >= kLeastSay;
    }
    return count;
  }

  static const CostField& field_of(double CostTable::* constant) {
    for (const CostField& field : schedule::cost_fields())
      if (field.value == constant) return field;
    throw InternalError("tune: a constant is none of the table's");
  }

  // What lies further away does not cost less, and all cores together get at least what one gets,
  // and at most what all would get without each other.
  void put_in_order() {
    table_.l3_byte = std::max(table_.l3_byte, table_.l2_byte);
    table_.memory_byte = std::max(table_.memory_byte, table_.l3_byte);
    table_.shared_memory_byte = std::clamp(table_.shared_memory_byte,
                                           table_.memory_byte / table_.workers, table_.memory_byte);
  }

  const CostTable& start_;
  CostTable table_;
  std::span<const Measured> measured_;
};

}  // namespace

double rounded(double value) {
  const std::string text = fmt::format("{:.3g}", value);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

Score score(std::span<const Measured> measured, const CostTable& table) {
  std::vector<double> times, predictions, errors;
  for (const Measured& one : measured) {
    const std::vector<double> predicted = one.predicted_us(table);
    for (std::size_t k = 0; k < predicted.size(); ++k) {
      if (one.launch_us[k] < kLeastTime) continue;
      times.push_back(one.launch_us[k]);
      predictions.push_back(predicted[k]);
      errors.push_back(std::abs(predicted[k] - one.launch_us[k]) / one.launch_us[k]);
    }
  }
  if (times.empty()) return {};
  return {times.size(), correlation(ranks(times), ranks(predictions)), median(std::move(errors))};
}

Fitted fit(const CostTable& start, std::span<const Measured> measured) {
  return Fitting(start, measured).run();
}

double overhead_of_launch(const Measured& shorter, const Measured& longer) {
  const auto more =
      static_cast<double>(longer.launch_us.size()) - static_cast<double>(shorter.launch_us.size());
  if (more < 1) throw InternalError("tune: the chains of launches are of one length");
  if (longer.machine.takes_times()) return median(longer.launch_us);
  return (longer.overhead_us - shorter.overhead_us) / more;
}

}  // namespace pantala::tools
