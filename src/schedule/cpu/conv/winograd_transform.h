// The transforms of Winograd's convolutions F(m x m, 3 x 3), as code over vectors of channels. A
// tile of m x m results of a convolution with a kernel of 3 x 3 is the transform back of the
// products, point by point, of the transforms of (m + 2) x (m + 2) elements and of the kernel.
//
// The points of an axis are 0, +-p for the numbers p below, and infinity. For m = 4 these are not
// the usual small integers: 5/8 and 3/2 make half the error of 1 and 2, are exact with all of their
// powers that occur, and cost as many instructions.
//
// The bits are those of the instructions below; every transform is applied along the height first,
// then along the width.
#pragma once

#include <functional>
#include <vector>

#include "kir/builder.h"

namespace pantala::schedule::cpu {

class WinogradTransform {
 public:
  using Vars = std::vector<kir::Var>;

  explicit WinogradTransform(int side);  // m: 2 or 4
  int side() const { return side_; }
  int points() const { return side_ + 2; }  // of an axis

  // Along one axis. What a kernel slides over: points() -> points().
  Vars window(kir::Builder& b, const Vars& x) const;
  // A kernel: 3 -> points().
  Vars kernel(kir::Builder& b, const Vars& x) const;
  // Sums of products to results: points() -> side().
  Vars result(kir::Builder& b, const Vars& x) const;
  // For the gradient of the kernel, the transposes of the last two: a result's gradient, side() ->
  // points(), and sums of products, points() -> 3.
  Vars result_gradient(kir::Builder& b, const Vars& x) const;
  Vars kernel_gradient(kir::Builder& b, const Vars& x) const;

 private:
  struct Pair {
    double p;       // the points are p and -p
    double square;  // of p
    double others;  // the constant term of the product of x^2 - q^2 over the other pairs
    double scale;   // what the kernel is divided by
  };
  int side_;
  std::vector<Pair> pairs_;
  double sum_ = 0, product_ = 1;  // of x^2 - p^2 over all pairs: the other coefficients
};

// A transform of one axis applied to both of a square of `size` x `size` values, which are asked
// for column by column; `row` gets every row of what comes out as soon as it is there.
void transform_square(
    const std::function<WinogradTransform::Vars(const WinogradTransform::Vars&)>& one_axis,
    int size, const std::function<kir::Var(int row, int column)>& at,
    const std::function<void(int, const WinogradTransform::Vars&)>& row);

}  // namespace pantala::schedule::cpu
