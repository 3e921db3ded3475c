// Kernels that walk a part of a tensor in order: searches (argmax, argmin), running sums (cumsum)
// and scatters. Axes that are not walked are independent: they give the items and, where there is
// one, the lanes. Operands are computed element by element, so that pointwise work joins them.
//
// The bits do not depend on how the work is cut: every element of a result is made by one item, in
// the order that the op defines.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

// The outputs are buffers for the results of the node itself.
KernelDraft build_search(Context& context, std::uint32_t node,
                         const std::vector<GroupOutput>& outputs);
KernelDraft build_scan(Context& context, std::uint32_t node,
                       const std::vector<GroupOutput>& outputs);
// Two kernels: one writes what is scattered into, the other applies the updates in place.
std::vector<KernelDraft> build_scatter(Context& context, std::uint32_t node,
                                       const std::vector<GroupOutput>& outputs);

}  // namespace pantala::schedule
