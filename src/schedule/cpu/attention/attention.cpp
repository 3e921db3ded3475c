#include "schedule/cpu/attention/attention.h"

#include "ops/attention.h"
#include "ops/face.h"
#include "pantala/error.h"
#include "schedule/common/attention/group.h"
#include "schedule/cpu/attention/kernel.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

namespace {

constexpr double kExponential = 20;  // in additions
constexpr double kDot = 3;           // a sum across the lanes of a vector, in beginnings of rows
constexpr double kGradient = 1.25;   // what sums that are kept in memory cost on top

constexpr AttentionDevice kDevice{
    .grad_parts =
        [](const Context& context, const AttentionSizes& sizes) {
          return choose_grad_parts(sizes, context.options.workers);
        },
    .kernel =
        [](const Context& context, AttentionPart part, const AttentionSpec& spec,
           const AttentionSizes& sizes) {
          const AttentionTiling tiling =
              choose_tiling(part, spec, sizes, context.target, context.options.workers);
          if (const std::string wrong = broken_rule(part, spec, sizes, tiling); !wrong.empty())
            throw InternalError("schedule: attention: " + wrong);
          return AttentionKernel{build_attention("attention", part, spec, tiling),
                                 attention_items(part, sizes, tiling), tiling.block};
        },
};

std::vector<Effort> efforts_of_attention(const EffortSite& at) {
  const Context& context = at.context;
  const ir::Node& node = context.node(at.group.anchors[0]);
  const AttentionSizes sizes = attention_sizes(context, node);
  const auto attrs = ir::attributes<op::AttentionAttrs>(node);
  const AttentionSpec spec{.dtype = node.results[0].dtype, .causal = attrs.causal};
  const double lanes = context.target.lanes(spec.dtype);
  const double all = static_cast<double>(sizes.batch * sizes.heads * sizes.queries);
  // Half of the pairs where only earlier keys are seen, and what the last tile of a row wastes.
  const double seen = spec.causal ? 0.5 + 0.5 * lanes / static_cast<double>(sizes.keys + 1) : 1;
  std::vector<Effort> efforts;
  for (const AttentionPart part : attention_parts(context, node, kDevice)) {
    const AttentionTiling tiling =
        choose_tiling(part, spec, sizes, context.target, context.options.workers);
    Effort effort{.items = static_cast<double>(attention_items(part, sizes, tiling))};
    if (part == AttentionPart::row_dots) {
      effort.cycles = all * (static_cast<double>(sizes.head_dim) / lanes *
                                 (2 * at.table.vector_access + at.table.vector_op) +
                             kDot * at.table.row);
    } else {
      // Two fmas a cycle, and an exponential for every pair.
      const double pairs = all * static_cast<double>(sizes.keys) * seen / lanes;
      effort.cycles = at.table.attention * (flops_of(part, sizes) * seen / lanes / 4 +
                                            kExponential * pairs * at.table.vector_op);
      if (part != AttentionPart::forward) effort.cycles *= kGradient;
    }
    efforts.push_back(effort);
  }
  return efforts;
}

ReductionOrder order_of_node(const Context& context, std::uint32_t node) {
  return {"attention", {kKeyBlock, context.target.lanes(context.node(node).results[0].dtype)}};
}

}  // namespace

const Archetype& attention_archetype() {
  static const Archetype archetype = [] {
    Archetype row = attention_row();
    row.reduction_order = order_of_node;
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

}  // namespace pantala::schedule::cpu
