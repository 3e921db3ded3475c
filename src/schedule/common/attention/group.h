// The attention archetypes in the graph: what their groups read and make, and the launches of the
// kernels that a device builds.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/archetype.h"
#include "schedule/building.h"
#include "schedule/common/attention/arguments.h"
#include "schedule/work.h"

namespace pantala::schedule {

// A kernel whose arguments are those of declare_attention(); `block` is one of them.
struct AttentionKernel {
  kir::Kernel kernel;
  std::int64_t items = 0, block = 0;
};
struct AttentionDevice {
  // The kernels that make the gradients, in order: row_dots and either all_grads or the other two.
  std::vector<AttentionPart> (*grad_parts)(const Context& context, const AttentionSizes& sizes);
  AttentionKernel (*kernel)(const Context& context, AttentionPart part, const AttentionSpec& spec,
                            const AttentionSizes& sizes);
};

AttentionSizes attention_sizes(const Context& context, const ir::Node& node);
double flops_of(AttentionPart part, const AttentionSizes& sizes);
std::vector<AttentionPart> attention_parts(const Context& context, const ir::Node& node,
                                           const AttentionDevice& device);

// All operands and all results. Of a cache as much as it can hold: how full it is shows when it is
// run.
Work work_of_attention(const Context& context, const Group& group, const AttentionDevice& device);
std::vector<KernelDraft> build_attention_group(Building& building, const Group& group,
                                               const AttentionDevice& device);

// The row of attention in a device's table, but for what is the device's own: the order of sums,
// work, efforts and kernels.
Archetype attention_row();

}  // namespace pantala::schedule
