// A contraction as the scheduler sees it: the loops of the product, and what is read and made along
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/archetype.h"
#include "schedule/common/contract/axes.h"
#include "schedule/common/elementwise.h"

namespace pantala::schedule {

struct ContractSizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  friend bool operator==(const ContractSizes&, const ContractSizes&) = default;
};

struct Contraction {
  Axes a, b;
  Domain domain;                       // of result and contracted axes
  int batch = 0, m = 0, n = 0, k = 0;  // how many loops of each
  ContractSizes sizes;
};
Contraction contraction_of(const Context& context, std::uint32_t node);
double flops_of(const Contraction& p);

// The elements of a side, 0 or 1, by the loops of the product.
Indices operand_indices(const Contraction& p, int side);
// How a side of a contract node is read, by the loops of the product. `is_stored` says which values
// (will) have buffers; strides are those of the context.
Footprint operand_reads(const Context& context, std::uint32_t node, int side, const Contraction& p,
                        const IsStored& is_stored);

// The outputs of a group, which are computed from the product element by element.
ElementwiseBody epilogue_body(const Context& context, std::uint32_t node, const Contraction& p,
                              const std::vector<GroupOutput>& outputs);

// What a group with a contraction as its anchor does.
Work work_of_contraction(const Context& context, const Group& group);

}  // namespace pantala::schedule
