// The forward kernel: per step, the products of the rows' states with the weight, and the cell. The
// states of a step and of the next lie in scratch, in turns.
#include "kir/math.h"
#include "schedule/cpu/recurrent/parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

class ForwardKernel {
 public:
  ForwardKernel(std::string name, const RecurrentSpec& spec, const RecurrentTiling& tiling)
      : w_(std::move(name), spec, tiling), b(w_.b) {}

  kir::Kernel build() {
    declare();
    w_.open_item();
    load_states();
    w_.each_step([&](Var number, Var step) {
      const Var now = number % 2 * w_.part_size(), next = w_.part_size() - now;
      w_.each_vector([&](Var unit) { run_vector(step, now, next, unit); });
    });
    return b.finish();
  }

 private:
  bool is(Cell cell) const { return w_.spec.cell == cell; }

  void declare() {
    x_ = w_.read("x");
    weight_ = w_.read("weight");
    if (is(Cell::gru)) bias_ = w_.read("bias");
    h0_ = w_.read("h0");
    if (is(Cell::lstm)) c0_ = w_.read("c0");
    y_ = w_.write("y");
    if (is(Cell::lstm) && w_.spec.save_c) c_ = w_.write("c");
    if (w_.spec.save_gates) gates_ = w_.write("gates");
    h_ = w_.scratch("h", 2);
    if (is(Cell::lstm)) cell_ = w_.scratch("cell");
  }

  void load_states() {
    w_.each_vector([&](Var unit) {
      w_.each_row([&](int row) {
        const Var from = w_.in_state(row, unit), to = w_.in_scratch(row, unit);
        w_.store(h_, to, unit, w_.load(h0_, from, unit));
        if (is(Cell::lstm)) w_.store(cell_, to, unit, w_.load(c0_, from, unit));
      });
    });
  }

  // One vector of hidden units of all rows.
  void run_vector(Var step, Var now, Var next, Var unit) {
    const std::vector<Var> sums = w_.products(
        weight_, unit, [&](int row, int, Var k) { return b.load(h_, now + w_.in_scratch(row, k)); },
        [&](int gate, Var k) { return (k * w_.gates + gate) * w_.hidden; });
    w_.each_row([&](int row) {
      std::vector<Var> x;
      for (int gate = 0; gate < w_.gates; ++gate)
        x.push_back(w_.load(x_, w_.in_gates(step, row, gate, unit, w_.gates), unit));
      const Var before = w_.load(h_, now + w_.in_scratch(row, unit), unit);
      const Var h = is(Cell::lstm)  ? lstm(step, row, unit, x, sums)
                    : is(Cell::gru) ? gru(step, row, unit, x, sums, before)
                                    : rnn(x[0] + w_.of(sums, row, 0));
      w_.store(h_, next + w_.in_scratch(row, unit), unit, h);
      w_.store(y_, w_.in_states(step, row, unit), unit, h);
    });
  }

  void save(Var step, int row, Var unit, const std::vector<Var>& gates) {
    if (!w_.spec.save_gates) return;
    const auto count = static_cast<int>(gates.size());
    for (int gate = 0; gate < count; ++gate)
      w_.store(gates_, w_.in_gates(step, row, gate, unit, count), unit,
               gates[static_cast<std::size_t>(gate)]);
  }

  Var lstm(Var step, int row, Var unit, const std::vector<Var>& x, const std::vector<Var>& sums) {
    const auto gate = [&](int k) { return x[static_cast<std::size_t>(k)] + w_.of(sums, row, k); };
    const Var i = kir::math::sigmoid(gate(0)), f = kir::math::sigmoid(gate(1)),
              g = kir::math::tanh(gate(2)), o = kir::math::sigmoid(gate(3));
    const Var at = w_.in_scratch(row, unit);
    const Var c = f * w_.load(cell_, at, unit) + i * g;
    w_.store(cell_, at, unit, c);
    if (w_.spec.save_c) w_.store(c_, w_.in_states(step, row, unit), unit, c);
    save(step, row, unit, {i, f, g, o});
    return o * kir::math::tanh(c);
  }

  Var gru(Var step, int row, Var unit, const std::vector<Var>& x, const std::vector<Var>& sums,
          Var before) {
    const Var r = kir::math::sigmoid(x[0] + w_.of(sums, row, 0)),
              z = kir::math::sigmoid(x[1] + w_.of(sums, row, 1)),
              product = w_.of(sums, row, 2) + w_.load(bias_, unit, unit),
              fresh = kir::math::tanh(x[2] + r * product);
    save(step, row, unit, {r, z, fresh, product});
    return (w_.number(1) - z) * fresh + z * before;
  }

  Var rnn(Var z) {
    if (is(Cell::rnn_tanh)) return kir::math::tanh(z);
    return b.select(le(z, w_.number(0)), w_.number(0), z);  // NaN stays
  }

  RecurrentWriter w_;
  kir::Builder& b;
  kir::BufferId x_, weight_, bias_, h0_, c0_, y_, c_, gates_, h_, cell_;
};

}  // namespace

kir::Kernel build_recurrent(std::string name, const RecurrentSpec& spec,
                            const RecurrentTiling& tiling) {
  return ForwardKernel(std::move(name), spec, tiling).build();
}

}  // namespace pantala::schedule::cpu
