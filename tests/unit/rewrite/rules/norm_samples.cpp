#include "ops/face.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::norm_parts {

constexpr double kEps = 0.5;

// Rows of x, and square ones, whose axes can be mistaken for each other.
Shape some_rows(Random& r) {
  Shape shape = some_shape(r, 3);
  return shape.insert(shape.rank(), some_size(r));
}
Shape square(Random& r) {
  const std::int64_t size = r.between(2, 4);
  return {size, size};
}
using Shapes = Shape (*)(Random&);

// x * rsqrt(mean(x^2) + eps)
struct Mean {
  std::int64_t axis = -1;
  bool keeps = true;
  double eps = kEps;  // NaN: an input
};
Make root_mean_square(Shapes shapes, const Mean& n, bool reversed) {
  return of([=](Graph& g, Random& r) {
    const Tensor x = g.input("x", shapes(r)), m = mean(square(x), {n.axis}, n.keeps);
    const Tensor scale =
        rsqrt(m + (std::isnan(n.eps) ? square(beside(g, m, "e")) + 1 : filled(g, n.eps, m)));
    return product_of(x, repeated(scale, x.shape()), reversed);
  });
}
Make centred(Shapes shapes, const Mean& n) {
  return of([=](Graph& g, Random& r) {
    const Tensor x = g.input("x", shapes(r));
    return rms_norm(x - repeated(mean(x, {n.axis}, n.keeps), x.shape()), {}, {.eps = n.eps});
  });
}

// A number for each element of a row, or for each row of a square; in front of other axes of 1.
Make weighted(const std::function<Tensor(Graph&, const Tensor&)>& norm, bool per_row, bool reversed,
              bool adds) {
  return of([=](Graph& g, Random& r) {
    const Tensor x = g.input("x", per_row ? square(r) : some_rows(r)), y = norm(g, x);
    Shape shape = per_row ? Shape{y.dim(0), 1} : Shape{y.shape().back()};
    if (!per_row && y.rank() > 1 && r.chance(0.3)) shape = shape.insert(0, 1);
    const Tensor w = repeated(g.input("w", shape), y.shape());
    return adds ? sum_of(y, w, reversed) : product_of(y, w, reversed);
  });
}

Samples over_rows() {
  const char *last = "over the last axis", *keeps = "keeps the axis";
  const Shapes empty_rows = [](Random&) { return Shape{3, 0}; };
  Samples all;
  const auto add = [&](const std::string& rule, const Make& make, const char* refused_by = "") {
    all.push_back({rule, make, refused_by, kRounding});
  };
  for (const bool reversed : {false, true}) {
    const std::string rms = reversed ? "rms-norm-reversed" : "rms-norm",
                      end = reversed ? "-first" : "";
    const auto refused = [&](Shapes shapes, const Mean& n, const char* by) {
      add(rms, root_mean_square(shapes, n, reversed), by);
    };
    add(rms, root_mean_square(some_rows, {}, reversed));
    add(rms, root_mean_square(some_rows, {.eps = 0}, reversed));
    refused(square, {.axis = 0}, last);
    refused(square, {.keeps = false}, keeps);
    refused(empty_rows, {}, "rows have elements");
    refused(some_rows, {.eps = NAN}, "eps is a number");
    refused(some_rows, {.eps = -0.5}, "eps is finite and not negative");
    for (const bool per_row : {false, true}) {
      const char* by = per_row ? "w has a number per element of a row" : "";
      add("rms-norm-weight" + end,
          weighted([](Graph&, const Tensor& x) { return rms_norm(x, {}, {.eps = kEps}); }, per_row,
                   reversed, false),
          by);
      add("layer-norm-weight" + end,
          weighted([](Graph&, const Tensor& x) { return layer_norm(x, {}, {}, {.eps = kEps}); },
                   per_row, reversed, false),
          by);
      add("layer-norm-bias" + end,
          weighted(
              [](Graph& g, const Tensor& x) {
                return layer_norm(x, g.input("k", {x.shape().back()}), {}, {.eps = kEps});
              },
              per_row, reversed, true),
          per_row ? "b has a number per element of a row" : "");
    }
  }
  add("layer-norm", centred(some_rows, {}));
  add("layer-norm", centred(square, {.axis = 0}), last);
  add("layer-norm", centred(square, {.keeps = false}), keeps);
  return all;
}

// --- group norms

// The norm of x in another shape, and what comes out of it.
struct Grouping {
  Shape x, grouped, out;
  std::int64_t groups = 2;
  double weight = 1, bias = 0;  // NaN: inputs
};
Tensor grouped_norm(Graph& g, const Grouping& n) {
  const Shape channels{n.grouped[1]};
  const auto number = [&](double value, const char* name) {
    return std::isnan(value) ? g.input(name, channels) : g.constant(value, channels);
  };
  const Tensor y = group_norm(reshape(g.input("x", n.x), n.grouped.vec()), n.groups,
                              number(n.weight, "w"), number(n.bias, "b"), {.eps = kEps});
  return ops::apply("reshape", {y}, {{"shape", n.out.vec()}})[0];
}
Make grouped(const Grouping& n) {
  return of([=](Graph& g, Random&) { return grouped_norm(g, n); });
}
Tensor some_groups(Graph& g, Random& r) {
  const std::int64_t groups = some_size(r), parts = r.between(1, 3), size = some_size(r);
  const Shape x{any_size(r), groups * parts, size, 2};
  return grouped_norm(
      g, {.x = x, .grouped = {x[0], groups, parts * size * 2}, .out = x, .groups = groups});
}
// Channels that are groups of channels of x.
Tensor finer_groups(Graph& g, Random& r) {
  const Shape x{any_size(r), 8, some_size(r)};
  return grouped_norm(g, {.x = x, .grouped = {x[0], 4, 2, x[2]}, .out = x, .groups = 2});
}

Samples group_norms() {
  const char* rule = "group-norm";
  const Shape whole{2, 4, 4}, groups{2, 2, 8};
  Samples all = {
      {rule, of(some_groups)},
      {rule, of(finer_groups)},
      {rule, grouped({{3, 4}, {3, 2, 2}, {3, 4}})},
      {rule, grouped({whole, groups, {8, 4}}), "the shape comes back"},
      {rule, grouped({{8}, {8, 1, 1}, {8}, 1}), "there are channels"},
      {rule, grouped({whole, {4, 2, 4}, whole}), "items stay apart"},
      {rule, grouped({{2, 3, 4}, {2, 2, 6}, {2, 3, 4}}), "groups are of whole channels"},
      {rule, grouped({{0, 4, 0}, {0, 2, 8}, {0, 4, 0}}), "groups have elements"},
      {rule, grouped({whole, groups, whole, 2, NAN}), "w is a number"},
      {rule, grouped({whole, groups, whole, 2, 2}), "w is 1"},
      {rule, grouped({whole, groups, whole, 2, 1, NAN}), "b is a number"},
      {rule, grouped({whole, groups, whole, 2, 1, 3}), "b is 0"},
  };
  for (const bool refused : {false, true}) {
    // Behind the channels, or where the last axis has as many elements.
    const auto spread_channels = [=](Graph& g, const Tensor& y, const char* name) {
      return repeated(g.input(name, refused ? Shape{4} : Shape{4, 1}), y.shape());
    };
    all.push_back({"group-norm-weight",
                   over({2, 4, 4},
                        [=](Graph& g, const Tensor& x) {
                          return group_norm(x, 2, {}, {}, {.eps = kEps}) *
                                 spread_channels(g, x, "w");
                        }),
                   refused ? "w has a number per channel" : ""});
    all.push_back({"group-norm-bias",
                   over({2, 4, 4},
                        [=](Graph& g, const Tensor& x) {
                          return group_norm(x, 2, g.input("w", {4}), {}, {.eps = kEps}) +
                                 spread_channels(g, x, "b");
                        }),
                   refused ? "b has a number per channel" : ""});
  }
  for (Sample& sample : all) sample.tolerance = kRounding;
  return all;
}

}  // namespace pantala::rewrite::samples::norm_parts

namespace pantala::rewrite::samples {

Samples norm_samples() {
  Samples all = norm_parts::over_rows();
  for (Sample& sample : norm_parts::group_norms()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
