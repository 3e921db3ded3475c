// Recurrent layers: a kernel whose items are a few rows of the batch each, which they take through
// all steps, by a worker in vectors or by the threads of a workgroup that meet after each stage.
// Rows do not depend on each other, so that nobody waits for anybody; the number of steps, all
// sizes and the direction are run-time parameters, and one kernel serves every layer of the same
// cell whose hidden states fit its scratch.
//
// Tensors are row-major without gaps: x, gates, dx [steps, batch, gates * hidden]; y, c, dy, dc
// [steps, batch, hidden]; states [batch, hidden]; weight [hidden, gates * hidden], for gradients
// [gates * hidden, hidden]. Lanes lie along the hidden units.
//
// The bits depend on nothing but the numbers:
//  - a product is a chain of fma over the hidden units, ascending, from +0; gate = x + product
//    (gru: product + bias first where it has one).
//  - the gradient of a state is such a chain per gate; the chains are added up by ascending gate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/kernel.h"
#include "schedule/target.h"

namespace pantala::schedule {

enum class Cell : std::uint8_t { lstm, gru, gru_reset_first, rnn_tanh, rnn_relu };
// Blocks of the weight.
int gate_count(Cell cell);

struct RecurrentSpec {
  Cell cell = Cell::lstm;
  DType dtype = DType::f32;  // f32 or f64
  bool save_c = true;        // lstm: all c are stored
  bool save_gates = true;    // lstm, gru
  bool has_dc = false;       // gradient of lstm: c has one of its own
  friend bool operator==(const RecurrentSpec&, const RecurrentSpec&) = default;
};

struct RecurrentSizes {
  std::int64_t steps = 0, batch = 0, hidden = 0;
};

// Everything that may be chosen freely without a change of bits.
struct RecurrentTiling {
  int lanes = 8;
  int rows = 4;           // of the batch, per item
  bool whole = false;     // the hidden units fill their vectors
  std::int64_t room = 0;  // hidden units that scratch has room for
  int threads = 1;        // of an item, which share the hidden units out
};
RecurrentTiling choose_tiling(const RecurrentSpec& spec, const RecurrentSizes& sizes,
                              const Target& target, int workers);

// Buffers: x, weight, [gru: bias,] h0, [lstm: c0,] y, [save_c: c,] [save_gates: gates].
kir::Kernel build_recurrent(std::string name, const RecurrentSpec& spec,
                            const RecurrentTiling& tiling);
// Buffers: dy, weight, lstm: c, gates, c0, [dc,] dx, dh0, dc0;
//                      gru: gates, y, h0, dx, dproduct, dh0;   rnn: y, dx, dh0.
kir::Kernel build_recurrent_grad(std::string name, const RecurrentSpec& spec,
                                 const RecurrentTiling& tiling);
std::int64_t recurrent_items(const RecurrentSizes& sizes, const RecurrentTiling& tiling);
// Of either kernel; the gradient walks against the direction of its layer.
std::vector<std::int64_t> recurrent_params(const RecurrentSizes& sizes, bool from_the_last);

}  // namespace pantala::schedule
