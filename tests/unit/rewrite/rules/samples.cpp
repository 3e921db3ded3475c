#include "unit/rewrite/rules/samples.h"

#include <utility>

#include "ops/face.h"
#include "pantala/ops.h"

namespace pantala::rewrite::samples {

bool has_numbers(const Sample& sample) { return sample.refused_by != "i is in range"; }

Make of(Body body) {
  return [body = std::move(body)](Random& r) {
    Graph g;
    g.output("y", body(g, r));
    return g;
  };
}
Make over_some(BodyOfX body) {
  return of([body = std::move(body)](Graph& g, Random& r) {
    return body(g, g.input("x", some_shape(r)));
  });
}
Make over(Shape shape, BodyOfX body, DType dtype) {
  return of([shape = std::move(shape), body = std::move(body), dtype](Graph& g, Random&) {
    return body(g, g.input("x", shape, dtype));
  });
}

Shape some_shape(Random& r, int most_axes) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t k = r.between(0, most_axes); k > 0; --k)
    sizes.push_back(r.chance(0.1) ? 0 : r.pick(std::vector<std::int64_t>{1, 2, 3, 5, 8, 17}));
  return Shape(sizes);
}
std::int64_t some_size(Random& r) { return r.pick(std::vector<std::int64_t>{1, 2, 3, 4, 5, 8}); }
std::int64_t any_size(Random& r) { return r.chance(0.1) ? 0 : some_size(r); }

Tensor filled(Graph& g, double value, const Tensor& like) {
  return g.constant(value, like.shape(), like.dtype());
}
Tensor beside(Graph& g, const Tensor& like, const char* name) {
  return g.input(name, like.shape(), like.dtype());
}
Tensor repeated(const Tensor& x, const Shape& shape) {
  return ops::apply("broadcast_to", {x}, {{"shape", shape.vec()}})[0];
}
Tensor sum_of(const Tensor& a, const Tensor& b, bool reversed) { return reversed ? b + a : a + b; }
Tensor product_of(const Tensor& a, const Tensor& b, bool reversed) {
  return reversed ? b * a : a * b;
}

const Samples& all_samples() {
  static const Samples all = [] {
    Samples list;
    for (const auto family : {algebra_samples, step_samples, number_samples, movement_samples,
                              product_samples, norm_samples, batch_norm_samples, activation_samples,
                              softmax_samples, attention_samples, mask_samples})
      for (Sample& sample : family()) list.push_back(std::move(sample));
    return list;
  }();
  return all;
}

}  // namespace pantala::rewrite::samples
