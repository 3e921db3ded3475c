// Rules that recognise batch norms which were taken apart: numbers per channel, which is axis 1.
// With the statistics of the batch it is the norm of training, with others that of evaluation.
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern x = any("x"), w = any("w"), b = any("b"), m = any("m"), v = any("v"),
              one = any("one"), zero = any("zero"), eps = any("eps");

Pattern spread(const Pattern& of) { return node<op::BroadcastTo>(of); }

Rule norm(std::string name, Pattern left, std::function<bool(Fit&)> when,
          std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real, std::move(left), std::move(when),
                        std::move(right));
}

Tensor per_channel(Fit& f, std::string_view name) { return reshape(f[name], {f.type().shape[1]}); }

bool is_number(Fit& f, std::string_view name, double value) {
  return f.is_number(name) && f.number(name) == value;
}

bool has_eps(Fit& f) {
  return f.is_number("eps") && f.number("eps") >= 0 && std::isfinite(f.number("eps"));
}

bool keeps_channels(Fit& f, std::string_view name) {
  const Shape& shape = f.type("x").shape;
  const op::ReduceAttrs mean = f.attributes<op::Mean>(name);
  ir::Ints others;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    if (axis != 1) others.push_back(axis);
  return mean.keepdims && mean.axes == others;
}

// Two items at least: of one there is no variance.
bool is_norm_of_batch(Fit& f) {
  const Shape& shape = f.type("x").shape;
  return shape.rank() >= 2 && shape.with(1, 1).numel() > 1 && keeps_channels(f, "centre") &&
         keeps_channels(f, "variance") && has_eps(f);
}

// A norm of the batch needs running statistics: its first result does not follow from them.
Tensor norm_of_batch(Fit& f, const Tensor& weight, const Tensor& bias, double epsilon) {
  const Type channels{f.type().dtype, {f.type().shape[1]}};
  return batch_norm_train(f["x"], weight, bias, f.joint().constant(0, channels),
                          f.joint().constant(1, channels), {.eps = epsilon})
      .y;
}
Tensor channels_of(Fit& f, double value) {
  return f.joint().constant(value, {f.type().dtype, {f.type().shape[1]}});
}

std::vector<Rule> norms_of_batch() {
  const Pattern centred = node<op::Sub>(x, spread(named<op::Mean>("centre", x)));
  const Pattern variance = named<op::Mean>("variance", node<op::Square>(centred));
  const auto plain = [](const Pattern& weight) {
    return result(0, named<op::BatchNormTrain>("norm", x, weight, zero, m, v));
  };
  const auto eps_of = [](Fit& f) { return f.attributes<op::BatchNormTrain>("norm").eps; };
  return {
      norm("batch-norm",
           node<op::Mul>(centred, spread(node<op::Rsqrt>(node<op::Add>(variance, eps)))),
           is_norm_of_batch,
           [](Fit& f) {
             return norm_of_batch(f, channels_of(f, 1), channels_of(f, 0), f.number("eps"));
           }),
      norm(
          "batch-norm-weight", node<op::Mul>(plain(one), spread(w)),
          [](Fit& f) {
            return is_number(f, "one", 1) && is_number(f, "zero", 0) && is_per_channel(f, "w");
          },
          [=](Fit& f) { return norm_of_batch(f, per_channel(f, "w"), f["zero"], eps_of(f)); }),
      norm(
          "batch-norm-bias", node<op::Add>(plain(w), spread(b)),
          [](Fit& f) { return is_number(f, "zero", 0) && is_per_channel(f, "b"); },
          [=](Fit& f) { return norm_of_batch(f, f["w"], per_channel(f, "b"), eps_of(f)); }),
  };
}

std::vector<Rule> norms_of_evaluation() {
  const auto plain = [](const Pattern& weight) {
    return named<op::BatchNormEval>("norm", x, weight, zero, m, v);
  };
  const auto made = [](Fit& f, const Tensor& weight, const Tensor& bias) {
    return batch_norm_eval(f["x"], weight, bias, f["m"], f["v"],
                           {.eps = f.attributes<op::BatchNormEval>("norm").eps});
  };
  return {
      norm(
          "evaluated-batch-norm",
          node<op::Mul>(node<op::Sub>(x, spread(m)),
                        spread(node<op::Rsqrt>(node<op::Add>(v, eps)))),
          [](Fit& f) { return has_eps(f) && is_per_channel(f, "m") && is_per_channel(f, "v"); },
          [](Fit& f) {
            return batch_norm_eval(f["x"], channels_of(f, 1), channels_of(f, 0),
                                   per_channel(f, "m"), per_channel(f, "v"),
                                   {.eps = f.number("eps")});
          }),
      norm(
          "evaluated-batch-norm-weight", node<op::Mul>(plain(one), spread(w)),
          [](Fit& f) {
            return is_number(f, "one", 1) && is_number(f, "zero", 0) && is_per_channel(f, "w");
          },
          [=](Fit& f) { return made(f, per_channel(f, "w"), f["zero"]); }),
      norm(
          "evaluated-batch-norm-bias", node<op::Add>(plain(w), spread(b)),
          [](Fit& f) { return is_number(f, "zero", 0) && is_per_channel(f, "b"); },
          [=](Fit& f) { return made(f, f["w"], per_channel(f, "b")); }),
  };
}

}  // namespace

bool is_per_channel(Fit& f, std::string_view name) {
  const Shape &shape = f.type(name).shape, &all = f.type().shape;
  const int at = 1 - (all.rank() - shape.rank());
  return all.rank() >= 2 && at >= 0 && at < shape.rank() && shape[at] == all[1] &&
         shape.numel() == all[1];
}

std::vector<Rule> batch_norm_rules() {
  std::vector<Rule> all = norms_of_batch();
  for (Rule& rule : norms_of_evaluation()) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
