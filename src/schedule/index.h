// Indices as the scheduler sees them: affine forms over the loops of a kernel. Movement ops
// (reshape, permute, slice, ...) are maps from the indices of their result to those of their input;
// composing them is arithmetic on these forms, so that a load reads through any chain of them.
// Where a map is not affine (a reshape that cuts across sizes, an index that is read from memory),
// the index is an i64 value of the kernel instead.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "kir/builder.h"
#include "pantala/shape.h"

namespace pantala::schedule {

// The loops of a kernel: those over a result's axes, then those over reduced ones.
constexpr int kMaxLoops = 2 * Shape::kMaxRank;

// One loop of a Domain.
struct LoopTag;
using LoopId = Id<LoopTag>;

struct Domain {
  std::vector<std::int64_t> sizes;
  int rank() const { return static_cast<int>(sizes.size()); }
  bool empty() const;  // some loop has no iteration
};

// constant + sum of coef[d] * (index of loop d).
struct Affine {
  std::int64_t constant = 0;
  std::array<std::int64_t, kMaxLoops> coef{};

  static Affine loop(int dim);
  bool is_constant() const;
  Affine operator+(const Affine& other) const;
  Affine operator*(std::int64_t factor) const;
  friend bool operator==(const Affine&, const Affine&) = default;
};

struct Interval {
  std::int64_t low = 0, high = 0;  // both inclusive
};
// All values that the form takes; of an empty domain {0, -1}.
Interval range(const Affine& form, const Domain& domain);

// form = quotient * divisor + remainder with 0 <= remainder < divisor everywhere; nothing where no
// affine forms do that.
struct Split {
  Affine quotient, remainder;
};
std::optional<Split> split(const Affine& form, std::int64_t divisor, const Domain& domain);

// An index along one axis of a tensor: the affine form plus, where there is one, a value of the
// kernel (an i64, scalar or one per lane).
struct Index {
  Affine affine;
  kir::Var offset;
  bool is_affine() const { return !offset.valid(); }

  Index() = default;
  Index(const Affine& form) : affine(form) {}
  explicit Index(kir::Var value) : offset(value) {}
  static Index of(std::int64_t constant);

  Index operator+(std::int64_t constant) const;
  Index operator*(std::int64_t factor) const;
  Index operator+(const Index& other) const;
  friend bool operator==(const Index& a, const Index& b) {
    return a.affine == b.affine && a.offset.value() == b.offset.value();
  }
};
using Indices = std::vector<Index>;

// The indices 0, 1, ... of a tensor whose axes are the loops from `first` on.
Indices loop_indices(int rank, int first = 0);

// Where an element lies: sum of at[k] * strides[k].
Index flatten(const Indices& at, std::span<const std::int64_t> strides);

// The form without loops of one iteration, which stay at 0 whoever counts them: two forms that mean
// the same elements are then equal.
Affine normalised(Affine form, const Domain& domain);
// The row-major number of the element at the loops of a tensor's axes, normalised.
Affine element_number(const Shape& shape);

// The axes of two shapes with the same elements in the same order, cut wherever an axis of one of
// them begins; nothing where an axis of one cuts across one of the other.
std::optional<Shape> common_axes(const Shape& a, const Shape& b);
// In a tensor of this shape, the element whose row-major number is that of the loops; their sizes
// are those of common_axes() with this shape.
Indices indices_in(const Shape& shape, const Domain& domain);

}  // namespace pantala::schedule
