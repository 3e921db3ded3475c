// Contractions of the graph as kernels: the axes of the op become batch, m, n and k, operands are
// read through movement ops in place, and work on the result is an epilogue.
#pragma once

#include <optional>
#include <vector>

#include "schedule/context.h"
#include "schedule/cpu/contract.h"

namespace pantala::schedule {

// An operand that a contraction can read where it lies.
struct ProductOperand {
  ValueId source;  // a stored value, or one that will be
  bool k_inner = true;
  std::int64_t batch = 0, ld = 0;  // strides
};
// `side` 0 or 1 of a contract node; nothing if its elements must be laid out first. `is_stored`
// says which values (will) have buffers; strides are those of the context.
std::optional<ProductOperand> operand_of(const Context& context, std::uint32_t node, int side,
                                         const std::function<bool(ValueId)>& is_stored);

// Whether values of the result's shape can be computed in the epilogue: every access must walk the
// axes of m together, and those of n.
bool fits_epilogue(const Context& context, std::uint32_t node,
                   const std::vector<GroupOutput>& outputs);

// `outputs` are computed from the product, of which nothing else is kept; one of them may be the
// product itself.
KernelDraft build_product(Context& context, std::uint32_t node,
                          const std::vector<GroupOutput>& outputs);

}  // namespace pantala::schedule
