#include "ops/arithmetic.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::algebra_parts {

using Pair = Tensor (*)(const Tensor&, const Tensor&);

// Of x and a number, in floats and in whole numbers.
void add_of_number(Samples& all, const char* rule, double value, Pair apply, bool of_integers) {
  const auto of_dtype = [=](DType dtype) {
    return of([=](Graph& g, Random& r) {
      const Tensor x = g.input("x", some_shape(r), dtype);
      return apply(x, filled(g, value, x));
    });
  };
  all.push_back({rule, of_dtype(f32)});
  if (of_integers)
    for (const DType dtype : {i32, i64, u8}) all.push_back({rule, of_dtype(dtype)});
}

Samples identities() {
  const Pair add = [](const Tensor& x, const Tensor& k) { return x + k; },
             subtract = [](const Tensor& x, const Tensor& k) { return x - k; },
             multiply = [](const Tensor& x, const Tensor& k) { return x * k; },
             times = [](const Tensor& x, const Tensor& k) { return k * x; },
             divide = [](const Tensor& x, const Tensor& k) { return x / k; };
  Samples all;
  add_of_number(all, "add-negative-zero", -0.0, add, false);
  add_of_number(all, "add-zero", 0, add, true);
  add_of_number(all, "subtract-zero", 0, subtract, true);
  add_of_number(all, "multiply-by-one", 1, multiply, true);
  add_of_number(all, "one-times", 1, times, true);
  add_of_number(all, "divide-by-one", 1, divide, false);
  for (const DType dtype : {f32, i32, u8})
    all.push_back({"negate-twice", of([=](Graph& g, Random& r) {
                     return -(-g.input("x", some_shape(r), dtype));
                   })});
  return all;
}

// By a scalar that the host knows, or by an input.
Make divided(DType dtype, double number, bool by_host) {
  return of([=](Graph& g, Random& r) {
    Shape shape = some_shape(r);
    if (shape.rank() == 0) shape = {3};  // without axes nothing is broadcast
    const Tensor x = g.input("x", shape, dtype);
    const Tensor s =
        by_host ? cast(g.scalar("s", number), dtype) : cast(square(g.input("s", {})) + 2, dtype);
    return x / broadcast_to(s, x.shape());
  });
}

Samples divisions() {
  const char *rule = "divide-by-host-number",
             *range = "reciprocals of the type are not out of range";
  return {{rule, divided(f32, 4, true), {}, kRounding},
          {rule, divided(f64, 3, true), {}, kRounding},
          {rule, divided(f32, 4, false), kWorth, kRounding},
          {rule, divided(f16, 1e-6, true), range},
          {rule, divided(bf16, 0x1p-130, true), range}};
}

Samples choices() {
  Samples all;
  for (const DType dtype : {f32, i32}) {
    const auto chosen = [=](const std::function<Tensor(Graph&, const Tensor&)>& a) {
      return of([=](Graph& g, Random& r) {
        const Tensor x = g.input("x", some_shape(r), dtype);
        return where(g.input("c", x.shape(), boolean), a(g, x), x);
      });
    };
    all.push_back({"choice-of-difference",
                   chosen([](Graph& g, const Tensor& x) { return x - filled(g, 3, x); })});
    all.push_back({"choice-of-difference",
                   chosen([](Graph& g, const Tensor& x) { return x - beside(g, x); })});
    all.push_back({"choice-of-same", chosen([](Graph&, const Tensor& x) { return x; })});
  }
  return all;
}

}  // namespace pantala::rewrite::samples::algebra_parts

namespace pantala::rewrite::samples {

Samples algebra_samples() {
  Samples all;
  for (const auto part :
       {algebra_parts::identities, algebra_parts::divisions, algebra_parts::choices})
    for (Sample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
