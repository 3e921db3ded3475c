// Shape: up to 8 sizes, fixed storage, never negative, and a product of at most 2^60 (checked on construction,
// so that no later computation with sizes can overflow). Type: an element type and a shape.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "pantala/dtype.h"

namespace pantala {

class Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  Shape(const std::vector<std::int64_t>& sizes) : Shape(std::span(sizes)) {}
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return sizes_[axis]; }
  std::int64_t back() const { return sizes_[rank_ - 1]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::int64_t numel() const;
  std::vector<std::int64_t> vec() const { return {begin(), end()}; }
  // Row-major strides in elements.
  std::vector<std::int64_t> strides() const;

  Shape with(int axis, std::int64_t size) const;    // one size replaced
  Shape without(int axis) const;                    // one axis removed
  Shape insert(int axis, std::int64_t size) const;  // one axis added before `axis`
  std::string str() const;                          // [2,3]

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// The right-aligned common shape of two shapes, as NumPy has it; false if there is none.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape& result);

struct Type {
  DType dtype = f32;
  Shape shape;
  std::string str() const;  // f32[2,3]
  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace pantala
