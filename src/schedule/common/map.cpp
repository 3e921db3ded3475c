#include "schedule/common/map.h"

#include <algorithm>

#include "ops/face.h"
#include "ops/index.h"
#include "ops/slicing.h"
#include "pantala/ops/slicing.h"
#include "schedule/building.h"
#include "schedule/company.h"

namespace pantala::schedule {

namespace {

constexpr std::size_t kMostParts = 16;  // of a concat, which computes all of them for each element

// A concat of many parts is a tree of smaller ones.
std::vector<Tensor> append_map(ir::GraphData&, const ir::Node& node, std::vector<Tensor> inputs) {
  if (!ops::is<op::Concat>(node) || inputs.size() <= kMostParts) return {};
  const std::int64_t axis = ir::attributes<op::Concat>(node).axis;
  while (inputs.size() > 1) {
    std::vector<Tensor> joined;
    for (std::size_t k = 0; k < inputs.size(); k += kMostParts) {
      const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(k);
      const auto count = std::min(kMostParts, inputs.size() - k);
      joined.push_back(concat({first, first + static_cast<std::ptrdiff_t>(count)}, axis));
    }
    inputs = std::move(joined);
  }
  return inputs;
}

// Whether the outputs are one update_slice that replaces its own operand. (An update without
// elements has no code of its own, and its position must be checked all the same.)
bool is_window(const Context& context, const std::vector<GroupOutput>& outputs) {
  const ir::Node& node = context.node(outputs[0].value.node);
  if (outputs.size() != 1 || !ops::is<op::UpdateSlice>(node)) return false;
  const ValueId operand = node.inputs[0];
  // What is stored already is only copied.
  return !context.is_stored(outputs[0].value) && context.is_stored(operand) &&
         context.buffer_of(operand) == outputs[0].buffer &&
         context.type(node.inputs[1]).shape.numel() > 0;
}

}  // namespace

ElementwiseBody map_body(const Context& context, const std::vector<GroupOutput>& outputs) {
  return is_window(context, outputs)
             ? make_window_body(context, outputs[0])
             : make_body(context, outputs, {context.type(outputs[0].value).shape.vec()});
}

Work work_of_map(const Context& context, const std::vector<GroupOutput>& outputs, int kernel) {
  return work_of(context, map_body(context, outputs), kernel);
}

Archetype map_row(std::vector<KernelDraft> (*build)(Building& building, const Group& group)) {
  return {
      .name = "map",
      .append = append_map,
      .reads =
          [](const Context& context, const ValueInfo& info, std::uint32_t node) {
            return reads_of(info, {node, 0}, context.node(node).results[0].shape);
          },
      .can_join = [](const Company& company) { return company.is_one_map(); },
      .work = [](const Context& context,
                 const Group& group) { return work_of_map(context, group.outputs); },
      .build = build,
  };
}

}  // namespace pantala::schedule
