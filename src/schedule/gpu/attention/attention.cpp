#include "schedule/gpu/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/attention.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "schedule/common/sizes.h"
#include "schedule/estimate.h"
#include "schedule/gpu/attention/kernels.h"

namespace pantala::schedule::gpu {

namespace {

constexpr double kExponential = 20;  // in additions

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

// The most positions of its own that a workgroup has room for.
AttentionShape shape_of(AttentionPart part, DType dtype, const AttentionSizes& sizes,
                        const Target& target) {
  AttentionShape shape{.room = scratch_size(std::max<std::int64_t>(sizes.head_dim, 1))};
  while (shape.own > kLeastOwn && shape.bytes(part, dtype) > target.group_bytes) shape.own /= 2;
  return shape;
}

std::int64_t items_of(AttentionPart part, const AttentionSizes& sizes, int own) {
  if (part == AttentionPart::key_grad)
    return sizes.batch * sizes.key_heads * blocks_of(sizes.keys, own);
  const std::int64_t block = part == AttentionPart::row_dots ? kAttentionThreads : own;
  return sizes.batch * sizes.heads * blocks_of(sizes.queries, block);
}

AttentionKernel kernel_of(const Context& context, AttentionPart part, const AttentionSpec& spec,
                          const AttentionSizes& sizes) {
  const AttentionShape shape = shape_of(part, spec.dtype, sizes, context.target);
  if (shape.bytes(part, spec.dtype) > context.target.group_bytes)
    throw UnsupportedError(
        fmt::format("attention: heads of {} elements do not fit into {} bytes of shared memory",
                    sizes.head_dim, context.target.group_bytes));
  AttentionKernel made{.kernel = {}, .items = items_of(part, sizes, shape.own), .block = shape.own};
  switch (part) {
    case AttentionPart::forward:
      made.kernel = build_attention_forward(spec, shape);
      break;
    case AttentionPart::row_dots:
      made.kernel = build_attention_dots(spec);
      break;
    default:
      made.kernel = build_attention_grad(part, spec, shape);
  }
  return made;
}

constexpr AttentionDevice kDevice{
    .grad_parts =
        [](const Context&, const AttentionSizes&) {
          return std::vector{AttentionPart::row_dots, AttentionPart::query_grad,
                             AttentionPart::key_grad};
        },
    .kernel = kernel_of,
};

std::vector<Effort> efforts_of_attention(const EffortSite& at) {
  const ir::Node& node = at.context.node(at.group.anchors[0]);
  const AttentionSizes sizes = attention_sizes(at.context, node);
  const double seen = ir::attributes<op::AttentionAttrs>(node).causal ? 0.5 : 1;
  const double pairs = seen * static_cast<double>(sizes.batch * sizes.heads * sizes.queries) *
                       static_cast<double>(sizes.keys);
  std::vector<Effort> efforts;
  for (const AttentionPart part : attention_parts(at.context, node, kDevice)) {
    const int own = shape_of(part, node.results[0].dtype, sizes, at.context.target).own;
    const double additions = part == AttentionPart::row_dots
                                 ? static_cast<double>(sizes.batch * sizes.heads) *
                                       static_cast<double>(sizes.queries * sizes.head_dim)
                                 : flops_of(part, sizes) * seen / 2 + kExponential * pairs;
    efforts.push_back({.cycles = at.table.attention * additions * at.table.vector_op,
                       .items = static_cast<double>(items_of(part, sizes, own))});
  }
  return efforts;
}

}  // namespace

const Archetype& attention_archetype() {
  static const Archetype archetype = [] {
    Archetype row = attention_row();
    row.reduction_order = [](const Context&, std::uint32_t) {
      return ReductionOrder{"attention", {kBlock}};
    };
    row.work = [](const Context& context, const Group& group) {
      return work_of_attention(context, group, kDevice);
    };
    row.efforts = efforts_of_attention;
    row.build = [](Building& building, const Group& group) {
      return build_attention_group(building, group, kDevice);
    };
    return row;
  }();
  return archetype;
}

}  // namespace pantala::schedule::gpu
