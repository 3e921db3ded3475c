// Recurrent networks over time, one layer and one direction at a time; pantala/nn.h has the layers
// of PyTorch made of them. x is [steps, batch, gates * hidden]: the input's part of the gates for
// all steps, which is one product outside of the recurrence. weight is [hidden, gates * hidden],
// the transpose of PyTorch's weight_hh. Gates stand in PyTorch's order.
#pragma once

#include "pantala/tensor.h"

namespace pantala {

struct RecurrentOptions {
  bool reverse = false;  // from the last step to the first
};
// All of [steps, batch, hidden].
struct LstmStates {
  Tensor h, c;
};
// Gates: input, forget, cell, output. h0 and c0 are [batch, hidden].
LstmStates lstm(Operand x, Operand weight, Operand h0, Operand c0,
                const RecurrentOptions& options = {});
struct GruOptions {
  bool reverse = false;
  bool reset_first = false;  // the reset gate scales the state itself, before its product
};
// Gates: reset, update, new; bias [hidden] is that of the recurrent part of the new gate, which the
// reset gate scales. Gives h of all steps.
Tensor gru(Operand x, Operand weight, Operand bias, Operand h0, const GruOptions& options = {});

struct RnnOptions {
  bool reverse = false;
  bool relu = false;  // instead of tanh
};
// h = tanh(x + h weight). Gives h of all steps.
Tensor rnn(Operand x, Operand weight, Operand h0, const RnnOptions& options = {});

}  // namespace pantala
