#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::batch_norm_parts {

constexpr double kEps = 0.5;

// A batch whose axes can be mistaken for each other.
const Shape kAlike{3, 4, 4};
Shape some_batch(Random& r) {
  Shape shape{r.between(2, 4), any_size(r)};
  for (std::int64_t k = r.between(0, 2); k > 0; --k)
    shape = shape.insert(shape.rank(), some_size(r));
  return shape;
}
// The shape of a number per channel, beside another one.
Shape per_channel(const Shape& all) {
  Shape shape{all[1]};
  for (int k = 2; k < all.rank(); ++k) shape = shape.insert(k - 1, 1);
  return shape;
}
IntList all_but_channels(const Shape& shape) {
  IntList axes{0};
  for (int k = 2; k < shape.rank(); ++k) axes.push_back(k);
  return axes;
}

// --- of a batch

struct Mean {
  IntList axes = {0, 2};
  bool keeps = true;
};
Tensor taken(const Tensor& x, const Mean& n) {
  return repeated(mean(x, n.axes, n.keeps), x.shape());
}
Tensor normalised(const Tensor& x, const Mean& centre, const Mean& variance,
                  const std::function<Tensor(const Tensor&)>& plus_eps) {
  const Tensor centred = x - taken(x, centre);
  return centred *
         repeated(rsqrt(plus_eps(mean(square(centred), variance.axes, variance.keeps))), x.shape());
}
Tensor plus(const Tensor& x) { return x + kEps; }
Make of_alike(const Mean& centre, const Mean& variance) {
  return over(kAlike,
              [=](Graph&, const Tensor& x) { return normalised(x, centre, variance, plus); });
}
Make of_shape(const Shape& shape, const IntList& axes) {
  return over(shape, [=](Graph&, const Tensor& x) { return normalised(x, {axes}, {axes}, plus); });
}

Samples norms() {
  const char* rule = "batch-norm";
  const IntList others{0, 1};
  return {{rule, of([](Graph& g, Random& r) {
             const Tensor x = g.input("x", some_batch(r));
             const Mean n{all_but_channels(x.shape())};
             return normalised(x, n, n, plus);
           })},
          {rule, of_shape({5}, {0}), "there are channels"},
          {rule, of_shape({1, 3, 1}, {0, 2}), "there are two items"},
          {rule, of_alike({others}, {}), "centre is per channel"},
          {rule, of_alike({{0, 2}, false}, {}), "centre keeps the axes"},
          {rule, of_alike({}, {others}), "variance is per channel"},
          {rule, of_alike({}, {{0, 2}, false}), "variance keeps the axes"},
          {rule,
           over(kAlike,
                [](Graph& g, const Tensor& x) {
                  return normalised(x, {}, {}, [&](const Tensor& variance) {
                    return variance + square(beside(g, variance, "e"));
                  });
                }),
           "eps is a number"},
          {rule,
           over(kAlike,
                [](Graph&, const Tensor& x) {
                  return normalised(x, {}, {},
                                    [](const Tensor& variance) { return variance + -0.5; });
                }),
           "eps is finite and not negative"}};
}

// --- weights and biases behind them

// What a norm was made with, and what stands behind it.
struct Behind {
  double weight = 1, bias = 0;  // NaN: inputs
  bool alike = false;           // behind it: a number per element of the last axis
};
Tensor number_or_input(Graph& g, double value, const char* name, std::int64_t size) {
  return std::isnan(value) ? g.input(name, {size}) : g.constant(value, {size});
}
Make behind(bool in_training, const Behind& n, bool adds) {
  return of([=](Graph& g, Random& r) {
    const bool whole = n.alike || n.weight != 1 || n.bias != 0;
    const Tensor x = g.input("x", whole ? kAlike : some_batch(r));
    const std::int64_t channels = x.dim(1);
    const Tensor weight = number_or_input(g, adds ? NAN : n.weight, "w", channels),
                 bias = number_or_input(g, n.bias, "b", channels);
    const Tensor y = in_training ? batch_norm_train(x, weight, bias, g.constant(0, {channels}),
                                                    g.constant(1, {channels}), {.eps = kEps})
                                       .y
                                 : batch_norm_eval(x, weight, bias, g.input("m", {channels}),
                                                   square(g.input("v", {channels})), {.eps = kEps});
    const Tensor k =
        repeated(g.input("k", n.alike ? Shape{channels} : per_channel(x.shape())), x.shape());
    return adds ? y + k : y * k;
  });
}

Samples weights() {
  Samples all;
  for (const bool in_training : {true, false}) {
    const std::string rule = in_training ? "batch-norm" : "evaluated-batch-norm";
    const auto add = [&](bool adds, const Behind& n, const char* refused_by) {
      all.push_back(
          {rule + (adds ? "-bias" : "-weight"), behind(in_training, n, adds), refused_by});
    };
    for (const bool adds : {false, true}) {
      add(adds, {}, "");
      add(adds, {.bias = 3}, "zero is 0");
      add(adds, {.bias = NAN}, "zero is 0");
      add(adds, {.alike = true},
          adds ? "b has a number per channel" : "w has a number per channel");
    }
    add(false, {.weight = 2}, "one is 1");
    add(false, {.weight = NAN}, "one is 1");
  }
  return all;
}

// --- with other statistics

struct Statistics {
  bool mean_alike = false, variance_alike = false;
  double eps = kEps;  // NaN: an input
};
Make evaluated(const Statistics& n) {
  return of([=](Graph& g, Random& r) {
    const bool whole = n.mean_alike || n.variance_alike;
    const Tensor x = g.input("x", whole ? kAlike : some_batch(r));
    const auto numbers = [&](const char* name, bool alike) {
      return g.input(name, alike ? Shape{x.dim(1)} : per_channel(x.shape()));
    };
    const Tensor v = square(numbers("v", n.variance_alike)) + 1;
    const Tensor eps = std::isnan(n.eps) ? square(beside(g, v, "e")) : filled(g, n.eps, v);
    return (x - repeated(numbers("m", n.mean_alike), x.shape())) *
           repeated(rsqrt(v + eps), x.shape());
  });
}

Samples evaluations() {
  const char* rule = "evaluated-batch-norm";
  return {{rule, evaluated({})},
          {rule, evaluated({.mean_alike = true}), "m has a number per channel"},
          {rule, evaluated({.variance_alike = true}), "v has a number per channel"},
          {rule, evaluated({.eps = NAN}), "eps is a number"},
          {rule, evaluated({.eps = -0.5}), "eps is finite and not negative"}};
}

}  // namespace pantala::rewrite::samples::batch_norm_parts

namespace pantala::rewrite::samples {

Samples batch_norm_samples() {
  Samples all;
  for (const auto part :
       {batch_norm_parts::norms, batch_norm_parts::weights, batch_norm_parts::evaluations})
    for (Sample& sample : part()) {
      sample.tolerance = kRounding;
      all.push_back(std::move(sample));
    }
  return all;
}

}  // namespace pantala::rewrite::samples
