#include <numbers>
#include <utility>

#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::activation_parts {

using Function = std::function<Tensor(const Tensor&)>;

// x * 0.5 * y, with the half wherever it may stand: what a rule's name ends with, and the form.
using Form = Tensor (*)(const Tensor& x, const Tensor& y);
const std::vector<std::pair<std::string, Form>>& forms() {
  static const std::vector<std::pair<std::string, Form>> all = {
      {"", [](const Tensor& x, const Tensor& y) { return x * y * 0.5; }},
      {"-reversed", [](const Tensor& x, const Tensor& y) { return y * x * 0.5; }},
      {"-of-half", [](const Tensor& x, const Tensor& y) { return x * 0.5 * y; }},
      {"-of-half-reversed", [](const Tensor& x, const Tensor& y) { return y * (x * 0.5); }},
      {"-half-inside", [](const Tensor& x, const Tensor& y) { return x * (y * 0.5); }},
      {"-half-inside-reversed", [](const Tensor& x, const Tensor& y) { return y * 0.5 * x; }},
  };
  return all;
}

void add_gelus(Samples& all, const std::string& rule, const Function& y, const char* refused_by,
               DType dtype = f32, double tolerance = kRounding) {
  for (const auto& [suffix, form] : forms())
    all.push_back({rule + suffix, of([=, form = form](Graph& g, Random& r) {
                     const Tensor x = g.input("x", some_shape(r), dtype);
                     return form(x, y(x));
                   }),
                   refused_by, tolerance});
}

Function by_erf(double c) {
  return [c](const Tensor& x) { return erf(x * c) + 1; };
}
Function by_tanh(double c, double k) {
  return [=](const Tensor& x) { return tanh((x + square(x) * x * k) * c) + 1; };
}

Samples gelus() {
  const double of_erf = 1 / std::numbers::sqrt2,
               of_tanh = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, of_cube = 0.044715;
  const auto single = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  const char *c = "c is the function's", *k = "k is the function's";
  // Of a number that was rounded to f32 the result is as near.
  constexpr double kRounded = 1e-6;
  Samples all;
  add_gelus(all, "gelu", by_erf(of_erf), "");
  add_gelus(all, "gelu", by_erf(of_erf), "", f64);
  add_gelus(all, "gelu", by_erf(single(of_erf)), "", f32, kRounded);
  add_gelus(all, "gelu", by_erf(0.7), c);
  add_gelus(all, "gelu", by_erf(single(of_erf)), c, f64);
  add_gelus(all, "gelu-tanh", by_tanh(of_tanh, of_cube), "");
  add_gelus(all, "gelu-tanh", by_tanh(single(of_tanh), single(of_cube)), "", f32, kRounded);
  add_gelus(all, "gelu-tanh", by_tanh(0.8, of_cube), c);
  add_gelus(all, "gelu-tanh", by_tanh(of_tanh, 0.045), k);
  return all;
}

Samples gates() {
  return {{"silu", over_some([](Graph&, const Tensor& x) { return x * sigmoid(x); })},
          {"silu-reversed", over_some([](Graph&, const Tensor& x) { return sigmoid(x) * x; })},
          {"swiglu", over_some([](Graph& g, const Tensor& x) { return silu(x) * beside(g, x); })},
          {"swiglu-reversed",
           over_some([](Graph& g, const Tensor& x) { return beside(g, x) * silu(x); })}};
}

}  // namespace pantala::rewrite::samples::activation_parts

namespace pantala::rewrite::samples {

Samples activation_samples() {
  Samples all = activation_parts::gates();
  for (Sample& sample : activation_parts::gelus()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
