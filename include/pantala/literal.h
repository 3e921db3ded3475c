// Literal: a dense tensor on the host, the interpreter's value and the payload of constants.
// Floats of any dtype are held in double, integers and bools in 64 bits (wrapped to their type).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pantala/shape.h"

namespace pantala {

class Literal {
 public:
  Literal() : Literal(Type{}) {}
  explicit Literal(Type type);  // zeros
  static Literal floats(Shape shape, std::vector<double> values, DType dtype = f32);
  static Literal ints(Shape shape, std::vector<std::int64_t> values, DType dtype = i64);
  static Literal scalar(double value, DType dtype = f64);
  static Literal integer(std::int64_t value, DType dtype = i64);

  // A temporary gives copies, not references to what is about to vanish.
  const Type& type() const& { return type_; }
  Type type() const&& { return type_; }
  const Shape& shape() const& { return type_.shape; }
  Shape shape() const&& { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  bool is_float() const { return pantala::is_float(type_.dtype); }
  std::int64_t numel() const { return type_.shape.numel(); }

  // The elements: f() of floats, i() of integers and bools; TypeError for the other kind. A
  // temporary gives the elements themselves, not a view of what is about to vanish.
  std::span<double> f() &;
  std::span<const double> f() const&;
  std::vector<double> f() &&;
  std::vector<double> f() const&& = delete;
  std::span<std::int64_t> i() &;
  std::span<const std::int64_t> i() const&;
  std::vector<std::int64_t> i() &&;
  std::vector<std::int64_t> i() const&& = delete;
  // Any element as a double, whatever the dtype; ValueError outside of [0, numel()).
  double at(std::int64_t index) const;
  std::vector<double> to_doubles() const;

  // The same elements under another shape with as many elements; TypeError for another number.
  Literal reshaped(Shape shape) const;
  // Equal types and equal bits.
  friend bool operator==(const Literal& a, const Literal& b);
  std::uint64_t hash() const;

 private:
  void check_kind(bool floats) const;

  Type type_;
  std::vector<double> floats_;
  std::vector<std::int64_t> ints_;
};

}  // namespace pantala
