#include "runtime/qualification_steps.h"

#include <vector>

#include "pantala/ops.h"

namespace pantala::runtime {

namespace {

// A step under construction.
struct Draft {
  QualificationGraph made;
  Tensor weight(const char* name, const Shape& shape, double deviation = 1) {
    return made.graph.parameter(name, shape, init::normal(0, deviation));
  }
  Tensor indices(const Shape& shape, std::int64_t below) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(shape.numel()));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = static_cast<std::int64_t>(k * 7 + 3) % below;
    return made.graph.constant(Literal::ints(shape, numbers));
  }
  QualificationGraph finish(const Tensor& value) {
    made.loss = mean(value * value) + mean(value);
    made.graph.output("value", value);
    return std::move(made);
  }
};

QualificationGraph elements() {
  Draft d;
  const Tensor x = d.weight("x", {7, 37}), y = d.weight("y", {7, 37});
  return d.finish(gelu(x) * tanh(y) + log(square(x) + 1.0) + exp(-square(y)) +
                  sin(x) * sqrt(square(y) + 0.5) + erf(x / (square(y) + 1.0)));
}

QualificationGraph rows() {
  Draft d;
  const Tensor x = d.weight("x", {9, 131}), scale = d.weight("scale", {131});
  const Tensor normed = layer_norm(x, scale, d.weight("shift", {131}));
  return d.finish(softmax(normed) * 10.0 + sum(normed, {0}) * 0.1);
}

// Drivers take longest to compile these: one product and its gradients, of which one is cut into
// slices of its long sum.
QualificationGraph products() {
  Draft d;
  const Tensor x = d.weight("x", {301, 43}), w = d.weight("w", {27, 43}, 0.2),
               b = d.weight("b", {27});
  return d.finish(relu(linear(x, w, b)));
}

QualificationGraph convolutions() {
  Draft d;
  const Tensor x = d.weight("x", {2, 3, 13, 11}), w = d.weight("w", {6, 3, 3, 3}, 0.3),
               b = d.weight("b", {6});
  const Tensor h = relu(conv2d(x, w, b, {.padding = {1, 1}}));
  return d.finish(avg_pool2d(max_pool2d(h, {2, 2}), {2, 2}));
}

QualificationGraph batch_norm() {
  Draft d;
  const Tensor x = d.weight("x", {4, 5, 7, 3});
  const Tensor mean_of = d.made.graph.state("mean", {5}), var_of = d.made.graph.state("var", {5});
  const BatchNormResult normed =
      batch_norm_train(x, d.weight("scale", {5}), d.weight("shift", {5}), mean_of, var_of);
  d.made.graph.update(mean_of, normed.running_mean);
  d.made.graph.update(var_of, normed.running_var);
  return d.finish(relu(normed.y));
}

QualificationGraph attentions() {
  Draft d;
  const Tensor q = d.weight("q", {2, 3, 19, 16}), k = d.weight("k", {2, 3, 19, 16}),
               v = d.weight("v", {2, 3, 19, 16});
  return d.finish(attention(q, k, v, {.causal = true}));
}

QualificationGraph losses() {
  Draft d;
  const Tensor x = d.weight("x", {21, 13});
  d.made.loss = cross_entropy(x, d.indices({21}, 13));
  d.made.graph.output("value", x * 1.0);
  return std::move(d.made);
}

QualificationGraph indexing() {
  Draft d;
  const Tensor table = d.weight("table", {17, 9}), x = d.weight("x", {6, 11});
  const Tensor rows_of = embedding(table, d.indices({5, 8}, 17));
  return d.finish(sum(rows_of) * 0.1 + gather(x, d.indices({6, 4}, 11), 1));
}

QualificationGraph scans() {
  Draft d;
  const Tensor x = d.weight("x", {6, 23});
  return d.finish(topk(cumsum(x), 5).values);
}

QualificationGraph recurrent() {
  Draft d;
  const Tensor x = d.weight("x", {7, 4, 12}), w = d.weight("w", {3, 12}, 0.3),
               h = d.weight("h", {4, 3}), c = d.weight("c", {4, 3});
  return d.finish(lstm(x, w, h, c).h);
}

// Angles in double precision.
QualificationGraph rotations() {
  Draft d;
  const Tensor x = d.weight("x", {2, 3, 19, 16});
  return d.finish(rope(x));
}

// Only what is rounded to one number, whatever computes it.
QualificationGraph halves() {
  Draft d;
  const Tensor x = cast(d.weight("x", {7, 37}), f16), y = cast(d.weight("y", {7, 37}), f16);
  return d.finish(cast(maximum(x * y, x), f32));
}

QualificationGraph dropouts() {
  Draft d;
  return d.finish(dropout(d.weight("x", {11, 53}), 0.3));
}

QualificationGraph moments() {
  Draft d;
  const Tensor x = d.weight("x", {7, 37}), y = d.weight("y", {37});
  QualificationGraph made = d.finish(x * y + tanh(y));
  made.optimizer = optim::adam(0.05);
  return made;
}

constexpr QualificationStep kSteps[] = {
    {"elements", elements},     {"rows", rows},
    {"products", products},     {"convolutions", convolutions},
    {"batch_norm", batch_norm}, {"attention", attentions},
    {"losses", losses},         {"indices", indexing},
    {"scans", scans},           {"recurrent", recurrent},
    {"rotations", rotations},   {"halves", halves},
    {"dropout", dropouts},      {"adam", moments},
};

}  // namespace

std::span<const QualificationStep> qualification_steps() { return kSteps; }

}  // namespace pantala::runtime
