// Samples of the left sides of rules, for rules_test.cpp: graphs whose sizes are drawn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "support/random_graph.h"

namespace pantala::rewrite::samples {

using tests::Random;
using Make = std::function<Graph(Random&)>;

struct Sample {
  std::string rule;
  Make make;
  // The condition that refuses it; it alone, and without it the rule is wrong. kWorth: only that it
  // is of no use refuses it, and without that the rule is right.
  std::string refused_by = {};
  // Of the largest magnitude, in double: 0 where both sides compute the same numbers.
  double tolerance = 0;
};
using Samples = std::vector<Sample>;
// Whether it has numbers: those with an index out of range are an error.
bool has_numbers(const Sample& sample);

inline constexpr const char* kWorth = "worth";
inline constexpr double kRounding = 1e-12;

// --- what samples are made of

// A graph with one output, y.
using Body = std::function<Tensor(Graph&, Random&)>;
Make of(Body body);
// The same of an input x of some shape or of this one.
using BodyOfX = std::function<Tensor(Graph&, const Tensor&)>;
Make over_some(BodyOfX body);
Make over(Shape shape, BodyOfX body, DType dtype = f32);

// A shape of up to so many axes, some of size 0 and 1.
Shape some_shape(Random& r, int most_axes = 4);
// A size from 1 on; one that is now and then 0.
std::int64_t some_size(Random& r);
std::int64_t any_size(Random& r);

Tensor filled(Graph& g, double value, const Tensor& like);
// An input of the type of another value.
Tensor beside(Graph& g, const Tensor& like, const char* name = "k");
// The op itself: the library leaves it out where it changes nothing.
Tensor repeated(const Tensor& x, const Shape& shape);
// The two in this order or the other.
Tensor sum_of(const Tensor& a, const Tensor& b, bool reversed);
Tensor product_of(const Tensor& a, const Tensor& b, bool reversed);

// --- by family

Samples algebra_samples();
Samples step_samples();
Samples number_samples();
Samples movement_samples();
Samples product_samples();
Samples norm_samples();
Samples batch_norm_samples();
Samples activation_samples();
Samples softmax_samples();
Samples attention_samples();
Samples mask_samples();

const Samples& all_samples();

}  // namespace pantala::rewrite::samples
