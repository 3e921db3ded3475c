// The gradient kernel walks back through the steps: per step, first the gradients of what entered
// the gates, then their products with the weight, which are the gradient of the state before.
#include "kir/math.h"
#include "schedule/common/recurrent/parts.h"

namespace pantala::schedule {

using kir::Var;

namespace {

class GradKernel {
 public:
  GradKernel(std::string name, const RecurrentSpec& spec, const RecurrentTiling& tiling)
      : w_(std::move(name), spec, tiling), b(w_.b) {}

  kir::Kernel build() {
    declare();
    w_.open_item();
    w_.each_vector([&](Var unit) {
      w_.each_row([&](int row) {
        w_.store(dh_, w_.in_scratch(row, unit), unit, w_.number(0));
        if (is(Cell::lstm)) w_.store(dcell_, w_.in_scratch(row, unit), unit, w_.number(0));
      });
    });
    w_.each_step([&](Var number, Var step) {
      const Var is_first = eq(number, w_.steps - 1);  // of the layer: the last that is visited
      w_.each_vector(
          [&](Var unit) { w_.each_row([&](int row) { cell({step, is_first, row, unit}); }); });
      if (is(Cell::gru_reset_first))
        w_.each_vector([&](Var unit) { carry_scaled(step, is_first, unit); });
      w_.each_vector([&](Var unit) { carry(step, unit); });
    });
    finish();
    return b.finish();
  }

 private:
  struct Place {
    Var step, is_first;
    int row;
    Var unit;
  };
  bool is(Cell cell) const { return w_.spec.cell == cell; }

  void declare() {
    dy_ = w_.read("dy");
    weight_ = w_.read("weight");
    if (is(Cell::lstm)) {
      states_ = w_.read("c");
      gates_ = w_.read("gates");
      first_ = w_.read("c0");
      if (w_.spec.has_dc) dc_ = w_.read("dc");
    } else if (w_.is_gru()) {
      gates_ = w_.read("gates");
      states_ = w_.read("y");
      first_ = w_.read("h0");
    } else {
      states_ = w_.read("y");
    }
    // What goes through the weight is read again by the products.
    if (w_.is_gru()) {
      dx_ = w_.write("dx");
      through_ = w_.declare("dproduct", kir::Access::read_write);
    } else {
      through_ = w_.declare("dx", kir::Access::read_write);
    }
    dh0_ = w_.write("dh0");
    if (is(Cell::lstm)) dc0_ = w_.write("dc0");
    dh_ = w_.scratch("dh");
    if (is(Cell::lstm)) dcell_ = w_.scratch("dcell");
  }

  // The state that the step started from.
  Var before(const Place& p) {
    return b.branch(
        p.is_first,
        [&] { return std::vector{w_.load(first_, w_.in_state(p.row, p.unit), p.unit)}; },
        [&] {
          return std::vector{
              w_.load(states_, w_.in_states(p.step + w_.direction, p.row, p.unit), p.unit)};
        })[0];
  }
  Var gate(const Place& p, int k) {
    return w_.load(gates_, w_.in_gates(p.step, p.row, k, p.unit, 4), p.unit);
  }
  Var state(const Place& p) {
    return w_.load(states_, w_.in_states(p.step, p.row, p.unit), p.unit);
  }
  void give(kir::BufferId to, const Place& p, int gate, Var value) {
    w_.store(to, w_.in_gates(p.step, p.row, gate, p.unit, w_.gates), p.unit, value);
  }
  void give(kir::BufferId to, const Place& p, const std::vector<Var>& gates) {
    for (int k = 0; k < w_.gates; ++k) give(to, p, k, gates[static_cast<std::size_t>(k)]);
  }
  // Of a gate that enters the products as it is.
  void give_both(const Place& p, int gate, Var value) {
    give(dx_, p, gate, value);
    give(through_, p, gate, value);
  }
  Var sigmoid_slope(Var s) { return s * (w_.number(1) - s); }
  Var tanh_slope(Var s) { return w_.number(1) - s * s; }

  void cell(const Place& p) {
    const Var at = w_.in_scratch(p.row, p.unit);
    const Var dh =
        w_.load(dh_, at, p.unit) + w_.load(dy_, w_.in_states(p.step, p.row, p.unit), p.unit);
    if (is(Cell::lstm)) return lstm(p, dh);
    if (w_.is_gru()) return gru(p, dh);
    const Var y = state(p);
    give(through_, p,
         {is(Cell::rnn_tanh) ? dh * tanh_slope(y)
                             : b.select(le(y, w_.number(0)), w_.number(0), dh)});
  }

  void lstm(const Place& p, Var dh) {
    const Var at = w_.in_scratch(p.row, p.unit);
    const Var i = gate(p, 0), f = gate(p, 1), g = gate(p, 2), o = gate(p, 3),
              squashed = kir::math::tanh(state(p));
    Var dc = w_.load(dcell_, at, p.unit);
    if (w_.spec.has_dc) dc = dc + w_.load(dc_, w_.in_states(p.step, p.row, p.unit), p.unit);
    dc = dc + dh * o * tanh_slope(squashed);
    give(through_, p,
         {dc * g * sigmoid_slope(i), dc * before(p) * sigmoid_slope(f), dc * i * tanh_slope(g),
          dh * squashed * sigmoid_slope(o)});
    w_.store(dcell_, at, p.unit, dc * f);
  }

  void gru(const Place& p, Var dh) {
    const Var r = gate(p, 0), z = gate(p, 1), fresh = gate(p, 2), product = gate(p, 3);
    const Var dfresh = dh * (w_.number(1) - z) * tanh_slope(fresh);
    give_both(p, 1, dh * (before(p) - fresh) * sigmoid_slope(z));
    w_.store(dh_, w_.in_scratch(p.row, p.unit), p.unit, dh * z);  // what passes by the gates
    if (is(Cell::gru_reset_first)) return give_both(p, 2, dfresh);
    give_both(p, 0, dfresh * product * sigmoid_slope(r));
    give(dx_, p, 2, dfresh);
    give(through_, p, 2, dfresh * r);
  }

  RecurrentWriter::Sums products(Var step, Var unit, const RecurrentWriter::Gates& which) {
    return w_.products(
        weight_, unit, which,
        [&](int row, int gate, Var k) {
          return b.load(through_, w_.in_gates(step, row, gate, k, w_.gates));
        },
        [&](int gate, Var k) { return (gate * w_.hidden + k) * w_.hidden; });
  }

  // Through the product of the state that the reset gate scaled.
  void carry_scaled(Var step, Var is_first, Var unit) {
    const RecurrentWriter::Sums sums = products(step, unit, {2, 1});
    w_.each_row([&](int row) {
      const Place p{step, is_first, row, unit};
      const Var at = w_.in_scratch(row, unit), r = gate(p, 0), dscaled = sums.of(row, 2);
      give_both(p, 0, dscaled * before(p) * sigmoid_slope(r));
      w_.store(dh_, at, unit, w_.load(dh_, at, unit) + dscaled * r);
    });
  }

  // The gradient of the state before, a vector of all rows.
  void carry(Var step, Var unit) {
    const RecurrentWriter::Gates which =
        is(Cell::gru_reset_first) ? RecurrentWriter::Gates{0, 2} : w_.all_gates();
    const RecurrentWriter::Sums sums = products(step, unit, which);
    w_.each_row([&](int row) {
      Var sum = sums.of(row, 0);
      for (int gate = 1; gate < which.count; ++gate) sum = sum + sums.of(row, gate);
      const Var at = w_.in_scratch(row, unit);
      if (w_.is_gru()) sum = w_.load(dh_, at, unit) + sum;
      w_.store(dh_, at, unit, sum);
    });
  }

  void finish() {
    w_.each_vector([&](Var unit) {
      w_.each_row([&](int row) {
        const Var from = w_.in_scratch(row, unit), to = w_.in_state(row, unit);
        w_.store(dh0_, to, unit, w_.load(dh_, from, unit));
        if (is(Cell::lstm)) w_.store(dc0_, to, unit, w_.load(dcell_, from, unit));
      });
    });
  }

  RecurrentWriter w_;
  kir::Builder& b;
  kir::BufferId dy_, weight_, states_, gates_, first_, dc_, dx_, through_, dh0_, dc0_, dh_, dcell_;
};

}  // namespace

kir::Kernel build_recurrent_grad(std::string name, const RecurrentSpec& spec,
                                 const RecurrentTiling& tiling) {
  return GradKernel(std::move(name), spec, tiling).build();
}

}  // namespace pantala::schedule
