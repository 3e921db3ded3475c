// What the two recurrent kernels share: the rows of an item, its walk through time, vectors of
// hidden units, and products of the states of the rows with a weight.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "schedule/common/recurrent/kernel.h"

namespace pantala::schedule {

class RecurrentWriter {
 public:
  RecurrentWriter(std::string name, const RecurrentSpec& spec, const RecurrentTiling& tiling)
      : b(std::move(name), tiling.threads),
        spec(spec),
        tiling(tiling),
        gates(gate_count(spec.cell)) {}

  kir::BufferId read(std::string name) { return declare(std::move(name), kir::Access::read); }
  kir::BufferId write(std::string name) { return declare(std::move(name), kir::Access::write); }
  kir::BufferId declare(std::string name, kir::Access access) {
    return b.buffer(std::move(name), spec.dtype, access);
  }
  // `parts` numbers per row and hidden unit.
  kir::BufferId scratch(std::string name, int parts = 1) {
    return b.scratch(std::move(name), spec.dtype, parts * part_size());
  }
  std::int64_t part_size() const { return tiling.rows * tiling.room; }
  // After the buffers: the parameters, and the rows of the item. Where the batch ends earlier, its
  // last row stands in for those that are missing; the same numbers are stored twice.
  void open_item();

  // Runs over the steps in the order of the walk; `number` counts from 0.
  void each_step(const std::function<void(kir::Var number, kir::Var step)>& body);
  // Over vectors of hidden units, from unit `at` on; then all threads meet, so that they may read
  // what others have written.
  void each_vector(const std::function<void(kir::Var at)>& body);
  void each_row(const std::function<void(int row)>& body) const;

  // Places of hidden unit `unit` of a row of the item.
  kir::Var in_scratch(int row, kir::Var unit) { return unit + row * tiling.room; }
  kir::Var in_state(int row, kir::Var unit) { return batch_row(row) * hidden + unit; }
  kir::Var in_states(kir::Var step, int row, kir::Var unit) {
    return (step * batch + batch_row(row)) * hidden + unit;
  }
  kir::Var in_gates(kir::Var step, int row, int gate, kir::Var unit, int count) {
    return ((step * batch + batch_row(row)) * count + gate) * hidden + unit;
  }

  // The vector of a buffer from `at` on, if it begins at `unit` of the hidden units.
  kir::Var load(kir::BufferId buffer, kir::Var at, kir::Var unit);
  void store(kir::BufferId buffer, kir::Var at, kir::Var unit, kir::Var value);
  kir::Var number(double value) { return b.constant({spec.dtype, tiling.lanes}, value); }

  bool is_gru() const { return spec.cell == Cell::gru || spec.cell == Cell::gru_reset_first; }

  // Some neighbouring gates.
  struct Gates {
    int first = 0, count = 1;
  };
  Gates all_gates() const { return {0, gates}; }
  // A vector per row and gate (row by row).
  struct Sums {
    Gates gates;
    std::vector<kir::Var> values;
    kir::Var of(int row, int gate) const {
      return values[static_cast<std::size_t>(row * gates.count + gate - gates.first)];
    }
  };
  // Sums over the hidden units k of factor(row, gate, k) * weight[weight_at(gate, k) + unit ...].
  Sums products(kir::BufferId weight, kir::Var unit, const Gates& which,
                const std::function<kir::Var(int row, int gate, kir::Var k)>& factor,
                const std::function<kir::Var(int gate, kir::Var k)>& weight_at);

  kir::Builder b;
  const RecurrentSpec spec;
  const RecurrentTiling tiling;
  const int gates;
  kir::Var steps, batch, hidden, start, direction;

 private:
  kir::Var batch_row(int row) const { return rows_[static_cast<std::size_t>(row)]; }
  kir::Var mask(kir::Var unit);

  std::vector<kir::Var> rows_;
};

}  // namespace pantala::schedule
