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

// For the rows. The length of a cache is an i64; a number of the host is a parameter.
std::vector<Tensor> append_attention(ir::GraphData& target, const ir::Node& node,
                                     std::vector<Tensor> inputs);
bool attention_must_store(const Context& context, std::uint32_t node, std::size_t operand,
                          const IsStored& is_stored);
Reads reads_of_attention(const Context& context, const ValueInfo& info, std::uint32_t node);
// As its readers permute it, if they agree and the elements of a head stay together: heads come
// after positions where they are joined next, so that a product can read them.
std::vector<int> attention_order_for(const ir::Node& node, std::uint32_t result,
                                     const std::vector<const ir::Node*>& readers);

}  // namespace pantala::schedule
