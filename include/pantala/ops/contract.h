// Products. There is one product op, `contract`; matmul and linear are written with it.
#pragma once

#include <optional>

#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala {

// Which axes of a and b run together: batch axes appear in the result, contracted ones are summed
// over.
struct ContractAxes {
  IntList batch_a, batch_b, contract_a, contract_b;
};
// The result has the batch axes, then the free axes of a, then the free axes of b.
Tensor contract(Operand a, Operand b, const ContractAxes& axes);

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
// NumPy's rules: the last two axes are multiplied, the others are broadcast; a vector is a row on
// the left, a column on the right.
Tensor matmul(Operand a, Operand b, const MatmulOptions& options = {});
// x [..., in] times weight [out, in], transposed, plus bias [out].
Tensor linear(Operand x, Operand weight, const std::optional<Tensor>& bias = {});

}  // namespace pantala
