// The forward kernel: per step, the products of the rows' states with the weight, and the cell. The
// states of a step and of the next lie in scratch, in turns.
#include <array>

#include "kir/math.h"
#include "schedule/common/recurrent/parts.h"

namespace pantala::schedule {

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
      if (is(Cell::gru_reset_first)) {
        w_.each_vector([&](Var unit) { scale_states(step, now, unit); });
        w_.each_vector([&](Var unit) { run_scaled(step, now, next, unit); });
      } else {
        w_.each_vector([&](Var unit) { run_vector(step, now, next, unit); });
      }
    });
    return b.finish();
  }

 private:
  bool is(Cell cell) const { return w_.spec.cell == cell; }

  void declare() {
    x_ = w_.read("x");
    weight_ = w_.read("weight");
    if (w_.is_gru()) bias_ = w_.read("bias");
    h0_ = w_.read("h0");
    if (is(Cell::lstm)) c0_ = w_.read("c0");
    y_ = w_.write("y");
    if (is(Cell::lstm) && w_.spec.save_c) c_ = w_.write("c");
    if (w_.spec.save_gates) gates_ = w_.write("gates");
    h_ = w_.scratch("h", 2);
    if (is(Cell::lstm)) cell_ = w_.scratch("cell");
    if (is(Cell::gru_reset_first)) {
      scaled_ = w_.scratch("scaled");
      update_ = w_.scratch("update");
    }
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

  // Products of the states at `from` in scratch.
  RecurrentWriter::Sums products(kir::BufferId states, Var from, Var unit,
                                 const RecurrentWriter::Gates& which) {
    return w_.products(
        weight_, unit, which,
        [&, from](int row, int, Var k) { return b.load(states, from + w_.in_scratch(row, k)); },
        [&](int gate, Var k) { return (k * w_.gates + gate) * w_.hidden; });
  }
  Var input(Var step, int row, int gate, Var unit) {
    return w_.load(x_, w_.in_gates(step, row, gate, unit, w_.gates), unit);
  }
  void give(Var step, int row, Var next, Var unit, Var h) {
    w_.store(h_, next + w_.in_scratch(row, unit), unit, h);
    w_.store(y_, w_.in_states(step, row, unit), unit, h);
  }

  // One vector of hidden units of all rows.
  void run_vector(Var step, Var now, Var next, Var unit) {
    const RecurrentWriter::Sums sums = products(h_, now, unit, w_.all_gates());
    w_.each_row([&](int row) {
      std::vector<Var> x;
      for (int gate = 0; gate < w_.gates; ++gate) x.push_back(input(step, row, gate, unit));
      const Var before = w_.load(h_, now + w_.in_scratch(row, unit), unit);
      give(step, row, next, unit,
           is(Cell::lstm)  ? lstm(step, row, unit, x, sums)
           : is(Cell::gru) ? gru(step, row, unit, x, sums, before)
                           : rnn(x[0] + sums.of(row, 0)));
    });
  }

  // A reset gate that scales the state before its product: its products wait for all of them.
  void scale_states(Var step, Var now, Var unit) {
    const RecurrentWriter::Sums sums = products(h_, now, unit, {0, 2});
    w_.each_row([&](int row) {
      const Var at = w_.in_scratch(row, unit);
      const Var r = kir::math::sigmoid(input(step, row, 0, unit) + sums.of(row, 0)),
                z = kir::math::sigmoid(input(step, row, 1, unit) + sums.of(row, 1)),
                scaled = r * w_.load(h_, now + at, unit);
      w_.store(scaled_, at, unit, scaled);
      w_.store(update_, at, unit, z);
      save(step, row, unit, 0, r);
      save(step, row, unit, 1, z);
      save(step, row, unit, 3, scaled);
    });
  }
  void run_scaled(Var step, Var now, Var next, Var unit) {
    const RecurrentWriter::Sums sums = products(scaled_, b.i64(0), unit, {2, 1});
    w_.each_row([&](int row) {
      const Var at = w_.in_scratch(row, unit);
      const Var z = w_.load(update_, at, unit),
                product = sums.of(row, 2) + w_.load(bias_, unit, unit),
                fresh = kir::math::tanh(input(step, row, 2, unit) + product);
      save(step, row, unit, 2, fresh);
      give(step, row, next, unit, mixed(z, fresh, w_.load(h_, now + at, unit)));
    });
  }

  // Gates are saved in fours.
  void save(Var step, int row, Var unit, int gate, Var value) {
    if (w_.spec.save_gates) w_.store(gates_, w_.in_gates(step, row, gate, unit, 4), unit, value);
  }
  void save(Var step, int row, Var unit, const std::array<Var, 4>& gates) {
    for (int gate = 0; gate < 4; ++gate)
      save(step, row, unit, gate, gates[static_cast<std::size_t>(gate)]);
  }

  Var lstm(Var step, int row, Var unit, const std::vector<Var>& x,
           const RecurrentWriter::Sums& sums) {
    const auto gate = [&](int k) { return x[static_cast<std::size_t>(k)] + sums.of(row, k); };
    const Var i = kir::math::sigmoid(gate(0)), f = kir::math::sigmoid(gate(1)),
              g = kir::math::tanh(gate(2)), o = kir::math::sigmoid(gate(3));
    const Var at = w_.in_scratch(row, unit);
    const Var c = f * w_.load(cell_, at, unit) + i * g;
    w_.store(cell_, at, unit, c);
    if (w_.spec.save_c) w_.store(c_, w_.in_states(step, row, unit), unit, c);
    save(step, row, unit, {i, f, g, o});
    return o * kir::math::tanh(c);
  }

  Var gru(Var step, int row, Var unit, const std::vector<Var>& x, const RecurrentWriter::Sums& sums,
          Var before) {
    const Var r = kir::math::sigmoid(x[0] + sums.of(row, 0)),
              z = kir::math::sigmoid(x[1] + sums.of(row, 1)),
              product = sums.of(row, 2) + w_.load(bias_, unit, unit),
              fresh = kir::math::tanh(x[2] + r * product);
    save(step, row, unit, {r, z, fresh, product});
    return mixed(z, fresh, before);
  }
  Var mixed(Var z, Var fresh, Var before) { return (w_.number(1) - z) * fresh + z * before; }

  Var rnn(Var z) {
    if (is(Cell::rnn_tanh)) return kir::math::tanh(z);
    return b.select(le(z, w_.number(0)), w_.number(0), z);  // NaN stays
  }

  RecurrentWriter w_;
  kir::Builder& b;
  kir::BufferId x_, weight_, bias_, h0_, c0_, y_, c_, gates_, h_, cell_, scaled_, update_;
};

}  // namespace

kir::Kernel build_recurrent(std::string name, const RecurrentSpec& spec,
                            const RecurrentTiling& tiling) {
  return ForwardKernel(std::move(name), spec, tiling).build();
}

}  // namespace pantala::schedule
