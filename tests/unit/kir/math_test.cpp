// The functions of kernel code against the C library in a wider type, over the whole range, and at
// every special value.
#include "kir/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "base/philox.h"
#include "kir/interpret.h"
#include "kir/simplify.h"

namespace pantala::kir::math_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kLanes = 32;

using Code = std::function<Var(Var, Var)>;  // unary functions leave the second out
using Truth = std::function<long double(long double, long double)>;

struct Function {
  const char* name;
  Code code;
  Truth truth;
  double bound_f32, bound_f64;  // in units in the last place
};

// 1 / (1 + exp(-x)) has no cancellation for any sign.
long double sigmoid_truth(long double x) { return 1.0L / (1.0L + std::exp(-x)); }

const std::vector<Function>& functions() {
  static const std::vector<Function> list = {
      {"exp", [](Var x, Var) { return math::exp(x); },
       [](long double x, long double) { return std::exp(x); }, 1.05, 1.05},
      {"exp2", [](Var x, Var) { return math::exp2(x); },
       [](long double x, long double) { return std::exp2(x); }, 1.05, 1.05},
      {"expm1", [](Var x, Var) { return math::expm1(x); },
       [](long double x, long double) { return std::expm1(x); }, 2, 2},
      {"sigmoid", [](Var x, Var) { return math::sigmoid(x); },
       [](long double x, long double) { return sigmoid_truth(x); }, 2.3, 2.3},
      {"tanh", [](Var x, Var) { return math::tanh(x); },
       [](long double x, long double) { return std::tanh(x); }, 2, 2},
      {"erf", [](Var x, Var) { return math::erf(x); },
       [](long double x, long double) { return std::erf(x); }, 2, 2},
      {"log", [](Var x, Var) { return math::log(x); },
       [](long double x, long double) { return std::log(x); }, 1, 1},
      {"log2", [](Var x, Var) { return math::log2(x); },
       [](long double x, long double) { return std::log2(x); }, 1, 1},
      {"log1p", [](Var x, Var) { return math::log1p(x); },
       [](long double x, long double) { return std::log1p(x); }, 1.5, 1.5},
      {"sin", [](Var x, Var) { return math::sin(x); },
       [](long double x, long double) { return std::sin(x); }, 2, 2},
      {"cos", [](Var x, Var) { return math::cos(x); },
       [](long double x, long double) { return std::cos(x); }, 2, 2},
      {"rsqrt", [](Var x, Var) { return math::rsqrt(x); },
       [](long double x, long double) { return 1.0L / std::sqrt(x); }, 1.5, 1.5},
      {"pow", [](Var x, Var y) { return math::pow(x, y); },
       [](long double x, long double y) { return std::pow(x, y); }, 1.5, 1.5},
  };
  return list;
}

// out[k] = f(x[k], y[k]); item i does the 32 numbers from 32 i on.
Kernel kernel_of(const Function& f, DType dtype, int lanes = kLanes) {
  Builder b(f.name);
  const BufferId x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::read),
                 out = b.buffer("out", dtype, Access::write);
  b.loop(b.item() * kLanes, b.item() * kLanes + kLanes, b.i64(lanes),
         [&](Var at) { b.store(out, at, f.code(b.load(x, at, lanes), b.load(y, at, lanes))); });
  return simplify(b.finish());
}

template <class T>
constexpr DType kDType = sizeof(T) == 4 ? DType::f32 : DType::f64;

template <class T>
std::vector<T> evaluate(const Function& f, std::vector<T> x, std::vector<T> y, int lanes = kLanes) {
  const std::size_t wanted = x.size();
  const std::size_t items = (wanted + kLanes - 1) / kLanes;
  x.resize(items * kLanes), y.resize(items * kLanes);
  std::vector<T> out(x.size());
  const auto bind = [](std::vector<T>& v) {
    return BoundBuffer{kDType<T>, reinterpret_cast<std::byte*>(v.data()), std::ssize(v)};
  };
  interpret(kernel_of(f, kDType<T>, lanes), {{bind(x), bind(y), bind(out)}, {}}, 0,
            static_cast<std::int64_t>(items));
  out.resize(wanted);
  return out;
}

// The distance of a result from the truth in units in the last place of the truth; 1e9 if one is
// NaN or infinite and the other is not.
template <class T>
double distance(T got, long double truth) {
  const T rounded = static_cast<T>(truth);
  if (got == rounded || (got != got && rounded != rounded)) return 0;
  if (!std::isfinite(got) && std::isfinite(rounded)) return 1e9;
  // Beyond the greatest number the unit is that of the greatest, so that rounding to infinity half
  // a unit too early is half a unit's error.
  const int digits = std::numeric_limits<T>::digits;
  const int exponent = std::max(std::ilogb(truth) + 1, std::numeric_limits<T>::min_exponent);
  if (!std::isfinite(got) || !std::isfinite(truth)) return 1e9;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - truth) /
                             std::ldexp(1.0L, exponent - digits));
}

struct Worst {
  double error = 0, x = 0, y = 0;
};
template <class T>
Worst worst(const Function& f, const std::vector<T>& x, const std::vector<T>& y) {
  const std::vector<T> got = evaluate(f, x, y);
  Worst w;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double error =
        distance(got[k], f.truth(static_cast<long double>(x[k]), static_cast<long double>(y[k])));
    if (error > w.error) w = {error, static_cast<double>(x[k]), static_cast<double>(y[k])};
  }
  return w;
}

// Random numbers: all bit patterns, and in turn numbers between -limit and limit for several
// limits, where functions have their features.
template <class T>
std::vector<T> samples(std::size_t count, std::uint64_t seed) {
  std::vector<T> v(count);
  constexpr double limits[] = {0, 1, 4, 30, 110, 750, 2e5, 0};
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint64_t high = random_bits(seed, 0, 0, k), low = random_bits(seed, 1, 0, k);
    const double limit = limits[k % 8];
    if (limit == 0) {
      const std::uint64_t bits = high << 32 | low;
      if constexpr (sizeof(T) == 4) v[k] = std::bit_cast<float>(static_cast<std::uint32_t>(high));
      if constexpr (sizeof(T) == 8) v[k] = std::bit_cast<double>(bits);
    } else {
      v[k] = static_cast<T>(
          limit *
          (2 * (static_cast<double>(high) + static_cast<double>(low) * 0x1p-32) * 0x1p-32 - 1));
    }
  }
  return v;
}

void expect_within(const Function& f, const Worst& w, double bound, const char* dtype) {
  EXPECT_LE(w.error, bound) << f.name << " of " << dtype << " at x = " << w.x << ", y = " << w.y;
  ::testing::Test::RecordProperty(std::string(f.name) + "_" + dtype, std::to_string(w.error));
  std::printf("  %-8s %s: at most %.3f units in the last place, at %a\n", f.name, dtype, w.error,
              w.x);
}

class Math : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Function& f() const { return functions()[GetParam()]; }
  bool is_pow() const { return f().name == std::string("pow"); }
};

// A prime step visits every exponent with ever new mantissas.
TEST_P(Math, is_accurate_for_f32_over_the_whole_range) {
  std::vector<float> x;
  if (is_pow()) {
    x = samples<float>(300'000, 1);
    for (float& v : x) v = std::fabs(v);
  } else {
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  std::vector<float> y = samples<float>(x.size(), 2);
  // Powers near the limits of the range: y log2(x) spread over (-155, 135).
  for (std::size_t k = 0; is_pow() && k < x.size(); k += 2)
    y[k] = static_cast<float>((290 * bits_to_unit(random_bits(3, 0, 0, k)) - 155) /
                              std::log2(static_cast<double>(x[k])));
  expect_within(f(), worst(f(), x, y), f().bound_f32, "f32");
}

TEST_P(Math, is_accurate_for_f64) {
  std::vector<double> x = samples<double>(100'000, 4), y = samples<double>(x.size(), 5);
  for (std::size_t k = 0; is_pow() && k < x.size(); ++k) {
    x[k] = std::fabs(x[k]);
    if (k % 2 == 0) y[k] = (2160 * bits_to_unit(random_bits(6, 0, 0, k)) - 1100) / std::log2(x[k]);
  }
  expect_within(f(), worst(f(), x, y), f().bound_f64, "f64");
}

template <class T>
void expect_special_values(const Function& f) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> values = {0,
                                 T(-0.0),
                                 Limits::denorm_min(),
                                 -Limits::denorm_min(),
                                 Limits::min(),
                                 -Limits::min(),
                                 Limits::max(),
                                 Limits::lowest(),
                                 T(kInfinity),
                                 T(-kInfinity),
                                 T(kNaN),
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 T(0.5),
                                 T(-0.5),
                                 T(1.5),
                                 T(-2.5),
                                 T(1e-20),
                                 T(-1e-20),
                                 T(88.5),
                                 T(-100),
                                 T(700),
                                 T(-740),
                                 T(16777217),
                                 T(1e15)};
  std::vector<T> x, y;
  for (const T a : values)
    for (const T b : values) x.push_back(a), y.push_back(b);
  const std::vector<T> got = evaluate(f, x, y);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const long double truth = f.truth(x[k], y[k]);
    EXPECT_LE(distance(got[k], truth), 2) << f.name << "(" << x[k] << ", " << y[k] << ") gave "
                                          << got[k] << ", the truth is " << static_cast<T>(truth);
    if (truth == truth) {
      EXPECT_EQ(std::signbit(got[k]), std::signbit(truth))
          << f.name << "(" << x[k] << ", " << y[k] << ") gave " << got[k];
    }
  }
}

TEST_P(Math, is_right_at_special_values) {
  expect_special_values<float>(f());
  expect_special_values<double>(f());
}

TEST_P(Math, gives_the_same_bits_for_any_lanes) {
  const std::vector<float> x = samples<float>(4096, 7), y = samples<float>(4096, 8);
  const std::vector<float> wide = evaluate(f(), x, y);
  for (const int lanes : {1, 8}) {
    const std::vector<float> narrow = evaluate(f(), x, y, lanes);
    for (std::size_t k = 0; k < x.size(); ++k)
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(wide[k]) ==
                      std::bit_cast<std::uint32_t>(narrow[k]) ||
                  (wide[k] != wide[k] && narrow[k] != narrow[k]))
          << f().name << " of " << x[k];
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Math, ::testing::Range(std::size_t{0}, functions().size()),
                         [](const auto& p) { return std::string(functions()[p.param].name); });

}  // namespace
}  // namespace pantala::kir::math_test
