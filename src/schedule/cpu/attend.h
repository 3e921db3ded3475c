// Attention ops of the graph as kernels (cpu/attention.h).
#pragma once

#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

// attention, attention_grad or attention_cached. Every value occurs once among the outputs; results
// that nobody asked for are not kept.
std::vector<KernelDraft> build_attend(Context& context, std::uint32_t node,
                                      const std::vector<GroupOutput>& outputs);

}  // namespace pantala::schedule
