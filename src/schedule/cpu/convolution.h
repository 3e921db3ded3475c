// Convolutions of the graph as kernels (cpu/conv.h), with work on their results as an epilogue.
#pragma once

#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

// `outputs` have the shape of the result and are computed from it element by element.
std::vector<KernelDraft> build_convolution(Context& context, std::uint32_t node,
                                           const std::vector<GroupOutput>& outputs);

}  // namespace pantala::schedule
