#include "schedule/index.h"

#include <algorithm>

#include "pantala/error.h"

namespace pantala::schedule {

bool Domain::empty() const { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

Affine Affine::loop(int dim) {
  Affine form;
  form.coef[static_cast<std::size_t>(dim)] = 1;
  return form;
}

bool Affine::is_constant() const {
  return std::all_of(coef.begin(), coef.end(), [](std::int64_t c) { return c == 0; });
}

Affine Affine::operator+(const Affine& other) const {
  Affine sum = *this;
  sum.constant += other.constant;
  for (std::size_t d = 0; d < coef.size(); ++d) sum.coef[d] += other.coef[d];
  return sum;
}

Affine Affine::operator*(std::int64_t factor) const {
  Affine product = *this;
  product.constant *= factor;
  for (std::int64_t& c : product.coef) c *= factor;
  return product;
}

Interval range(const Affine& form, const Domain& domain) {
  if (domain.empty()) return {0, -1};
  Interval all{form.constant, form.constant};
  for (std::size_t d = 0; d < domain.sizes.size(); ++d) {
    const std::int64_t reach = form.coef[d] * (domain.sizes[d] - 1);
    (reach < 0 ? all.low : all.high) += reach;
  }
  return all;
}

std::optional<Split> split(const Affine& form, std::int64_t divisor, const Domain& domain) {
  const auto floor_div = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  if (divisor <= 0) return std::nullopt;
  Split parts;
  parts.quotient.constant = floor_div(form.constant, divisor);
  parts.remainder.constant = form.constant - parts.quotient.constant * divisor;
  for (std::size_t d = 0; d < form.coef.size(); ++d) {
    // A loop of one iteration adds nothing.
    if (d < domain.sizes.size() && domain.sizes[d] == 1) continue;
    parts.quotient.coef[d] = floor_div(form.coef[d], divisor);
    parts.remainder.coef[d] = form.coef[d] - parts.quotient.coef[d] * divisor;
  }
  if (range(parts.remainder, domain).high >= divisor) return std::nullopt;
  return parts;
}

Index Index::of(std::int64_t constant) {
  Affine form;
  form.constant = constant;
  return form;
}

Index Index::operator+(std::int64_t constant) const {
  Index sum = *this;
  sum.affine.constant += constant;
  return sum;
}

Index Index::operator*(std::int64_t factor) const {
  Index product(affine * factor);
  if (offset.valid() && factor != 0) product.offset = factor == 1 ? offset : offset * factor;
  return product;
}

Index Index::operator+(const Index& other) const {
  Index sum(affine + other.affine);
  if (offset.valid() && other.offset.valid())
    sum.offset = offset + other.offset;
  else
    sum.offset = offset.valid() ? offset : other.offset;
  return sum;
}

Indices loop_indices(int rank, int first) {
  Indices at;
  for (int k = 0; k < rank; ++k) at.emplace_back(Affine::loop(first + k));
  return at;
}

Index flatten(const Indices& at, std::span<const std::int64_t> strides) {
  Index flat;
  for (std::size_t k = 0; k < at.size(); ++k) flat = flat + at[k] * strides[k];
  return flat;
}

Affine normalised(Affine form, const Domain& domain) {
  for (std::size_t d = 0; d < domain.sizes.size(); ++d)
    if (domain.sizes[d] == 1) form.coef[d] = 0;
  return form;
}

Affine element_number(const Shape& shape) {
  return normalised(flatten(loop_indices(shape.rank()), shape.strides()).affine, {shape.vec()});
}

std::optional<Shape> common_axes(const Shape& a, const Shape& b) {
  if (a == b) return a;
  if (a.numel() != b.numel() || a.numel() == 0) return std::nullopt;
  std::vector<std::int64_t> sizes;  // innermost first
  std::int64_t left_a = 1, left_b = 1;
  for (int i = a.rank(), j = b.rank();;) {
    while (left_a == 1 && i > 0) left_a = a[--i];
    while (left_b == 1 && j > 0) left_b = b[--j];
    const std::int64_t size = std::min(left_a, left_b);
    if (size == 1) break;  // both have come to their ends
    if (left_a % size != 0 || left_b % size != 0) return std::nullopt;
    sizes.push_back(size);
    left_a /= size;
    left_b /= size;
  }
  if (std::ssize(sizes) > Shape::kMaxRank) return std::nullopt;
  return Shape(std::vector<std::int64_t>(sizes.rbegin(), sizes.rend()));
}

Indices indices_in(const Shape& shape, const Domain& domain) {
  if (shape.vec() == domain.sizes) return loop_indices(shape.rank());
  Affine number = element_number(Shape(domain.sizes));
  Indices at(static_cast<std::size_t>(shape.rank()));
  for (std::size_t k = at.size(); k-- > 0;) {
    const std::optional<Split> parts = split(number, shape[static_cast<int>(k)], domain);
    if (!parts) throw InternalError("schedule: loops that do not follow the axes of a tensor");
    at[k] = parts->remainder;
    number = parts->quotient;
  }
  return at;
}

}  // namespace pantala::schedule
