#include "schedule/cpu/conv/winograd_transform.h"

#include "pantala/error.h"

namespace pantala::schedule::cpu {

using kir::Builder;
using kir::Var;
using Vars = WinogradTransform::Vars;

namespace {

// A sum of values times numbers, in order; the first one is rounded by itself.
class Sum {
 public:
  explicit Sum(Builder& b) : b_(b) {}
  Sum& add(double factor, Var value) {
    if (!sum_.valid())
      sum_ = factor == 1 ? value : like(value, factor) * value;
    else
      sum_ = factor == 1 ? sum_ + value : b_.fma(like(value, factor), value, sum_);
    return *this;
  }
  Var value() const { return sum_; }

 private:
  Builder& b_;
  Var sum_;
};

}  // namespace

WinogradTransform::WinogradTransform(int side) : side_(side) {
  if (side != 2 && side != 4) throw InternalError("a Winograd tile has 2 or 4 results a side");
  const std::vector<double> points = side == 2 ? std::vector{1.0} : std::vector{0.625, 1.5};
  for (const double p : points) {
    double others = 1, scale = 2 * p * p;
    for (const double q : points)
      if (q != p) others *= -q * q, scale *= p * p - q * q;
    pairs_.push_back({p, p * p, others, scale});
    product_ *= -p * p;
    sum_ -= p * p;
  }
}

Vars WinogradTransform::window(Builder& b, const Vars& x) const {
  Vars out(x.size());
  const std::size_t last = x.size() - 1;
  const bool two = pairs_.size() == 2;
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
    Sum sum(b);
    if (two) sum.add(1, x[from + 4]).add(sum_, x[from + 2]);
    if (!two) sum.add(1, x[from + 2]);
    out[from == 0 ? 0 : last] = sum.add(product_, x[from]).value();
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Sum even(b), odd(b);
    if (two) even.add(1, x[4]).add(pairs_[i].others, x[2]);
    if (two) odd.add(1, x[3]).add(pairs_[i].others, x[1]);
    if (!two) even.add(1, x[2]), odd.add(1, x[1]);
    const Var p = like(x[0], pairs_[i].p), minus = like(x[0], -pairs_[i].p);
    out[1 + 2 * i] = b.fma(p, odd.value(), even.value());
    out[2 + 2 * i] = b.fma(minus, odd.value(), even.value());
  }
  return out;
}

Vars WinogradTransform::kernel(Builder& b, const Vars& x) const {
  Vars out{like(x[0], 1 / product_) * x[0]};
  for (const Pair& pair : pairs_) {
    const Var even = Sum(b).add(1 / pair.scale, x[0]).add(pair.square / pair.scale, x[2]).value();
    out.push_back(b.fma(like(x[1], pair.p / pair.scale), x[1], even));
    out.push_back(b.fma(like(x[1], -pair.p / pair.scale), x[1], even));
  }
  out.push_back(x[2]);
  return out;
}

Vars WinogradTransform::result(Builder& b, const Vars& x) const {
  Vars out;
  for (int k = 0; k < side_; ++k) {
    Sum sum(b);
    if (k == 0) sum.add(1, x[0]);
    if (k == side_ - 1) sum.add(1, x.back());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      double power = 1;
      for (int e = 0; e < k; ++e) power *= pairs_[i].p;
      const Var plus = x[1 + 2 * i], minus = x[2 + 2 * i];
      sum.add(power, k % 2 == 0 ? plus + minus : plus - minus);
    }
    out.push_back(sum.value());
  }
  return out;
}

Vars WinogradTransform::result_gradient(Builder& b, const Vars& x) const {
  Vars out{x[0]};
  for (const Pair& pair : pairs_) {
    Sum even(b), odd(b);
    double power = 1;
    for (std::size_t k = 0; k < x.size(); ++k, power *= pair.p)
      (k % 2 == 0 ? even : odd).add(power, x[k]);
    out.push_back(even.value() + odd.value());
    out.push_back(even.value() - odd.value());
  }
  out.push_back(x.back());
  return out;
}

Vars WinogradTransform::kernel_gradient(Builder& b, const Vars& x) const {
  Vars out;
  for (int k = 0; k < 3; ++k) {
    Sum sum(b);
    if (k == 0) sum.add(1 / product_, x[0]);
    if (k == 2) sum.add(1, x.back());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      double power = 1 / pairs_[i].scale;
      for (int e = 0; e < k; ++e) power *= pairs_[i].p;
      const Var plus = x[1 + 2 * i], minus = x[2 + 2 * i];
      sum.add(power, k % 2 == 0 ? plus + minus : plus - minus);
    }
    out.push_back(sum.value());
  }
  return out;
}

void transform_square(const std::function<Vars(const Vars&)>& one_axis, int size,
                      const std::function<Var(int, int)>& at,
                      const std::function<void(int, const Vars&)>& row) {
  std::vector<Vars> columns;
  for (int j = 0; j < size; ++j) {
    Vars column;
    for (int i = 0; i < size; ++i) column.push_back(at(i, j));
    columns.push_back(one_axis(column));
  }
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    Vars line;
    for (const Vars& column : columns) line.push_back(column[i]);
    row(static_cast<int>(i), one_axis(line));
  }
}

}  // namespace pantala::schedule::cpu
