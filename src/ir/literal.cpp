#include "pantala/literal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/hash.h"
#include "pantala/error.h"

namespace pantala {

namespace {
// Elements take 8 bytes. What cannot fit the memory is refused before it is filled: the system
// would end the process, not the allocation.
std::int64_t max_elements() {
  static const auto bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
  return bytes / 8;
}

void check_count(const Shape& shape, std::size_t values) {
  if (static_cast<std::size_t>(shape.numel()) != values)
    throw TypeError(fmt::format("{} values given for shape {}, which has {}", values, shape.str(),
                                shape.numel()));
}
}  // namespace

Literal::Literal(Type type) : type_(std::move(type)) {
  const auto refuse = [this] {
    throw TypeError(
        fmt::format("a host tensor of type {} is too large for the memory", type_.str()));
  };
  if (numel() > max_elements()) refuse();
  try {
    if (is_float())
      floats_.resize(static_cast<std::size_t>(numel()));
    else
      ints_.resize(static_cast<std::size_t>(numel()));
  } catch (const std::bad_alloc&) { refuse(); }
}

Literal Literal::floats(Shape shape, std::vector<double> values, DType dtype) {
  check_count(shape, values.size());
  if (!pantala::is_float(dtype))
    throw TypeError(fmt::format("{} cannot hold floats", dtype_name(dtype)));
  Literal literal(Type{dtype, {0}});
  literal.type_.shape = std::move(shape);
  literal.floats_ = std::move(values);
  return literal;
}

Literal Literal::ints(Shape shape, std::vector<std::int64_t> values, DType dtype) {
  check_count(shape, values.size());
  if (pantala::is_float(dtype))
    throw TypeError(fmt::format("{} cannot hold integers", dtype_name(dtype)));
  for (std::int64_t& v : values) v = wrap_to(dtype, v);
  Literal literal(Type{dtype, {0}});
  literal.type_.shape = std::move(shape);
  literal.ints_ = std::move(values);
  return literal;
}

Literal Literal::scalar(double value, DType dtype) { return floats({}, {value}, dtype); }
Literal Literal::integer(std::int64_t value, DType dtype) { return ints({}, {value}, dtype); }

void Literal::check_kind(bool floats) const {
  if (is_float() == floats) return;
  throw TypeError(fmt::format(
      "a literal of type {} holds {}: read it with {}, or any literal with to_doubles()",
      type_.str(), is_float() ? "floats" : "integers", is_float() ? "f()" : "i()"));
}

std::span<double> Literal::f() & {
  check_kind(true);
  return floats_;
}
std::span<const double> Literal::f() const& {
  check_kind(true);
  return floats_;
}
std::vector<double> Literal::f() && {
  check_kind(true);
  return std::move(floats_);
}
std::span<std::int64_t> Literal::i() & {
  check_kind(false);
  return ints_;
}
std::span<const std::int64_t> Literal::i() const& {
  check_kind(false);
  return ints_;
}
std::vector<std::int64_t> Literal::i() && {
  check_kind(false);
  return std::move(ints_);
}

double Literal::at(std::int64_t index) const {
  if (index < 0 || index >= numel())
    throw ValueError(fmt::format("there is no element {} of a literal of type {}, which has {}",
                                 index, type_.str(), numel()));
  const auto k = static_cast<std::size_t>(index);
  return is_float() ? floats_[k] : static_cast<double>(ints_[k]);
}

std::vector<double> Literal::to_doubles() const {
  if (is_float()) return floats_;
  return {ints_.begin(), ints_.end()};
}

Literal Literal::reshaped(Shape shape) const {
  if (shape.numel() != numel())
    throw TypeError(fmt::format("a literal of type {} cannot become {}: {} elements are not {}",
                                type_.str(), shape.str(), numel(), shape.numel()));
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
