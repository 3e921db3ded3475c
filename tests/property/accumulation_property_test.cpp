// However a batch is split into micro-batches, weighting each by its items gives the gradient of
// the whole batch.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "pantala/accumulation.h"
#include "support/numbers.h"

namespace pantala::tests {
namespace {

// Numbers drawn one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  double unit() { return bits_to_unit(random_bits(seed_, 0, 0, next_++)); }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(unit() * static_cast<double>(end));
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

// The mean over items [first, first + count) of per-item gradients [items, size].
Literal mean_gradient(const std::vector<double>& items, std::int64_t size, std::int64_t first,
                      std::int64_t count) {
  std::vector<double> mean(static_cast<std::size_t>(size), 0.0);
  for (std::int64_t item = first; item < first + count; ++item)
    for (std::int64_t k = 0; k < size; ++k)
      mean[k] += items[item * size + k] / static_cast<double>(count);
  return Literal::floats({size}, mean, f64);
}

std::vector<std::int64_t> random_split(Draws& draws, std::int64_t items) {
  std::vector<std::int64_t> split;
  for (std::int64_t left = items; left > 0; left -= split.back())
    split.push_back(1 + draws.below(left));
  return split;
}

std::vector<double> accumulated(const std::vector<double>& items, std::int64_t size,
                                const std::vector<std::int64_t>& split,
                                std::optional<double> max_norm) {
  AccumulationConfig config = AccumulationConfig::with_steps(std::ssize(split));
  config.max_grad_norm = max_norm;
  GradientAccumulator accumulator(config);
  accumulator.register_parameter("p", {size});
  std::int64_t first = 0;
  for (const std::int64_t count : split) {
    EXPECT_FALSE(accumulator.should_update());
    accumulator.step({{"p", mean_gradient(items, size, first, count)}}, static_cast<double>(count));
    first += count;
  }
  EXPECT_TRUE(accumulator.should_update());
  return accumulator.gradients().at("p").to_doubles();
}

TEST(AccumulationProperty, any_split_of_a_batch_gives_the_same_gradient) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed);
    const std::int64_t count = 1 + draws.below(40), size = 1 + draws.below(8);
    std::vector<double> items(static_cast<std::size_t>(count * size));
    const double scale = std::exp2(draws.unit() * 40 - 20);
    double magnitude = 0;
    for (double& v : items) {
      v = (draws.unit() - 0.5) * scale;
      magnitude = std::max(magnitude, std::fabs(v));
    }
    const std::optional<double> max_norm =
        seed % 2 == 0 ? std::nullopt : std::optional(scale * 0.05);
    const std::vector<double> whole = accumulated(items, size, {count}, max_norm);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::vector<std::int64_t> split = random_split(draws, count);
      const std::vector<double> parts = accumulated(items, size, split, max_norm);
      for (std::int64_t k = 0; k < size; ++k)
        ASSERT_NEAR(parts[k], whole[k], 1e-13 * magnitude)
            << fmt::format("seed {}, {} items of size {}, split [{}], element {}", seed, count,
                           size, fmt::join(split, ","), k);
    }
  }
}

// The norm after clipping is the maximum, or what it was.
TEST(AccumulationProperty, clipping_meets_the_maximum) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed + 1000);
    AccumulationConfig config = AccumulationConfig::with_steps(1);
    config.max_grad_norm = std::exp2(draws.unit() * 20 - 10);
    GradientAccumulator accumulator(config);
    const std::int64_t parameters = 1 + draws.below(5);
    NamedGradients given;
    double before = 0, after = 0;
    for (std::int64_t p = 0; p < parameters; ++p) {
      std::vector<double> values(static_cast<std::size_t>(1 + draws.below(6)));
      for (double& v : values) {
        v = draws.unit() * 20 - 10;
        before += v * v;
      }
      const Shape shape{std::ssize(values)};
      accumulator.register_parameter(fmt::format("p{}", p), shape);
      given.emplace(fmt::format("p{}", p), Literal::floats(shape, values, f64));
    }
    accumulator.step(given);
    for (const auto& [name, gradient] : accumulator.gradients())
      for (const double v : gradient.f()) after += v * v;
    EXPECT_NEAR(std::sqrt(after), std::min(std::sqrt(before), *config.max_grad_norm),
                1e-12 * std::sqrt(before))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace pantala::tests
