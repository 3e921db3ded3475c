#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "ops/arithmetic.h"
#include "ops/face.h"
#include "ops/slicing.h"
#include "pantala/ops.h"
#include "rule_samples.h"

namespace pantala::rewrite {

namespace canonical_samples_parts {

using tests::Random;

constexpr double kRounding = 1e-12;
constexpr bool kRefused = true;

// A graph of one input x of a given shape.
using Body = std::function<Tensor(Graph&, const Tensor&)>;
std::function<Graph(Random&)> over(Shape shape, Body body, DType dtype = f32) {
  return [=](Random&) {
    Graph g;
    g.output("y", body(g, g.input("x", shape, dtype)));
    return g;
  };
}
std::function<Graph(Random&)> over_some(Body body) {
  return [body](Random& r) {
    Graph g;
    g.output("y", body(g, g.input("x", some_shape(r))));
    return g;
  };
}
Tensor filled(Graph& g, double value, const Tensor& like) {
  return g.constant(value, like.shape(), like.dtype());
}
Tensor beside(Graph& g, const Tensor& like, const char* name = "k") {
  return g.input(name, like.shape(), like.dtype());
}
Tensor power(const Tensor& x, double exponent) { return pow_scalar(x, exponent); }

std::vector<RuleSample> numbers() {
  const Tensor none;
  const auto data = [](std::vector<double> values) {
    return over({2, 2}, [values](Graph& g, const Tensor& x) {
      return x + g.constant(Literal::floats({2, 2}, values));
    });
  };
  const auto two = [](Graph& g, IntList shape) { return g.constant(2, Shape(shape)); };
  return {
      {"number-of-data", data({3, 3, 3, 3})},
      {"number-of-data", data({3, 3, 3, 4}), kRefused},
      {"number-of-broadcast",
       over({3, 4},
            [=](Graph& g, const Tensor& x) { return x * broadcast_to(two(g, {}), {3, 4}); })},
      {"number-of-broadcast",
       over({4}, [](Graph&, const Tensor& x) { return broadcast_to(x, {3, 4}); }), kRefused},
      {"number-of-reshape",
       over({3, 4}, [=](Graph& g, const Tensor& x) { return x * reshape(two(g, {12}), {3, 4}); })},
      {"number-of-reshape", over({4}, [](Graph&, const Tensor& x) { return reshape(x, {2, 2}); }),
       kRefused},
      {"number-of-permute",
       over({3, 4},
            [=](Graph& g, const Tensor& x) { return x * permute(two(g, {4, 3}), {1, 0}); })},
      {"number-of-permute", over({2, 3}, [](Graph&, const Tensor& x) { return transpose(x); }),
       kRefused},
      {"number-of-slice",
       over({2}, [=](Graph& g, const Tensor& x) { return x * slice_axis(two(g, {5}), 0, 1, 3); })},
      {"number-of-slice", over({5}, [](Graph&, const Tensor& x) { return slice_axis(x, 0, 1, 3); }),
       kRefused},
      {"number-plus", over_some([](Graph& g, const Tensor& x) { return filled(g, 3, x) + x; })},
      {"number-times", over_some([](Graph& g, const Tensor& x) { return filled(g, 3, x) * x; })},
      {"divide-by-number",
       over_some([](Graph& g, const Tensor& x) { return x / filled(g, 4, x); })},
      {"divide-by-number", over_some([](Graph& g, const Tensor& x) { return x / beside(g, x); }),
       kRefused},
      {"scale-of-scaled",
       over_some([](Graph& g, const Tensor& x) { return x * filled(g, 2, x) * filled(g, 4, x); })},
      {"scale-of-scaled",
       over_some([](Graph& g, const Tensor& x) { return x * beside(g, x) * filled(g, 4, x); }),
       kRefused},
      {"reshape-of-scaled",
       over({2, 6},
            [](Graph& g, const Tensor& x) { return reshape(x * filled(g, 3, x), {3, 4}); })},
      {"reshape-of-scaled",
       over({2, 6}, [](Graph& g, const Tensor& x) { return reshape(x * beside(g, x), {3, 4}); }),
       kRefused},
      {"permute-of-scaled",
       over({2, 6}, [](Graph& g, const Tensor& x) { return transpose(x * filled(g, 3, x)); })},
      {"permute-of-scaled",
       over({2, 6}, [](Graph& g, const Tensor& x) { return transpose(x * beside(g, x)); }),
       kRefused},
  };
}

std::vector<RuleSample> powers() {
  const auto positive = [](const Tensor& x) { return abs(x) + 1; };
  const auto of = [&](double exponent) {
    return over_some([=](Graph&, const Tensor& x) { return power(positive(x), exponent); });
  };
  const auto over_integers = [](Body body) { return over({3}, std::move(body), i64); };
  return {
      {"square", over_some([](Graph&, const Tensor& x) { return x * x; })},
      {"square", over_integers([](Graph&, const Tensor& x) { return x * x; }), kRefused},
      {"power-two", of(2)},
      {"power-two", of(3), kRefused},
      {"power-three", of(3)},
      {"power-three", of(2), kRefused},
      {"power-half", of(0.5), false, kRounding},
      {"power-half", of(2), kRefused},
      {"power-minus-half", of(-0.5), false, kRounding},
      {"power-minus-half", of(2), kRefused},
      {"one-over", over_some([](Graph& g, const Tensor& x) { return filled(g, 1, x) / x; })},
      {"one-over-root",
       over_some([=](Graph&, const Tensor& x) { return reciprocal(sqrt(positive(x))); }), false,
       kRounding},
      {"divide-by-root",
       over({4, 1},
            [=](Graph& g, const Tensor& x) {
              return g.input("k", {4, 3}) / broadcast_to(sqrt(positive(x)), {4, 3});
            }),
       false, kRounding},
  };
}

std::vector<RuleSample> reshapes() {
  return {
      {"reshape-to-same", over_some([](Graph&, const Tensor& x) {
         return ops::apply("reshape", {x}, {{"shape", x.shape().vec()}})[0];
       })},
      {"reshape-to-same", over({6}, [](Graph&, const Tensor& x) { return reshape(x, {2, 3}); }),
       kRefused},
      {"reshape-of-reshape",
       over({2, 6}, [](Graph&, const Tensor& x) { return reshape(reshape(x, {12}), {3, 4}); })},
      {"permute-to-same", over({2, 3},
                               [](Graph&, const Tensor& x) {
                                 return ops::apply("permute", {x}, {{"axes", ir::Ints{0, 1}}})[0];
                               })},
      {"permute-to-same", over({3, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); }),
       kRefused},
      {"permute-of-permute",
       over({2, 3, 4},
            [](Graph&, const Tensor& x) { return permute(permute(x, {1, 2, 0}), {0, 2, 1}); })},
      {"permute-of-ones",
       over({1, 5, 1, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 2, 0, 3}); })},
      {"permute-of-ones", over({2, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); }),
       kRefused},
      {"permute-of-merged-axes", over({2, 3, 4, 5},
                                      [](Graph&, const Tensor& x) {
                                        return reshape(permute(reshape(x, {6, 4, 5}), {0, 2, 1}),
                                                       {2, 3, 5, 4});
                                      })},
      {"permute-of-merged-axes", over({3, 1, 4, 2},
                                      [](Graph&, const Tensor& x) {
                                        return reshape(permute(reshape(x, {3, 8}), {1, 0}),
                                                       {1, 4, 2, 3});
                                      })},
      {"permute-of-merged-axes",
       over({4, 3},
            [](Graph&, const Tensor& x) {
              return reshape(permute(reshape(x, {2, 2, 3}), {1, 0, 2}), {4, 3});
            }),
       kRefused},
      {"reshape-of-permuted", over({4, 3, 10},
                                   [](Graph&, const Tensor& x) {
                                     return reshape(permute(x, {1, 0, 2}),
                                                    {1, 3, 2, 2, 1, 5, 2, 1});
                                   })},
      {"reshape-of-permuted",
       over({2, 3, 4},
            [](Graph&, const Tensor& x) { return reshape(permute(x, {2, 0, 1}), {4, 2, 3, 1}); })},
      {"reshape-of-permuted",
       over({4, 3, 6},
            [](Graph&, const Tensor& x) { return reshape(permute(x, {1, 0, 2}), {12, 6}); }),
       kRefused},
      {"broadcast-to-same", over_some([](Graph&, const Tensor& x) {
         return ops::apply("broadcast_to", {x}, {{"shape", x.shape().vec()}})[0];
       })},
      {"broadcast-to-same",
       over({3}, [](Graph&, const Tensor& x) { return broadcast_to(x, {2, 3}); }), kRefused},
      {"broadcast-of-broadcast", over({3, 1},
                                      [](Graph&, const Tensor& x) {
                                        return broadcast_to(broadcast_to(x, {3, 4}), {2, 3, 4});
                                      })},
  };
}

std::vector<RuleSample> cuts() {
  const auto joined = [](std::int64_t start, std::int64_t end, int more) {
    return over({2, 3}, [=](Graph& g, const Tensor& x) {
      std::vector<Tensor> parts = {x, g.input("k", {2, 4})};
      for (int k = 0; k < more; ++k) parts.push_back(g.input(fmt::format("l{}", k), {2, 2}));
      return slice(concat(parts, 1), {0, start}, {2, end}, {1, 2});
    });
  };
  const auto taken = [](bool known) {
    return over({3, 4}, [=](Graph& g, const Tensor& x) {
      return take(x, known ? g.constant(2, {}, i64) : g.input("i", {}, i64), 1);
    });
  };
  const auto cast_by = [](DType by) {
    return over_some([by](Graph&, const Tensor& x) { return cast(cast(x, by), f32); });
  };
  return {
      {"slice-of-everything", over({3, 4},
                                   [](Graph&, const Tensor& x) {
                                     return ops::apply(
                                         "slice", {x},
                                         {{"starts", ir::Ints{0, 0}}, {"ends", ir::Ints{3, 4}}})[0];
                                   })},
      {"slice-of-everything",
       over({3, 4}, [](Graph&, const Tensor& x) { return slice(x, {0, 0}, {3, 3}); }), kRefused},
      {"slice-of-slice", over({9, 11},
                              [](Graph&, const Tensor& x) {
                                return slice(slice(x, {1, 2}, {9, 11}, {2, 3}), {1, 0}, {4, 3},
                                             {1, 2});
                              })},
      {"slice-of-concatenated", joined(0, 3, 0)},
      {"slice-of-concatenated", joined(4, 7, 0)},
      {"slice-of-concatenated", joined(2, 5, 0), kRefused},
      {"slice-of-concatenated", joined(3, 6, 1)},
      {"slice-of-concatenated", joined(5, 9, 1), kRefused},
      {"slice-of-concatenated", joined(7, 9, 4)},
      {"slice-of-concatenated", joined(13, 15, 4)},
      {"slice-of-concatenated", joined(12, 14, 4), kRefused},
      {"concatenation-of-one", over({2, 3},
                                    [](Graph&, const Tensor& x) {
                                      return ops::apply("concat", {x},
                                                        {{"axis", std::int64_t{1}}})[0];
                                    })},
      {"take-of-number", taken(true)},
      {"take-of-number", taken(false), kRefused},
      {"cast-to-same", over_some([](Graph&, const Tensor& x) {
         return ops::apply("cast", {x}, {{"dtype", f32}})[0];
       })},
      {"cast-to-same", over_some([](Graph&, const Tensor& x) { return cast(x, f64); }), kRefused},
      {"cast-there-and-back", cast_by(f64)},
      {"cast-there-and-back", cast_by(boolean), kRefused},
  };
}

std::vector<RuleSample> products() {
  const auto permuted = [](Shape shape, IntList order, bool left) {
    return over(std::move(shape), [=](Graph& g, const Tensor& x) {
      const Tensor other = g.input("k", {5, 2}), turned = permute(x, order);
      const std::int64_t last = x.rank() - 1;
      return left
                 ? contract(turned, other,
                            {.batch_a = {}, .batch_b = {}, .contract_a = {last}, .contract_b = {0}})
                 : contract(
                       other, turned,
                       {.batch_a = {}, .batch_b = {}, .contract_a = {0}, .contract_b = {last}});
    });
  };
  const auto turned = [](bool batched) {
    return over({5, 3, 2, 4}, [=](Graph& g, const Tensor& x) {
      const Tensor y = permute(x, {2, 0, 1, 3});  // [2, 5, 3, 4]
      if (batched)
        return contract(y, g.input("k", {3, 4, 6}),
                        {.batch_a = {2}, .batch_b = {0}, .contract_a = {3}, .contract_b = {1}});
      return contract(y, g.input("k", {3, 6, 7}),
                      {.batch_a = {}, .batch_b = {}, .contract_a = {2}, .contract_b = {0}});
    });
  };
  const auto rows = [](IntList shape) {
    return over({4, 6}, [=](Graph& g, const Tensor& x) {
      const auto last = static_cast<std::int64_t>(shape.size()) - 1;
      return contract(reshape(x, shape), g.input("k", {5, shape.back()}),
                      {.batch_a = {}, .batch_b = {}, .contract_a = {last}, .contract_b = {1}});
    });
  };
  const auto biased = [](IntList shape, bool first) {
    return over({4, 6}, [=](Graph& g, const Tensor& x) {
      const Tensor y = reshape(x, shape), b = broadcast_to(g.input("k", {shape.back()}), y.shape());
      return first ? b + y : y + b;
    });
  };
  const auto biased_permuted = [](IntList order, bool first) {
    return over({2, 3, 3}, [=](Graph& g, const Tensor& x) {
      const Tensor y = permute(x, order), b = broadcast_to(g.input("k", {3}), y.shape());
      return first ? b + y : y + b;
    });
  };
  const auto scaled = [](bool number) {
    return over({2, 3, 4}, [=](Graph& g, const Tensor& x) {
      const Tensor y = matmul(x, g.input("k", {2, 4, 5}));
      return y * (number ? filled(g, 3, y) : beside(g, y, "c"));
    });
  };
  std::vector<RuleSample> all = {
      {"product-of-permuted-left", permuted({5, 3}, {1, 0}, true)},
      {"product-of-permuted-left", permuted({3, 4, 5}, {1, 0, 2}, true), kRefused},
      {"product-of-permuted-right", permuted({5, 3}, {1, 0}, false)},
      {"product-of-permuted-right", permuted({3, 4, 5}, {1, 0, 2}, false), kRefused},
      {"product-of-reshaped-rows", rows({2, 2, 6})},
      {"product-of-reshaped-rows", rows({8, 3}), kRefused},
      {"product-of-permuted-rows", permuted({3, 4, 5}, {1, 0, 2}, true)},
      {"product-of-permuted-rows", turned(false)},
      {"product-of-permuted-rows", turned(true), kRefused},
      {"scaled-product", scaled(true)},
      {"scaled-product", scaled(false), kRefused},
  };
  for (const bool first : {false, true}) {
    const char* name = first ? "bias-first-of-reshaped-rows" : "bias-of-reshaped-rows";
    all.push_back({name, biased({2, 2, 6}, first)});
    all.push_back({name, biased({8, 3}, first), kRefused});
    const char* permuted_name = first ? "bias-first-of-permuted-rows" : "bias-of-permuted-rows";
    all.push_back({permuted_name, biased_permuted({1, 0, 2}, first)});
    all.push_back({permuted_name, biased_permuted({0, 2, 1}, first), kRefused});
  }
  return all;
}

Tensor in_turn(const Tensor& a, const Tensor& b, bool reversed, bool adds = false) {
  const Tensor &x = reversed ? b : a, &y = reversed ? a : b;
  return adds ? x + y : x * y;
}

std::vector<RuleSample> norms() {
  std::vector<RuleSample> all;
  const auto add = [&](std::string rule, bool refused, Body body) {
    all.push_back({std::move(rule), over({4, 4}, std::move(body)), refused, kRounding});
  };
  constexpr double kEps = 0.5;
  for (const bool refused : {false, true}) {
    const std::int64_t axis = refused ? 0 : 1;  // of the mean
    const Shape channels = refused ? Shape{4, 1} : Shape{4};
    const auto spread = [=](Graph& g, const char* name) {
      return broadcast_to(g.input(name, channels), {4, 4});
    };
    for (const bool reversed : {false, true}) {
      const std::string end = reversed ? "-first" : "";
      add(reversed ? "rms-norm-reversed" : "rms-norm", refused, [=](Graph&, const Tensor& x) {
        return in_turn(x, broadcast_to(rsqrt(mean(square(x), {axis}, true) + kEps), x.shape()),
                       reversed);
      });
      add("rms-norm-weight" + end, refused, [=](Graph& g, const Tensor& x) {
        return in_turn(rms_norm(x, {}, {.eps = kEps}), spread(g, "w"), reversed);
      });
      add("layer-norm-weight" + end, refused, [=](Graph& g, const Tensor& x) {
        return in_turn(layer_norm(x, {}, {}, {.eps = kEps}), spread(g, "w"), reversed);
      });
      add("layer-norm-bias" + end, refused, [=](Graph& g, const Tensor& x) {
        return in_turn(layer_norm(x, g.input("w", {4}), {}, {.eps = kEps}), spread(g, "b"),
                       reversed, true);
      });
    }
    add("layer-norm", refused, [=](Graph&, const Tensor& x) {
      return rms_norm(x - broadcast_to(mean(x, {axis}, true), x.shape()), {}, {.eps = kEps});
    });
  }
  return all;
}

std::vector<RuleSample> group_norms() {
  constexpr double kEps = 0.5;
  std::vector<RuleSample> all;
  for (const bool refused : {false, true}) {
    const auto add = [&](const char* rule, Body body) {
      all.push_back({rule, over({2, 4, 4}, std::move(body)), refused, kRounding});
    };
    const Shape channels = refused ? Shape{4} : Shape{4, 1};
    const auto spread = [=](Graph& g, const char* name) {
      return broadcast_to(g.input(name, channels), {2, 4, 4});
    };
    add("group-norm", [=](Graph& g, const Tensor& x) {
      const Tensor weight = g.constant(refused ? 2 : 1, {2}), bias = g.constant(0, {2});
      return reshape(group_norm(reshape(x, {2, 2, 8}), 2, weight, bias, {.eps = kEps}), {2, 4, 4});
    });
    add("group-norm-weight", [=](Graph& g, const Tensor& x) {
      return group_norm(x, 2, {}, {}, {.eps = kEps}) * spread(g, "w");
    });
    add("group-norm-bias", [=](Graph& g, const Tensor& x) {
      return group_norm(x, 2, g.input("w", {4}), {}, {.eps = kEps}) + spread(g, "b");
    });
  }
  return all;
}

// Numbers per channel have another axis where they are refused.
std::vector<RuleSample> batch_norms() {
  constexpr double kEps = 0.5;
  std::vector<RuleSample> all;
  for (const bool refused : {false, true}) {
    const Shape shape{3, 4, 4};
    const auto add = [&](const char* rule, Body body) {
      all.push_back({rule, over(shape, std::move(body)), refused, kRounding});
    };
    const Shape channels = refused ? Shape{4} : Shape{4, 1};
    const auto spread = [=](Graph& g, const char* name) {
      return broadcast_to(g.input(name, channels), shape);
    };
    const auto number = [](Graph& g, double value) { return g.constant(value, {4}); };
    add("batch-norm", [=](Graph&, const Tensor& x) {
      const IntList over_items = refused ? IntList{0, 1} : IntList{0, 2};
      const Tensor centred = x - mean(x, over_items, true);
      return centred * rsqrt(mean(square(centred), over_items, true) + kEps);
    });
    add("batch-norm-weight", [=](Graph& g, const Tensor& x) {
      return batch_norm_train(x, number(g, 1), number(g, 0), number(g, 0), number(g, 1),
                              {.eps = kEps})
                 .y *
             spread(g, "w");
    });
    add("batch-norm-bias", [=](Graph& g, const Tensor& x) {
      return batch_norm_train(x, g.input("w", {4}), number(g, 0), number(g, 0), number(g, 1),
                              {.eps = kEps})
                 .y +
             spread(g, "b");
    });
    add("evaluated-batch-norm", [=](Graph& g, const Tensor& x) {
      return (x - spread(g, "m")) *
             broadcast_to(rsqrt(square(g.input("v", channels)) + kEps), shape);
    });
    const auto evaluated = [=](Graph& g, const Tensor& x, const Tensor& weight) {
      return batch_norm_eval(x, weight, number(g, 0), g.input("m", {4}), square(g.input("v", {4})),
                             {.eps = kEps});
    };
    add("evaluated-batch-norm-weight",
        [=](Graph& g, const Tensor& x) { return evaluated(g, x, number(g, 1)) * spread(g, "w"); });
    add("evaluated-batch-norm-bias", [=](Graph& g, const Tensor& x) {
      return evaluated(g, x, g.input("w", {4})) + spread(g, "b");
    });
  }
  return all;
}

std::vector<RuleSample> losses() {
  const auto picked = [](std::int64_t axis) {
    return over({5, 5, 3}, [axis](Graph& g, const Tensor& x) {
      const Tensor target = g.input("i", {5, 3}, i64);
      return -squeeze(gather(log_softmax(x, axis), unsqueeze(target, 1), 1), 1);
    });
  };
  return {{"cross-entropy", picked(1), false, kRounding},
          {"cross-entropy", picked(0), kRefused, kRounding}};
}

std::vector<RuleSample> gelus(const std::string& name,
                              const std::function<Tensor(const Tensor&)>& y, bool refused) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> forms = {
      {"", [=](const Tensor& x) { return x * y(x) * 0.5; }},
      {"-reversed", [=](const Tensor& x) { return y(x) * x * 0.5; }},
      {"-of-half", [=](const Tensor& x) { return x * 0.5 * y(x); }},
      {"-of-half-reversed", [=](const Tensor& x) { return y(x) * (x * 0.5); }},
      {"-half-inside", [=](const Tensor& x) { return x * (y(x) * 0.5); }},
      {"-half-inside-reversed", [=](const Tensor& x) { return y(x) * 0.5 * x; }},
  };
  std::vector<RuleSample> all;
  for (const auto& [suffix, form] : forms)
    all.push_back({name + suffix,
                   over_some([form = form](Graph&, const Tensor& x) { return form(x); }), refused,
                   kRounding});
  return all;
}

std::vector<RuleSample> activations() {
  std::vector<RuleSample> all = {
      {"silu", over_some([](Graph&, const Tensor& x) { return x * sigmoid(x); })},
      {"silu-reversed", over_some([](Graph&, const Tensor& x) { return sigmoid(x) * x; })},
      {"swiglu", over_some([](Graph& g, const Tensor& x) { return silu(x) * beside(g, x); })},
      {"swiglu-reversed",
       over_some([](Graph& g, const Tensor& x) { return beside(g, x) * silu(x); })},
  };
  const auto by_erf = [](double c) { return [c](const Tensor& x) { return erf(x * c) + 1; }; };
  const auto by_tanh = [](double c) {
    return [c](const Tensor& x) { return tanh((x + square(x) * x * 0.044715) * c) + 1; };
  };
  const double tanh_factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  for (const auto& part :
       {gelus("gelu", by_erf(1 / std::numbers::sqrt2), false), gelus("gelu", by_erf(0.7), true),
        gelus("gelu-tanh", by_tanh(tanh_factor), false), gelus("gelu-tanh", by_tanh(0.8), true)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<RuleSample> softmaxes() {
  const auto total = [](const Tensor& x, const IntList& axes) {
    return broadcast_to(sum(exp(x), axes, true), x.shape());
  };
  const auto shifted = [](Graph& g, const Tensor& x, bool along) {
    return x - broadcast_to(g.input("m", along ? Shape{1, 4} : Shape{3, 1}), x.shape());
  };
  std::vector<RuleSample> all;
  for (const bool refused : {false, true}) {
    const IntList axes = refused ? IntList{0, 1} : IntList{1};
    const auto add = [&](const char* rule, Body body) {
      all.push_back({rule, over({3, 4}, std::move(body)), refused, kRounding});
    };
    add("softmax", [=](Graph&, const Tensor& x) { return exp(x) / total(x, axes); });
    add("log-softmax", [=](Graph&, const Tensor& x) {
      return x - broadcast_to(log(sum(exp(x), axes, true)), x.shape());
    });
    add("softmax-of-shifted",
        [=](Graph& g, const Tensor& x) { return softmax(shifted(g, x, refused)); });
    add("log-softmax-of-shifted",
        [=](Graph& g, const Tensor& x) { return log_softmax(shifted(g, x, refused)); });
  }
  all.push_back({"log-of-softmax",
                 over({3, 4}, [](Graph&, const Tensor& x) { return log(softmax(x, 0)); }), false,
                 kRounding});
  return all;
}

// --- attention

struct Made {
  Tensor q, k, v;
};
// [batch, heads, sequence, size]
Made operands(Graph& g, Shape q, Shape k) {
  return {g.input("x", std::move(q)), g.input("k", k), g.input("v", k)};
}

// How scores are masked, and what the rule refuses.
Tensor masked(Graph& g, const Tensor& scores, const std::string& how, bool guarded, bool refused) {
  const auto bools = [&] {
    // A query that sees nothing is a NaN, unless it is guarded.
    const Tensor given = g.input("m", scores.shape(), boolean);
    return guarded ? given : logical_or(given, eq(iota_beside(scores, scores.shape(), -1), 0));
  };
  if (how == "-masked") return scores + beside(g, scores, "m");
  if (how == "-mask-first") return beside(g, scores, "m") + scores;
  if (how == "-chosen") return where(bools(), scores, filled(g, refused ? -5 : -INFINITY, scores));
  if (how == "-filled") {
    const Shape plane{scores.dim(-2), scores.dim(-1)};
    Literal sees(Type{boolean, plane});
    for (std::int64_t k = 0; k < plane.numel(); ++k)
      sees.i()[static_cast<std::size_t>(k)] = !(refused && k < plane[1]) && k % plane[1] % 2 == 0;
    const double low = std::numeric_limits<float>::lowest();
    return where(broadcast_to(g.constant(sees), scores.shape()), scores, filled(g, low, scores));
  }
  return scores;
}

Tensor weights_of(const Tensor& scores, std::int64_t axis, bool guarded) {
  const Tensor p = softmax(scores, axis);
  return guarded ? where(ne(p, p), 0, p) : p;
}

std::vector<RuleSample> cores() {
  std::vector<RuleSample> all;
  for (const bool guarded : {false, true})
    for (const std::string how : {"", "-masked", "-mask-first", "-chosen", "-filled"}) {
      const std::string rule = (guarded ? "guarded-attention" : "attention") + how;
      const auto add = [&](bool refused, std::function<Graph(Random&)> make) {
        all.push_back({rule, std::move(make), refused, kRounding});
      };
      const auto square_scores = [=](std::int64_t axis, bool refused) {
        return [=](Random&) {
          Graph g;
          const Made n = operands(g, {2, 2, 3, 2}, {2, 2, 3, 2});
          const Tensor scores = matmul(n.q, n.k, {.transpose_b = true});
          g.output("y", matmul(weights_of(masked(g, scores, how, guarded, refused), axis, guarded),
                               n.v));
          return g;
        };
      };
      add(false, square_scores(3, false));
      add(kRefused, square_scores(2, false));
      if (how == "-chosen" || how == "-filled") add(kRefused, square_scores(3, true));
      // Sequence first, and keys that are turned already.
      add(false, [=](Random&) {
        Graph g;
        const Tensor q = g.input("x", {2, 3, 2, 4}), k = g.input("k", {2, 4, 5, 2}),
                     v = g.input("v", {5, 2, 2, 4});
        const Tensor scores = contract(
            q, k, {.batch_a = {0, 2}, .batch_b = {0, 3}, .contract_a = {3}, .contract_b = {1}});
        const Tensor p = weights_of(masked(g, scores, how, guarded, false), 3, guarded);
        g.output(
            "y",
            contract(p, v,
                     {.batch_a = {0, 1}, .batch_b = {1, 2}, .contract_a = {3}, .contract_b = {0}}));
        return g;
      });
      // No axis for heads.
      add(false, [=](Random&) {
        Graph g;
        const Tensor q = g.input("x", {4, 3, 2}), k = g.input("k", {4, 5, 2}),
                     v = g.input("v", {4, 5, 2});
        const Tensor scores = matmul(q, k, {.transpose_b = true});
        g.output("y", matmul(weights_of(masked(g, scores, how, guarded, false), 2, guarded), v));
        return g;
      });
    }
  return all;
}

Tensor repeated(const Tensor& x, bool by_groups) {
  const std::int64_t b = x.dim(0), h = x.dim(1), s = x.dim(2), d = x.dim(3);
  const Tensor apart = reshape(x, by_groups ? IntList{b, 1, h, s, d} : IntList{b, h, 1, s, d});
  const Shape all = by_groups ? Shape{b, 2, h, s, d} : Shape{b, h, 2, s, d};
  return reshape(broadcast_to(apart, all), {b, 2 * h, s, d});
}

std::vector<RuleSample> joined() {
  std::vector<RuleSample> all;
  for (const bool with_mask : {false, true}) {
    const std::string end = with_mask ? "-masked" : "";
    const auto add = [&](const std::string& rule, bool refused,
                         const std::function<Made(Graph&)>& make) {
      all.push_back({rule + end,
                     [=](Random&) {
                       Graph g;
                       const Made n = make(g);
                       std::optional<Tensor> mask;
                       if (with_mask) mask = g.input("m", {n.q.dim(2), n.k.dim(2)});
                       g.output("y", attention(n.q, n.k, n.v, {.scale = 0.5}, mask));
                       return g;
                     },
                     refused, kRounding});
    };
    for (const bool refused : {false, true}) {
      const auto factor = [=](Graph& g, const Tensor& x) {
        return refused ? beside(g, x, "c") : filled(g, 0.25, x);
      };
      add("attention-of-scaled-queries", refused, [=](Graph& g) {
        const Made n = operands(g, {2, 2, 3, 2}, {2, 2, 4, 2});
        return Made{n.q * factor(g, n.q), n.k, n.v};
      });
      add("attention-of-scaled-keys", refused, [=](Graph& g) {
        const Made n = operands(g, {2, 2, 3, 2}, {2, 2, 4, 2});
        return Made{n.q, n.k * factor(g, n.k), n.v};
      });
      add("attention-of-repeated-heads", refused, [=](Graph& g) {
        const Made n = operands(g, {2, 4, 3, 2}, {2, 2, 4, 2});
        return Made{n.q, repeated(n.k, refused), repeated(n.v, refused)};
      });
      add("attention-of-one-head", refused, [=](Graph& g) {
        const Made n = operands(g, {2, 3, 3, 2}, refused ? Shape{1, 1, 4, 2} : Shape{2, 1, 4, 2});
        return Made{n.q, broadcast_to(n.k, {2, 3, 4, 2}), broadcast_to(n.v, {2, 3, 4, 2})};
      });
    }
  }
  return all;
}

std::vector<RuleSample> masks() {
  const auto with = [](const std::function<Tensor(Graph&)>& mask) {
    return [mask](Random&) {
      Graph g;
      const Made n = operands(g, {2, 2, 3, 2}, {2, 2, 3, 2});
      g.output("y", attention(n.q, n.k, n.v, {.scale = 0.5}, mask(g)));
      return g;
    };
  };
  const double low = std::numeric_limits<float>::lowest();
  const auto triangle = [with](double hidden) {
    const double h = hidden;
    return with([h](Graph& g) {
      return g.constant(Literal::floats({1, 1, 3, 3}, {0, h, h, 0, 0, h, 0, 0, 0}));
    });
  };
  return {
      {"mask-of-broadcast",
       with([](Graph& g) { return broadcast_to(g.input("m", {2, 1, 1, 3}), {2, 2, 3, 3}); }), false,
       kRounding},
      {"mask-of-nothing", with([](Graph& g) { return g.constant(0, {3, 3}); }), false, kRounding},
      {"mask-of-nothing", with([](Graph& g) { return g.constant(1, {3, 3}, boolean); }), false,
       kRounding},
      {"mask-of-nothing", with([](Graph& g) { return g.input("m", {3, 3}); }), kRefused, kRounding},
      {"mask-of-the-future", triangle(-INFINITY), false, kRounding},
      {"mask-of-the-future", triangle(low), false, kRounding},
      {"mask-of-the-future", with([](Graph& g) {
         return g.constant(Literal::ints({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}, boolean));
       }),
       false, kRounding},
      {"mask-of-the-future", triangle(-5), kRefused, kRounding},
      {"mask-of-the-future", with([low](Graph& g) {
         return g.constant(Literal::floats({3, 3}, {0, low, low, 0, 0, 0, 0, 0, 0}));
       }),
       kRefused, kRounding},
  };
}

}  // namespace canonical_samples_parts

std::vector<RuleSample> canonical_samples() {
  using namespace canonical_samples_parts;
  std::vector<RuleSample> all;
  for (const auto part : {numbers, powers, reshapes, cuts, products, norms, group_norms,
                          batch_norms, losses, activations, softmaxes, cores, joined, masks})
    for (RuleSample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite
