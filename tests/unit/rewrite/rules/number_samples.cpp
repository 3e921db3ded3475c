#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::number_parts {

// --- constants

Make data(const std::vector<double>& values) {
  return over({2, 2}, [=](Graph& g, const Tensor& x) {
    return x / g.constant(Literal::floats({2, 2}, values));
  });
}
Make whole_data(std::int64_t value, DType dtype) {
  return over(
      {2},
      [=](Graph& g, const Tensor& x) {
        return x + g.constant(Literal::ints({2}, {value, value}, dtype));
      },
      dtype);
}

// Of a number where it fits, of x where it is refused.
Sample moved(const char* rule, bool refused, const std::function<Tensor(const Tensor&)>& move,
             DType dtype = f32) {
  const auto make = of([=](Graph& g, Random& r) {
    const Shape shape{some_size(r), some_size(r) + 1};
    const Tensor x = g.input("x", shape, dtype);
    const Tensor moved = move(refused ? x : g.constant(2, shape, dtype));
    return moved * beside(g, moved);
  });
  return {rule, make, refused ? "x is a number" : ""};
}

Samples constants() {
  const char *of_data = "number-of-data", *same = "all numbers are the same";
  Samples all = {{of_data, data({3, 3, 3, 3})},
                 {of_data, data({-0.0, -0.0, -0.0, -0.0})},
                 {of_data, data({0.1, 0.1, 0.1, 0.1})},
                 {of_data, whole_data(7, i32)},
                 {of_data, whole_data(1 - (std::int64_t{1} << 53), i64)},
                 {of_data, data({3, 3, 3, 4}), same},
                 {of_data, data({0, 0, -0.0, 0}), same},
                 {of_data, whole_data((std::int64_t{1} << 53) + 1, i64), same}};
  for (const bool refused : {false, true})
    for (const DType dtype : {f32, i64}) {
      all.push_back(moved(
          "number-of-broadcast", refused,
          [](const Tensor& x) { return broadcast_to(x, x.shape().insert(0, 3)); }, dtype));
      all.push_back(moved(
          "number-of-reshape", refused, [](const Tensor& x) { return reshape(x, {-1}); }, dtype));
      all.push_back(
          moved("number-of-permute", refused, [](const Tensor& x) { return transpose(x); }, dtype));
      all.push_back(moved(
          "number-of-slice", refused, [](const Tensor& x) { return slice_axis(x, 1, 1, x.dim(1)); },
          dtype));
    }
  return all;
}

// --- factors

Samples in_front() {
  Samples all;
  for (const DType dtype : {f32, i32}) {
    const auto of_x = [=](bool number, bool adds) {
      return of([=](Graph& g, Random& r) {
        const Shape shape = some_shape(r);
        const Tensor x = number ? g.constant(2, shape, dtype) : g.input("x", shape, dtype);
        const Tensor c = filled(g, 3, x);
        return adds ? c + x : c * x;
      });
    };
    all.push_back({"number-plus", of_x(false, true)});
    all.push_back({"number-plus", of_x(true, true), kWorth});
    all.push_back({"number-times", of_x(false, false)});
    all.push_back({"number-times", of_x(true, false), kWorth});
  }
  return all;
}

Make divided_by(double number, DType dtype = f32) {
  return of([=](Graph& g, Random& r) {
    const Tensor x = g.input("x", some_shape(r), dtype);
    return x / filled(g, number, x);
  });
}
Make scaled_by(double a, double c, DType dtype = f32) {
  return of([=](Graph& g, Random& r) {
    const Tensor x = g.input("x", some_shape(r), dtype);
    return x * filled(g, a, x) * filled(g, c, x);
  });
}
// x * k * 4 and x * 4 * k: one of the factors is no number.
Make scaled_once(bool first) {
  return over_some([=](Graph& g, const Tensor& x) {
    const Tensor k = beside(g, x), c = filled(g, 4, x);
    return first ? x * c * k : x * k * c;
  });
}

Samples factors() {
  const char *divide = "divide-by-number", *reciprocal = "the reciprocal is ordinary",
             *scale = "scale-of-scaled", *product = "the product is ordinary";
  Samples all = {
      {divide, divided_by(4), {}, kRounding},
      {divide, divided_by(-0.3), {}, kRounding},
      {divide, divided_by(0x1p-126), {}, kRounding},
      {divide, over_some([](Graph& g, const Tensor& x) { return x / beside(g, x); }),
       "c is a number"},
      {divide, divided_by(0x1p-140), reciprocal},
      {divide, divided_by(0x1p-17, f16), reciprocal},
      {divide, divided_by(0x1p-130, bf16), reciprocal},
      {scale, scaled_by(2, 4)},
      {scale, scaled_by(1e-30, 1e30), {}, kRounding},
      {scale, scaled_by(3, -7, i32)},
      {scale, scaled_once(false), "a is a number"},
      {scale, scaled_once(true), "c is a number"},
      {scale, scaled_by(0x1p10, 0x1p10, f16), product},
      {scale, scaled_by(0x1p70, 0x1p70), product},
      {scale, scaled_by(1 << 20, 1 << 20, i32), product},
  };
  for (const bool refused : {false, true}) {
    const std::string refused_by = refused ? "c is a number" : "";
    const auto scaled = [=](const std::function<Tensor(const Tensor&)>& move) {
      return of([=](Graph& g, Random& r) {
        const Tensor x = g.input("x", {any_size(r) + 1, 2 * any_size(r)});
        return move(x * (refused ? beside(g, x) : filled(g, 3, x)));
      });
    };
    all.push_back({"reshape-of-scaled",
                   scaled([](const Tensor& x) { return reshape(x, {2, x.dim(0), x.dim(1) / 2}); }),
                   refused_by});
    all.push_back(
        {"permute-of-scaled", scaled([](const Tensor& x) { return transpose(x); }), refused_by});
  }
  return all;
}

// --- powers

Samples powers() {
  const auto positive = [](const Tensor& x) { return abs(x) + 1; };
  const auto of_power = [=](double exponent) {
    return over_some([=](Graph&, const Tensor& x) { return pow_scalar(positive(x), exponent); });
  };
  const auto squared = [](DType dtype) {
    return of([=](Graph& g, Random& r) {
      const Tensor x = g.input("x", some_shape(r), dtype);
      return x * x;
    });
  };
  const char* other = "this power";
  return {{"square", squared(f32)},
          {"square", squared(i64), "of floats"},
          {"power-two", of_power(2), {}, kRounding},
          {"power-two", of_power(3), other},
          {"power-three", of_power(3), {}, kRounding},
          {"power-three", of_power(2), other},
          {"power-half", of_power(0.5), {}, kRounding},
          {"power-half", of_power(2), other},
          {"power-minus-half", of_power(-0.5), {}, kRounding},
          {"power-minus-half", of_power(2), other},
          {"one-over", over_some([](Graph& g, const Tensor& x) { return filled(g, 1, x) / x; })},
          {"one-over-root",
           over_some([=](Graph&, const Tensor& x) { return reciprocal(sqrt(positive(x))); }),
           {},
           kRounding},
          {"divide-by-root",
           of([=](Graph& g, Random& r) {
             const Tensor x = g.input("x", {some_size(r), 1});
             const Shape all{x.dim(0), any_size(r)};
             return g.input("k", all) / repeated(sqrt(positive(x)), all);
           }),
           {},
           kRounding}};
}

}  // namespace pantala::rewrite::samples::number_parts

namespace pantala::rewrite::samples {

Samples number_samples() {
  Samples all;
  for (const auto part : {number_parts::constants, number_parts::in_front, number_parts::factors,
                          number_parts::powers})
    for (Sample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
