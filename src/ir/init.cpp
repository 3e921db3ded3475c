#include "pantala/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include "base/hash.h"
#include "base/normal_numbers.h"
#include "base/philox.h"
#include "base/text.h"
#include "ir/attribute.h"
#include "ir/init_kinds.h"
#include "ir/init_values.h"
#include "pantala/error.h"

namespace pantala {

bool operator==(const Initializer& x, const Initializer& y) {
  const auto same = [](double a, double b) { return hash_double(a) == hash_double(b); };
  const bool data = x.data == y.data || (x.data && y.data && *x.data == *y.data);
  return x.kind == y.kind && same(x.a, y.a) && same(x.b, y.b) && same(x.low, y.low) &&
         same(x.high, y.high) && data;
}

namespace init {

using Kind = Initializer::Kind;

// Draws the numbers of one leaf: a stream of its own, keyed by its name.
class Draws {
 public:
  Draws(std::string_view name, std::uint64_t seed) : seed_(seed ^ mix64(fnv1a(name))) {}
  double unit(std::int64_t index, std::uint32_t lane = 0) const {
    return bits_to_unit(bits(index, lane));
  }
  double normal(std::int64_t index, std::uint32_t lane = 0) const {
    return normal_of(bits(index, 2 * lane), bits(index, 2 * lane + 1));
  }

  // The same for the elements from `first` on.
  void units(std::int64_t first, std::span<double> out) const {
    each_part(first, out, [&](std::int64_t index, std::span<double> part) {
      Bits drawn;
      draw(index, 0, part.size(), drawn);
      for (std::size_t k = 0; k < part.size(); ++k) part[k] = bits_to_unit(drawn[k]);
    });
  }
  // mean + scale * normal(), rounded to the dtype.
  void normals(std::int64_t first, double mean, double scale, DType dtype,
               std::span<double> out) const {
    each_part(first, out, [&](std::int64_t index, std::span<double> part) {
      Bits radii, angles;
      draw(index, 0, part.size(), radii);
      draw(index, 1, part.size(), angles);
      if (dtype == f32) return fill_normal(radii, angles, mean, scale, part);
      for (std::size_t k = 0; k < part.size(); ++k)
        part[k] = round_to(dtype, mean + scale * normal_of(radii[k], angles[k]));
    });
  }

 private:
  static constexpr std::size_t kPart = 1024;
  using Bits = std::array<std::uint32_t, kPart>;

  std::uint32_t bits(std::int64_t index, std::uint32_t lane) const {
    return random_bits(seed_, 0, lane, static_cast<std::uint64_t>(index));
  }
  void draw(std::int64_t first, std::uint32_t lane, std::size_t count, Bits& drawn) const {
    random_bits(seed_, 0, lane, static_cast<std::uint64_t>(first), std::span(drawn).first(count));
  }
  template <class Fill>
  static void each_part(std::int64_t first, std::span<double> out, const Fill& fill) {
    for (std::size_t k = 0; k < out.size(); k += kPart)
      fill(first + static_cast<std::int64_t>(k), out.subspan(k, std::min(kPart, out.size() - k)));
  }

  std::uint64_t seed_;
};

namespace {
Initializer make_init(Kind kind, double a = 0, double b = 0) {
  Initializer i;
  i.kind = kind;
  i.a = a;
  i.b = b;
  return i;
}

// The share of the standard normal distribution above z, accurate in the upper tail.
double upper_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// The standard normal distribution cut to [low, high], both above 0, at quantile u: found by
// bisection of the tail.
double tail_quantile(double low, double high, double u) {
  const double target = upper_tail(low) + u * (upper_tail(high) - upper_tail(low));
  for (int step = 0; step < 100; ++step) {
    const double middle = low + (high - low) / 2;
    (upper_tail(middle) > target ? low : high) = middle;
  }
  return low;
}

// Redrawn until it lies within the bounds, which are in units of the value, as in PyTorch. Bounds
// that are rarely hit lie in a tail, where the distribution is inverted instead.
double truncated(const Initializer& i, const Draws& draws, std::int64_t index) {
  constexpr std::uint32_t kAttempts = 64;
  for (std::uint32_t lane = 0; lane < kAttempts; ++lane) {
    const double value = i.a + i.b * draws.normal(index, lane);
    if (value >= i.low && value <= i.high) return value;
  }
  // Beyond 38 deviations no double is left of the tail: its mass sits at the bound.
  constexpr double kEnd = 38;
  const double low = (i.low - i.a) / i.b, high = (i.high - i.a) / i.b,
               u = draws.unit(index, 2 * kAttempts);
  if (low > 0 && low < kEnd)
    return std::clamp(i.a + i.b * tail_quantile(low, std::min(high, kEnd), u), i.low, i.high);
  if (high < 0 && high > -kEnd)
    return std::clamp(i.a - i.b * tail_quantile(-high, std::min(-low, kEnd), u), i.low, i.high);
  // A deviation of 0, bounds without mass, or a narrow window around the mean, where the
  // distribution is flat.
  if (low <= 0 && high >= 0 && i.b > 0) return i.low + u * (i.high - i.low);
  return std::clamp(i.a, i.low, i.high);
}

// Rows of a [rows, columns] normal matrix made orthonormal by modified Gram-Schmidt (the shorter
// side is the orthonormal one).
std::vector<double> orthogonal_matrix(std::int64_t rows, std::int64_t columns, double gain,
                                      const Draws& draws) {
  const bool tall = rows > columns;
  const std::int64_t count = tall ? columns : rows, length = tall ? rows : columns;
  std::vector<double> v(static_cast<std::size_t>(count * length));
  for (std::int64_t k = 0; k < count * length; ++k) v[k] = draws.normal(k);
  for (std::int64_t r = 0; r < count; ++r) {
    double* row = &v[r * length];
    for (std::int64_t pass = 0; pass < 2; ++pass) {  // a second pass restores what rounding lost
      for (std::int64_t q = 0; q < r; ++q) {
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += row[k] * v[q * length + k];
        for (std::int64_t k = 0; k < length; ++k) row[k] -= dot * v[q * length + k];
      }
    }
    double norm = 0;
    for (std::int64_t k = 0; k < length; ++k) norm += row[k] * row[k];
    for (std::int64_t k = 0; k < length; ++k) row[k] /= std::sqrt(norm);
  }
  std::vector<double> out(v.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      out[r * columns + c] = gain * (tall ? v[c * length + r] : v[r * length + c]);
  return out;
}
}  // namespace

Initializer zeros() { return make_init(Kind::zeros); }
Initializer ones() { return make_init(Kind::ones); }
Initializer constant(double value) { return make_init(Kind::constant, value); }
Initializer uniform(double low, double high) { return make_init(Kind::uniform, low, high); }
Initializer normal(double mean, double std) { return make_init(Kind::normal, mean, std); }
Initializer truncated_normal(double mean, double std, double low, double high) {
  Initializer i = make_init(Kind::truncated_normal, mean, std);
  i.low = low;
  i.high = high;
  return i;
}
Initializer xavier_uniform(double gain) { return make_init(Kind::xavier_uniform, gain); }
Initializer xavier_normal(double gain) { return make_init(Kind::xavier_normal, gain); }
Initializer kaiming_uniform(double slope) { return make_init(Kind::kaiming_uniform, slope); }
Initializer kaiming_normal(double slope) { return make_init(Kind::kaiming_normal, slope); }
Initializer orthogonal(double gain) { return make_init(Kind::orthogonal, gain); }
Initializer from_data(Literal values) {
  Initializer i = make_init(Kind::data);
  i.data = std::make_shared<const Literal>(std::move(values));
  return i;
}

Fans fans(const Shape& shape) {
  if (shape.rank() < 2)
    throw TypeError(
        fmt::format("xavier and kaiming initialisers need at least 2 axes, got {}", shape.str()));
  std::int64_t field = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) field *= shape[axis];
  return {.in = shape[1] * field, .out = shape[0] * field};
}

namespace {
void require_finite(const Initializer& i, double value, std::string_view what) {
  if (!std::isfinite(value))
    throw TypeError(
        fmt::format("{}: {} must be finite, got {}", kind_text(i.kind), what, exact(value)));
}
void require_not_negative(const Initializer& i, double value, std::string_view what) {
  if (!(value >= 0) || !std::isfinite(value))
    throw TypeError(fmt::format("{}: {} must be finite and not negative, got {}", kind_text(i.kind),
                                what, exact(value)));
}

void check_arguments(const Initializer& i) {
  switch (i.kind) {
    case Kind::uniform:
      require_finite(i, i.a, "low");
      require_finite(i, i.b, "high");
      if (i.a > i.b)
        throw TypeError(
            fmt::format("uniform: low {} must not be above high {}", exact(i.a), exact(i.b)));
      require_finite(i, i.b - i.a, "high - low");
      break;
    case Kind::truncated_normal:
      if (!(i.low < i.high))
        throw TypeError(fmt::format("truncated_normal: low {} must be below high {}", exact(i.low),
                                    exact(i.high)));
      [[fallthrough]];
    case Kind::normal:
      require_finite(i, i.a, "the mean");
      require_not_negative(i, i.b, "the standard deviation");
      break;
    case Kind::xavier_uniform:
    case Kind::xavier_normal:
      require_not_negative(i, i.a, "the gain");
      break;
    case Kind::kaiming_uniform:
    case Kind::kaiming_normal:
      require_finite(i, i.a, "the slope");
      break;
    case Kind::orthogonal:
      require_finite(i, i.a, "the gain");
      break;
    case Kind::data:
      if (!i.data) throw TypeError("the initialiser has no data");
      break;
    case Kind::zeros:
    case Kind::ones:
    case Kind::constant:
      break;
  }
}

// The integer that fills a leaf of an integer or bool type.
std::int64_t integer_value(const Initializer& i, DType dtype) {
  const double value = i.kind == Kind::ones ? 1 : i.kind == Kind::constant ? i.a : 0;
  // Beyond 2^53 a double does not name one integer.
  const bool whole = value == std::floor(value) && std::fabs(value) <= 0x1p53;
  if (!whole ||
      wrap_to(dtype, static_cast<std::int64_t>(value)) != static_cast<std::int64_t>(value))
    throw TypeError(
        fmt::format("{}: {} cannot hold {}", kind_text(i.kind), dtype_name(dtype), exact(value)));
  return static_cast<std::int64_t>(value);
}
}  // namespace

void check(const Initializer& i, const Type& type) {
  check_arguments(i);
  if (i.kind == Kind::data) {
    if (i.data->type() != type)
      throw TypeError(
          fmt::format("data of type {} given for {}", i.data->type().str(), type.str()));
    return;
  }
  if (!is_float(type.dtype)) {
    if (i.kind > Kind::constant)
      throw TypeError(fmt::format("{} needs a float type, got {}", kind_text(i.kind), type.str()));
    integer_value(i, type.dtype);
  }
  if (i.kind >= Kind::xavier_uniform && i.kind <= Kind::kaiming_normal) fans(type.shape);
  if (i.kind == Kind::orthogonal && type.shape.rank() < 2)
    throw TypeError(fmt::format("orthogonal: needs at least 2 axes, got {}", type.shape.str()));
}

Literal make(const Initializer& i, const Type& type, std::string_view name, std::uint64_t seed) {
  check(i, type);
  if (i.kind == Kind::data && !i.data->is_float()) return *i.data;
  Literal out(type);
  if (!out.is_float()) {
    std::fill(out.i().begin(), out.i().end(), integer_value(i, type.dtype));
    return out;
  }
  Values(i, type, name, seed).fill(0, out.f());
  return out;
}

struct Values::Data {
  Initializer init;
  DType dtype;
  Draws draws;
  double mean = 0, scale = 0;  // of what is drawn
  std::vector<double> matrix;  // of an orthogonal one
};

namespace {

Fans positive_fans(const Shape& shape) {
  const Fans f = fans(shape);
  return {std::max<std::int64_t>(f.in, 1), std::max<std::int64_t>(f.out, 1)};
}

// The standard deviation that xavier and kaiming ask for.
double fan_deviation(const Initializer& i, const Shape& shape) {
  const Fans fan = positive_fans(shape);
  if (i.kind == Kind::xavier_uniform || i.kind == Kind::xavier_normal)
    return i.a * std::sqrt(2.0 / static_cast<double>(fan.in + fan.out));
  return std::sqrt(2.0 / (1 + i.a * i.a) / static_cast<double>(fan.in));
}

}  // namespace

Values::Values(const Initializer& i, const Type& type, std::string_view name, std::uint64_t seed) {
  check(i, type);
  Data data{.init = i, .dtype = type.dtype, .draws = Draws(name, seed), .matrix = {}};
  switch (i.kind) {
    case Kind::uniform:
      data.mean = i.a;
      data.scale = i.b - i.a;
      break;
    case Kind::normal:
      data.mean = i.a;
      data.scale = i.b;
      break;
    case Kind::xavier_uniform:
    case Kind::kaiming_uniform:
      data.scale = std::sqrt(3.0) * fan_deviation(i, type.shape);
      break;
    case Kind::xavier_normal:
    case Kind::kaiming_normal:
      data.scale = fan_deviation(i, type.shape);
      break;
    case Kind::orthogonal: {
      const std::int64_t rows = type.shape[0], columns = rows == 0 ? 0 : type.shape.numel() / rows;
      data.matrix = orthogonal_matrix(rows, columns, i.a, data.draws);
      break;
    }
    default:
      break;
  }
  data_ = std::make_shared<const Data>(std::move(data));
}

void Values::fill(std::int64_t first, std::span<double> out) const {
  const Data& data = *data_;
  const Initializer& i = data.init;
  switch (i.kind) {
    case Kind::zeros:
      std::fill(out.begin(), out.end(), 0.0);
      break;
    case Kind::ones:
      std::fill(out.begin(), out.end(), 1.0);
      break;
    case Kind::constant:
      std::fill(out.begin(), out.end(), i.a);
      break;
    case Kind::uniform:
      data.draws.units(first, out);
      for (double& x : out) x = data.mean + data.scale * x;
      break;
    case Kind::xavier_uniform:
    case Kind::kaiming_uniform:
      data.draws.units(first, out);
      for (double& x : out) x = (2 * x - 1) * data.scale;
      break;
    case Kind::normal:
    case Kind::xavier_normal:
    case Kind::kaiming_normal:
      return data.draws.normals(first, data.mean, data.scale, data.dtype, out);
    case Kind::truncated_normal:
      for (std::size_t k = 0; k < out.size(); ++k)
        out[k] = truncated(i, data.draws, first + static_cast<std::int64_t>(k));
      break;
    case Kind::orthogonal:
      std::copy_n(data.matrix.begin() + first, out.size(), out.begin());
      break;
    case Kind::data:
      std::copy_n(i.data->f().begin() + first, out.size(), out.begin());
      break;
  }
  if (data.dtype == f64) return;
  for (double& x : out) x = round_to(data.dtype, x);
}

}  // namespace init
}  // namespace pantala
