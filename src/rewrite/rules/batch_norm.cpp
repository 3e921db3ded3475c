// Rules that recognise batch norms which were taken apart: numbers per channel, which is axis 1.
// With the statistics of the batch it is the norm of training, with others that of evaluation.
#include <utility>

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

Rule norm(std::string name, Pattern left, std::vector<Condition> when,
          std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real, std::move(left), std::move(when),
                        std::move(right));
}

Tensor per_channel(Fit& f, std::string_view name) { return reshape(f[name], {f.type().shape[1]}); }

const Condition is_one = {"one is 1",
                          [](Fit& f) { return f.is_number("one") && f.number("one") == 1; }};
const Condition is_zero = {"zero is 0",
                           [](Fit& f) { return f.is_number("zero") && f.number("zero") == 0; }};

bool is_over_all_but_channels(Fit& f, const std::string& mean) {
  ir::Ints others;
  for (std::int64_t axis = 0; axis < f.type("x").shape.rank(); ++axis)
    if (axis != 1) others.push_back(axis);
  return f.attributes<op::Mean>(mean).axes == others;
}
bool has_channels(Fit& f) { return f.type("x").shape.rank() >= 2; }
// Of one item there is no variance.
bool has_two_items(Fit& f) {
  const Shape& shape = f.type("x").shape;
  return shape.rank() < 2 || shape.with(1, 1).numel() > 1;
}

std::vector<Condition> is_norm_of_batch() {
  std::vector<Condition> all = {{"there are channels", has_channels},
                                {"there are two items", has_two_items},
                                is_number("eps"),
                                is_epsilon("eps")};
  for (const std::string mean : {"centre", "variance"}) {
    all.push_back(
        {mean + " is per channel", [=](Fit& f) { return is_over_all_but_channels(f, mean); }});
    all.push_back(
        {mean + " keeps the axes", [=](Fit& f) { return f.attributes<op::Mean>(mean).keepdims; }});
  }
  return all;
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
           is_norm_of_batch(),
           [](Fit& f) {
             return norm_of_batch(f, channels_of(f, 1), channels_of(f, 0), f.number("eps"));
           }),
      norm("batch-norm-weight", node<op::Mul>(plain(one), spread(w)),
           {is_one, is_zero, is_per_channel("w")},
           [=](Fit& f) { return norm_of_batch(f, per_channel(f, "w"), f["zero"], eps_of(f)); }),
      norm("batch-norm-bias", node<op::Add>(plain(w), spread(b)), {is_zero, is_per_channel("b")},
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
      norm("evaluated-batch-norm",
           node<op::Mul>(node<op::Sub>(x, spread(m)),
                         spread(node<op::Rsqrt>(node<op::Add>(v, eps)))),
           {is_number("eps"), is_epsilon("eps"), is_per_channel("m"), is_per_channel("v")},
           [](Fit& f) {
             return batch_norm_eval(f["x"], channels_of(f, 1), channels_of(f, 0),
                                    per_channel(f, "m"), per_channel(f, "v"),
                                    {.eps = f.number("eps")});
           }),
      norm("evaluated-batch-norm-weight", node<op::Mul>(plain(one), spread(w)),
           {is_one, is_zero, is_per_channel("w")},
           [=](Fit& f) { return made(f, per_channel(f, "w"), f["zero"]); }),
      norm("evaluated-batch-norm-bias", node<op::Add>(plain(w), spread(b)),
           {is_zero, is_per_channel("b")},
           [=](Fit& f) { return made(f, f["w"], per_channel(f, "b")); }),
  };
}

}  // namespace

std::vector<Rule> batch_norm_rules() {
  std::vector<Rule> all = norms_of_batch();
  for (Rule& rule : norms_of_evaluation()) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
