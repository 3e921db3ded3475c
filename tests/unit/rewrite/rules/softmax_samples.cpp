#include "ops/face.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::softmax_parts {

// --- softmax and its logarithm

// What is summed, of x or of a square, whose axes can be mistaken for each other.
struct Summed {
  bool square = false;
  IntList axes = {};  // none: one that is drawn
  bool keeps = true;
};
Make from_exponentials(const Summed& n, bool logarithm) {
  return of([=](Graph& g, Random& r) {
    Shape shape{3, 3};
    if (!n.square) shape = some_shape(r, 3).insert(0, some_size(r));
    const Tensor x = g.input("x", shape);
    const IntList axes = n.axes.empty() ? IntList{r.below(shape.rank())} : n.axes;
    const Tensor total = sum(exp(x), axes, n.keeps);
    return logarithm ? x - repeated(log(total), shape) : exp(x) / repeated(total, shape);
  });
}
Make of_shifted(const Shape& shift, std::int64_t axis, bool logarithm) {
  return over({3, 4}, [=](Graph& g, const Tensor& x) {
    const Tensor shifted = x - repeated(g.input("m", shift), x.shape());
    return logarithm ? log_softmax(shifted, axis) : softmax(shifted, axis);
  });
}

Samples softmaxes() {
  const char* alike = "the same is subtracted along the axis";
  Samples all;
  for (const bool logarithm : {false, true}) {
    const std::string rule = logarithm ? "log-softmax" : "softmax", shifted = rule + "-of-shifted";
    all.push_back({rule, from_exponentials({}, logarithm)});
    all.push_back({rule, from_exponentials({true, {0, 1}}, logarithm), "sums one axis"});
    all.push_back({rule, from_exponentials({true, {1}, false}, logarithm), "keeps the axis"});
    all.push_back({shifted, of_shifted({3, 1}, 1, logarithm)});
    all.push_back({shifted, of_shifted({4}, 0, logarithm)});
    all.push_back({shifted, of_shifted({}, 1, logarithm)});
    all.push_back({shifted, of_shifted({1, 4}, 1, logarithm), alike});
    all.push_back({shifted, of_shifted({4}, -1, logarithm), alike});
  }
  all.push_back({"log-of-softmax", over_some([](Graph&, const Tensor& x) {
                   const Tensor rows = unsqueeze(x, 0);
                   return log(softmax(rows, rows.rank() - 1));
                 })});
  return all;
}

// --- cross entropy

// Scores, the axes of the softmax and of the gather, the classes and the rows that come out.
struct Picked {
  Shape scores;
  std::int64_t softmax = 1, gather = 1;
  Shape classes, rows;
  DType dtype = i64;
};
Tensor picked(Graph& g, const Picked& n) {
  const Tensor x = g.input("x", n.scores), i = g.input("i", n.classes, n.dtype);
  return -ops::apply("reshape", {gather(log_softmax(x, n.softmax), i, n.gather)},
                     {{"shape", n.rows.vec()}})[0];
}
Make of_classes(const Picked& n) {
  return of([=](Graph& g, Random&) { return picked(g, n); });
}

Samples losses() {
  const char* rule = "cross-entropy";
  return {{rule, of([](Graph& g, Random& r) {
             const Shape rows{any_size(r), some_size(r)};
             const auto axis = static_cast<int>(r.below(3));
             return picked(g, {rows.insert(axis, 5), axis, axis, rows.insert(axis, 1), rows,
                               r.chance(0.5) ? i32 : i64});
           })},
          {rule, of_classes({{5, 5}, 1, 0, {5, 1}, {5}}), "picks along the classes"},
          {rule, of_classes({{6, 5}, 1, 1, {4, 1}, {4}}), "picks one per row"},
          {rule, of_classes({{2, 5, 3}, 1, 1, {2, 1, 3}, {3, 2}}), "gives rows"},
          {rule, of_classes({{0, 0}, 1, 1, {0, 1}, {0}}), "there are classes"}};
}

}  // namespace pantala::rewrite::samples::softmax_parts

namespace pantala::rewrite::samples {

Samples softmax_samples() {
  Samples all = softmax_parts::softmaxes();
  for (Sample& sample : softmax_parts::losses()) all.push_back(std::move(sample));
  for (Sample& sample : all) sample.tolerance = kRounding;
  return all;
}

}  // namespace pantala::rewrite::samples
