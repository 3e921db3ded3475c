#include "pantala/literal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "pantala/error.h"

namespace pantala {

namespace {
// More would not fit the memory of any machine that the interpreter is meant for.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 32;

void check_count(const Shape& shape, std::size_t values) {
  if (static_cast<std::size_t>(shape.numel()) != values)
    throw TypeError(fmt::format("{} values given for shape {}, which has {}", values, shape.str(), shape.numel()));
}
}  // namespace

Literal::Literal(Type type) : type_(std::move(type)) {
  if (numel() > kMaxElements) throw TypeError(fmt::format("a host tensor of type {} is too large", type_.str()));
  if (is_float())
    floats_.resize(static_cast<std::size_t>(numel()));
  else
    ints_.resize(static_cast<std::size_t>(numel()));
}

Literal Literal::floats(Shape shape, std::vector<double> values, DType dtype) {
  check_count(shape, values.size());
  if (!pantala::is_float(dtype)) throw TypeError(fmt::format("{} cannot hold floats", dtype_name(dtype)));
  Literal literal(Type{dtype, {0}});
  literal.type_.shape = std::move(shape);
  literal.floats_ = std::move(values);
  return literal;
}

Literal Literal::ints(Shape shape, std::vector<std::int64_t> values, DType dtype) {
  check_count(shape, values.size());
  if (pantala::is_float(dtype)) throw TypeError(fmt::format("{} cannot hold integers", dtype_name(dtype)));
  for (std::int64_t& v : values) v = wrap_to(dtype, v);
  Literal literal(Type{dtype, {0}});
  literal.type_.shape = std::move(shape);
  literal.ints_ = std::move(values);
  return literal;
}

Literal Literal::scalar(double value, DType dtype) { return floats({}, {value}, dtype); }
Literal Literal::integer(std::int64_t value, DType dtype) { return ints({}, {value}, dtype); }

std::span<double> Literal::f() {
  if (!is_float()) throw InternalError(fmt::format("floats asked of a {} literal", type_.str()));
  return floats_;
}
std::span<const double> Literal::f() const { return const_cast<Literal*>(this)->f(); }
std::span<std::int64_t> Literal::i() {
  if (is_float()) throw InternalError(fmt::format("integers asked of a {} literal", type_.str()));
  return ints_;
}
std::span<const std::int64_t> Literal::i() const { return const_cast<Literal*>(this)->i(); }

double Literal::at(std::int64_t index) const { return is_float() ? floats_[index] : static_cast<double>(ints_[index]); }

std::vector<double> Literal::to_doubles() const {
  if (is_float()) return floats_;
  return {ints_.begin(), ints_.end()};
}

Literal Literal::reshaped(Shape shape) const {
  if (shape.numel() != numel()) throw InternalError(fmt::format("{} cannot become {}", type_.str(), shape.str()));
  Literal copy = *this;
  copy.type_.shape = std::move(shape);
  return copy;
}

bool operator==(const Literal& a, const Literal& b) {
  const auto bits = [](double x, double y) { return hash_double(x) == hash_double(y); };
  return a.type_ == b.type_ && a.ints_ == b.ints_ &&
         std::equal(a.floats_.begin(), a.floats_.end(), b.floats_.begin(), b.floats_.end(), bits);
}

std::uint64_t Literal::hash() const {
  std::uint64_t hash = fnv1a(type_.str());
  for (const double v : floats_) hash = hash_combine(hash, hash_double(v));
  for (const std::int64_t v : ints_) hash = hash_combine(hash, static_cast<std::uint64_t>(v));
  return hash;
}

}  // namespace pantala
