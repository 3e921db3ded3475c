// Recurrent layers. Each is one op over all steps, with an expansion that unrolls time, and a
// gradient op that walks back through it from what the layer saved. A device that runs the two as
// loops (schedule/common/recurrent) has a program whose size does not depend on the number of
// steps.
//
// The gradient ops give the gradients of what enters the gates; the gradients of the weights, sums
// over all steps, are products behind them. Their weight is [gates * hidden, hidden]: the rows that
// a walk back adds up.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/define.h"
#include "pantala/error.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "recurrent";
};

// --- shape rules

struct Sizes {
  std::int64_t steps, batch, hidden;
  Shape states() const { return {steps, batch, hidden}; }
  Shape state() const { return {batch, hidden}; }
  Shape gates(std::int64_t count) const { return {steps, batch, count * hidden}; }
};

// The sizes of a layer, from h0 [batch, hidden] and x [steps, batch, gates * hidden].
Sizes layer_sizes(const InferContext& c, int gates, int h0) {
  c.require_float(0);
  for (int i = 1; i < c.count(); ++i) c.require_same_dtype(0, i);
  c.require_rank(0, 3);
  c.require_rank(h0, 2);
  const Sizes n{c.shape(0)[0], c.shape(h0)[0], c.shape(h0)[1]};
  if (n.steps == 0 || n.hidden == 0)
    c.fail("needs at least one step and one hidden unit: " + c.describe_inputs());
  c.require_shape(0, n.gates(gates));
  c.require_shape(1, {n.hidden, gates * n.hidden});
  return n;
}

// Those of a gradient, from dy [steps, batch, hidden] and weight [gates * hidden, hidden].
Sizes grad_sizes(const InferContext& c, int gates) {
  c.require_float(0);
  for (int i = 1; i < c.count(); ++i) c.require_same_dtype(0, i);
  c.require_rank(0, 3);
  const Sizes n{c.shape(0)[0], c.shape(0)[1], c.shape(0)[2]};
  if (n.steps == 0 || n.hidden == 0)
    c.fail("needs at least one step and one hidden unit: " + c.describe_inputs());
  c.require_shape(1, {gates * n.hidden, n.hidden});
  return n;
}

Sizes sizes_of(const Tensor& states) { return {states.dim(0), states.dim(1), states.dim(2)}; }

// --- parts of the expansions

// The steps in the order in which they are walked.
std::vector<std::int64_t> walk(std::int64_t steps, bool from_the_last) {
  std::vector<std::int64_t> order;
  for (std::int64_t k = 0; k < steps; ++k) order.push_back(from_the_last ? steps - 1 - k : k);
  return order;
}

Tensor step_of(const Tensor& x, std::int64_t t) {
  return reshape(slice_axis(x, 0, t, t + 1), {x.dim(1), x.dim(2)});
}

// Part k of the last axis cut into pieces of `size`.
Tensor part(const Tensor& x, std::int64_t k, std::int64_t size) {
  return slice_axis(x, -1, k * size, (k + 1) * size);
}

// The rows of some gates of a weight [gates * hidden, hidden].
Tensor rows(const Tensor& weight, std::int64_t first, std::int64_t end, std::int64_t hidden) {
  return slice_axis(weight, 0, first * hidden, end * hidden);
}

// What each step starts from: the first state, then those of the steps before.
Tensor previous(const Tensor& states, const Tensor& first, bool reverse) {
  const std::int64_t steps = states.dim(0);
  const Tensor front = unsqueeze(first, 0);
  if (steps == 1) return front;
  return reverse ? concat({slice_axis(states, 0, 1, steps), front}, 0)
                 : concat({front, slice_axis(states, 0, 0, steps - 1)}, 0);
}

// The gradient of the recurrent weight: of all steps at once.
Tensor weight_grad(const Tensor& before, const Tensor& gates) {
  return contract(before, gates,
                  {.batch_a = {}, .batch_b = {}, .contract_a = {0, 1}, .contract_b = {0, 1}});
}

Tensor swapped(const Tensor& weight) { return permute(weight, {1, 0}); }

// s'(z) of s = sigmoid(z) and of s = tanh(z).
Tensor sigmoid_slope(const Tensor& s) { return s * (1.0 - s); }
Tensor tanh_slope(const Tensor& s) { return 1.0 - s * s; }

// Loops over time have no such limit; definitions do: second derivatives, the interpreter, exports.
constexpr std::int64_t kMostUnrolled = 1 << 16;

// A tensor per step, to be filled.
using Steps = std::vector<Tensor>;
Steps unrolled(std::int64_t steps) {
  if (steps > kMostUnrolled)
    throw TypeError(
        fmt::format("{} steps of a recurrent layer are too many to unroll: up to {} are", steps,
                    kMostUnrolled));
  return Steps(static_cast<std::size_t>(steps));
}

// --- LSTM

constexpr int kLstmGates = 4;

struct LstmGrad : op::LstmGrad, Family {
  static constexpr OpInfo info{name, "(dy, weight, c, gates, c0, dc?) -> (dx, dh0, dc0)",
                               "The gradients of lstm from its saved states and gates."};
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = grad_sizes(c, kLstmGates);
    c.require_shape(2, n.states());
    c.require_shape(3, n.gates(kLstmGates));
    c.require_shape(4, n.state());
    if (c.has(5)) c.require_shape(5, n.states());
    c.result({c.in(0).dtype, n.gates(kLstmGates)});
    c.result({c.in(0).dtype, n.state()});
    c.result({c.in(0).dtype, n.state()});
  }
  static std::vector<Tensor> expand(const ExpandContext& e, const Attrs& a) {
    const Sizes n = sizes_of(e.in(0));
    const Tensor before = previous(e.in(2), e.in(4), a.reverse);
    Tensor dh = full_beside(e.in(0), n.state(), 0), dc = dh;
    Steps dx = unrolled(n.steps);
    for (const std::int64_t t : walk(n.steps, !a.reverse)) {
      const Tensor gates = step_of(e.in(3), t), squashed = tanh(step_of(e.in(2), t));
      const Tensor i = part(gates, 0, n.hidden), f = part(gates, 1, n.hidden),
                   g = part(gates, 2, n.hidden), o = part(gates, 3, n.hidden);
      dh = dh + step_of(e.in(0), t);
      if (e.has(5)) dc = dc + step_of(e.in(5), t);
      dc = dc + dh * o * tanh_slope(squashed);
      const Tensor dz =
          concat({dc * g * sigmoid_slope(i), dc * step_of(before, t) * sigmoid_slope(f),
                  dc * i * tanh_slope(g), dh * squashed * sigmoid_slope(o)},
                 1);
      dc = dc * f;
      dh = matmul(dz, e.in(1));
      dx[static_cast<std::size_t>(t)] = dz;
    }
    return {stack(dx), dh, dc};
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](std::int64_t t, std::int64_t b, std::int64_t h) {
      return std::vector{floats({t, b, h}), floats({4 * h, h}), floats({t, b, h}),
                         floats({t, b, 4 * h}, 0.1, 0.9), floats({b, h})};
    };
    std::vector<SampleInput> with_dc = inputs(3, 1, 2);
    with_dc.push_back(floats({3, 1, 2}));
    return {sample(inputs(2, 3, 2), Attrs{false}), sample(with_dc, Attrs{true})};
  }
};

struct Lstm : op::Lstm, Family {
  static constexpr OpInfo info{
      name, "(x, weight, h0, c0) -> (y, c, gates)",
      "A long short-term memory over [steps, batch, 4 hidden], the input's part of its gates, with "
      "weight [hidden, 4 hidden]: y and c of all steps, and the gates for its gradient."};
  static constexpr int kGradResults = 2;
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = layer_sizes(c, kLstmGates, 2);
    c.require_shape(3, n.state());
    for (int k = 0; k < 2; ++k) c.result({c.in(0).dtype, n.states()});
    c.result(c.in(0));
  }
  static std::vector<Tensor> expand(const ExpandContext& e, const Attrs& a) {
    const std::int64_t steps = e.in(0).dim(0), hidden = e.in(2).dim(1);
    Tensor h = e.in(2), c = e.in(3);
    Steps ys = unrolled(steps), cs = ys, all_gates = ys;
    for (const std::int64_t t : walk(steps, a.reverse)) {
      const Tensor z = step_of(e.in(0), t) + matmul(h, e.in(1));
      const Tensor i = sigmoid(part(z, 0, hidden)), f = sigmoid(part(z, 1, hidden)),
                   g = tanh(part(z, 2, hidden)), o = sigmoid(part(z, 3, hidden));
      c = f * c + i * g;
      h = o * tanh(c);
      const auto at = static_cast<std::size_t>(t);
      ys[at] = h;
      cs[at] = c;
      all_gates[at] = concat({i, f, g, o}, 1);
    }
    return {stack(ys), stack(cs), stack(all_gates)};
  }
  static void grad(GradContext& g, const Attrs& a) {
    const auto gradient = [&](std::size_t result) {
      std::vector<Operand> inputs{g.dy(), swapped(g.in(1)), g.out(1), g.out(2), g.in(3)};
      if (g.has_dy(1)) inputs.push_back(g.dy(1));
      return make_all<LstmGrad>(inputs, a)[result];
    };
    g.give(0, [&] { return gradient(0); });
    g.give(1, [&] { return weight_grad(previous(g.out(), g.in(2), a.reverse), gradient(0)); });
    g.give(2, [&] { return gradient(1); });
    g.give(3, [&] { return gradient(2); });
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](std::int64_t t, std::int64_t b, std::int64_t h) {
      return std::vector{floats({t, b, 4 * h}), floats({h, 4 * h}), floats({b, h}), floats({b, h})};
    };
    return {sample(inputs(3, 2, 2), Attrs{false}), sample(inputs(2, 3, 2), Attrs{true}),
            sample(inputs(1, 1, 1), Attrs{false}), sample(inputs(2, 0, 3), Attrs{false})};
  }
};

// --- GRU

constexpr int kGruGates = 3;

// The saved gates are reset, update, new, and the recurrent part of the new gate; with reset_first
// the state that the reset gate scaled stands in the place of the latter.
struct GruGrad : op::GruGrad, Family {
  static constexpr OpInfo info{name, "(dy, weight, gates, y, h0) -> (dx, dproduct, dh0)",
                               "The gradients of gru from its states and saved gates: of x, of the "
                               "recurrent products, and of the first state."};
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = grad_sizes(c, kGruGates);
    c.require_shape(2, n.gates(kGruGates + 1));
    c.require_shape(3, n.states());
    c.require_shape(4, n.state());
    for (int k = 0; k < 2; ++k) c.result({c.in(0).dtype, n.gates(kGruGates)});
    c.result({c.in(0).dtype, n.state()});
  }
  static std::vector<Tensor> expand(const ExpandContext& e, const Attrs& a) {
    const Sizes n = sizes_of(e.in(0));
    const Tensor before = previous(e.in(3), e.in(4), a.reverse);
    Tensor dh = full_beside(e.in(0), n.state(), 0);
    Steps dx = unrolled(n.steps), dproduct = dx;
    for (const std::int64_t t : walk(n.steps, !a.reverse)) {
      const Tensor gates = step_of(e.in(2), t);
      const Tensor r = part(gates, 0, n.hidden), z = part(gates, 1, n.hidden),
                   fresh = part(gates, 2, n.hidden), product = part(gates, 3, n.hidden);
      dh = dh + step_of(e.in(0), t);
      const Tensor dfresh = dh * (1.0 - z) * tanh_slope(fresh);
      const Tensor h = step_of(before, t), dz = dh * (h - fresh) * sigmoid_slope(z);
      const auto at = static_cast<std::size_t>(t);
      if (a.reset_first) {
        const Tensor dscaled = matmul(dfresh, rows(e.in(1), 2, 3, n.hidden));
        const Tensor dr = dscaled * h * sigmoid_slope(r);
        dx[at] = dproduct[at] = concat({dr, dz, dfresh}, 1);
        dh = dh * z + dscaled * r + matmul(concat({dr, dz}, 1), rows(e.in(1), 0, 2, n.hidden));
      } else {
        const Tensor dr = dfresh * product * sigmoid_slope(r);
        dx[at] = concat({dr, dz, dfresh}, 1);
        dproduct[at] = concat({dr, dz, dfresh * r}, 1);
        dh = dh * z + matmul(dproduct[at], e.in(1));
      }
    }
    return {stack(dx), stack(dproduct), dh};
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](std::int64_t t, std::int64_t b, std::int64_t h) {
      return std::vector{floats({t, b, h}), floats({3 * h, h}), floats({t, b, 4 * h}, 0.1, 0.9),
                         floats({t, b, h}), floats({b, h})};
    };
    return {sample(inputs(2, 3, 2), Attrs{false, false}),
            sample(inputs(3, 1, 2), Attrs{true, true})};
  }
};

struct Gru : op::Gru, Family {
  static constexpr OpInfo info{
      name, "(x, weight, bias, h0) -> (y, gates)",
      "A gated recurrent unit over [steps, batch, 3 hidden], the input's part of its gates, with "
      "weight [hidden, 3 hidden] and the bias [hidden] of the recurrent part of the new gate: y of "
      "all steps, and the gates for its gradient."};
  static constexpr int kGradResults = 1;
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = layer_sizes(c, kGruGates, 3);
    c.require_shape(2, {n.hidden});
    c.result({c.in(0).dtype, n.states()});
    c.result({c.in(0).dtype, n.gates(kGruGates + 1)});
  }
  static std::vector<Tensor> expand(const ExpandContext& e, const Attrs& a) {
    const std::int64_t steps = e.in(0).dim(0), hidden = e.in(3).dim(1);
    Tensor h = e.in(3);
    Steps ys = unrolled(steps), all_gates = ys;
    for (const std::int64_t t : walk(steps, a.reverse)) {
      const Tensor x = step_of(e.in(0), t);
      const Tensor both = sigmoid(slice_axis(x, 1, 0, 2 * hidden) +
                                  matmul(h, slice_axis(e.in(1), 1, 0, 2 * hidden)));
      const Tensor r = part(both, 0, hidden), z = part(both, 1, hidden), scaled = r * h;
      const Tensor product = matmul(a.reset_first ? scaled : h, part(e.in(1), 2, hidden)) + e.in(2);
      const Tensor fresh = tanh(part(x, 2, hidden) + (a.reset_first ? product : r * product));
      h = (1.0 - z) * fresh + z * h;
      const auto at = static_cast<std::size_t>(t);
      ys[at] = h;
      all_gates[at] = concat({r, z, fresh, a.reset_first ? scaled : product}, 1);
    }
    return {stack(ys), stack(all_gates)};
  }
  static void grad(GradContext& g, const Attrs& a) {
    const auto gradient = [&](std::size_t result) {
      return make_all<GruGrad>({g.dy(), swapped(g.in(1)), g.out(1), g.out(0), g.in(3)}, a)[result];
    };
    g.give(0, [&] { return gradient(0); });
    g.give(1, [&] {
      const Tensor before = previous(g.out(), g.in(3), a.reverse), products = gradient(1);
      if (!a.reset_first) return weight_grad(before, products);
      const std::int64_t hidden = g.in(3).dim(1);
      return concat({weight_grad(before, slice_axis(products, 2, 0, 2 * hidden)),
                     weight_grad(part(g.out(1), 3, hidden), part(products, 2, hidden))},
                    1);
    });
    g.give(2, [&] { return sum(part(gradient(1), 2, g.in(3).dim(1)), {0, 1}); });
    g.give(3, [&] { return gradient(2); });
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](std::int64_t t, std::int64_t b, std::int64_t h) {
      return std::vector{floats({t, b, 3 * h}), floats({h, 3 * h}), floats({h}), floats({b, h})};
    };
    return {
        sample(inputs(3, 2, 2), Attrs{false, false}), sample(inputs(2, 3, 2), Attrs{true, false}),
        sample(inputs(3, 2, 2), Attrs{false, true}),  sample(inputs(2, 1, 3), Attrs{true, true}),
        sample(inputs(1, 1, 1), Attrs{false, false}), sample(inputs(2, 0, 3), Attrs{false, false})};
  }
};

// --- the plain recurrence

struct RnnGrad : op::RnnGrad, Family {
  static constexpr OpInfo info{name, "(dy, weight, y) -> (dx, dh0)",
                               "The gradients of rnn from its states."};
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = grad_sizes(c, 1);
    c.require_shape(2, n.states());
    c.result(c.in(0));
    c.result({c.in(0).dtype, n.state()});
  }
  static std::vector<Tensor> expand(const ExpandContext& e, const Attrs& a) {
    const Sizes n = sizes_of(e.in(0));
    Tensor dh = full_beside(e.in(0), n.state(), 0);
    Steps dx = unrolled(n.steps);
    for (const std::int64_t t : walk(n.steps, !a.reverse)) {
      const Tensor y = step_of(e.in(2), t);
      dh = dh + step_of(e.in(0), t);
      const Tensor dz = a.relu ? where(le(y, 0), 0.0, dh) : dh * tanh_slope(y);
      dh = matmul(dz, e.in(1));
      dx[static_cast<std::size_t>(t)] = dz;
    }
    return {stack(dx), dh};
  }
  static std::vector<Sample> samples() {
    const std::vector inputs{floats({3, 2, 2}), floats({2, 2}), floats({3, 2, 2}, 0.1, 0.9)};
    return {sample(inputs, Attrs{false, false}), sample(inputs, Attrs{true, true})};
  }
};

struct Rnn : op::Rnn, Family {
  static constexpr OpInfo info{name, "(x, weight, h0) -> y",
                               "y_t = tanh(x_t + y_(t-1) weight) over [steps, batch, hidden], with "
                               "weight [hidden, hidden]."};
  static void infer(InferContext& c, const Attrs&) {
    const Sizes n = layer_sizes(c, 1, 2);
    c.result({c.in(0).dtype, n.states()});
  }
  static Tensor expand(const ExpandContext& e, const Attrs& a) {
    Tensor h = e.in(2);
    Steps ys = unrolled(e.in(0).dim(0));
    for (const std::int64_t t : walk(e.in(0).dim(0), a.reverse)) {
      const Tensor z = step_of(e.in(0), t) + matmul(h, e.in(1));
      h = a.relu ? relu(z) : tanh(z);
      ys[static_cast<std::size_t>(t)] = h;
    }
    return stack(ys);
  }
  static void grad(GradContext& g, const Attrs& a) {
    const auto gradient = [&](std::size_t result) {
      return make_all<RnnGrad>({g.dy(), swapped(g.in(1)), g.out()}, a)[result];
    };
    g.give(0, [&] { return gradient(0); });
    g.give(1, [&] { return weight_grad(previous(g.out(), g.in(2), a.reverse), gradient(0)); });
    g.give(2, [&] { return gradient(1); });
  }
  static std::vector<Sample> samples() {
    const auto inputs = [](std::int64_t t, std::int64_t b, std::int64_t h) {
      return std::vector{floats({t, b, h}), floats({h, h}), floats({b, h})};
    };
    return {sample(inputs(3, 2, 2), Attrs{false, false}),
            sample(inputs(2, 3, 2), Attrs{true, true}),
            sample(inputs(1, 1, 1), Attrs{false, false})};
  }
};

}  // namespace

std::vector<const OpDef*> recurrent_ops() {
  return family<Lstm, LstmGrad, Gru, GruGrad, Rnn, RnnGrad>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

LstmStates lstm(Operand x, Operand weight, Operand h0, Operand c0, const RecurrentOptions& o) {
  const std::vector<Tensor> results = make_all<Lstm>({x, weight, h0, c0}, {o.reverse});
  return {results[0], results[1]};
}
Tensor gru(Operand x, Operand weight, Operand bias, Operand h0, const GruOptions& o) {
  return make<Gru>({x, weight, bias, h0}, {o.reverse, o.reset_first});
}
Tensor rnn(Operand x, Operand weight, Operand h0, const RnnOptions& o) {
  return make<Rnn>({x, weight, h0}, {o.reverse, o.relu});
}

}  // namespace pantala
