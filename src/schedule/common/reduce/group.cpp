#include "schedule/common/reduce/group.h"

#include <algorithm>
#include <set>

#include "ops/face.h"
#include "ops/movement.h"
#include "ops/reduce.h"

namespace pantala::schedule {

namespace {

bool is_reduced(const ReduceGroup& group, int axis) {
  return std::binary_search(group.axes.begin(), group.axes.end(), axis);
}

// The shapes between which the code of a group only changes the axes of what is reduced.
class Reshapes {
 public:
  Reshapes(const Context& context, const ReduceGroup& group) : context_(context), group_(group) {
    for (const ValueId id : group.reductions) visit(context.node(id.node).inputs[0].node);
    for (const GroupOutput& output : group.outputs) visit(output.value.node);
  }
  const std::vector<Shape>& shapes() const& { return shapes_; }

 private:
  void visit(std::uint32_t id) {
    if (!seen_.insert(id).second) return;
    const ir::Node& node = context_.node(id);
    if (ops::is<op::Reshape>(node) && is_full_shape(group_, node.results[0].shape))
      for (const Shape& shape : {node.results[0].shape, context_.type(node.inputs[0]).shape})
        if (std::ranges::find(shapes_, shape) == shapes_.end()) shapes_.push_back(shape);
    for (const ValueId input : node.inputs)
      if (!context_.is_stored(input)) visit(input.node);
  }

  const Context& context_;
  const ReduceGroup& group_;
  std::set<std::uint32_t> seen_;
  std::vector<Shape> shapes_;
};

}  // namespace

ReduceGroup reduce_group(const Context& context, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  return {
      context.type(n.inputs[0]).shape, ir::attributes<op::ReduceAttrs>(n).axes, {{node, 0}}, {}};
}

bool is_row_shape(const ReduceGroup& group, const Shape& shape) {
  Shape kept = group.full, without = group.full;
  for (std::size_t k = group.axes.size(); k-- > 0;) {
    kept = kept.with(static_cast<int>(group.axes[k]), 1);
    without = without.without(static_cast<int>(group.axes[k]));
  }
  return shape == kept || shape == without;
}

bool is_full_shape(const ReduceGroup& group, const Shape& shape) {
  return shape == group.full || (shape.numel() == group.full.numel() && shape.numel() > 0);
}

std::optional<ReduceLoops> loops_of(const Context& context, const ReduceGroup& group) {
  Shape axes = group.full;
  for (const GroupOutput& output : group.outputs) {
    const Shape& shape = context.type(output.value).shape;
    if (is_row_shape(group, shape)) continue;
    const std::optional<Shape> common = common_axes(axes, shape);
    if (!common) return std::nullopt;
    axes = *common;
  }
  // What the code reads through these has one stride along each loop then.
  const Reshapes reshapes(context, group);
  for (const Shape& shape : reshapes.shapes())
    if (const std::optional<Shape> common = common_axes(axes, shape)) axes = *common;
  ReduceLoops loops{{axes.vec()}, {}, std::vector<bool>(axes.vec().size(), true)};
  loops.reduced = full_indices(loops, group.full);
  for (const std::int64_t axis : group.axes)
    for (std::size_t d = 0; d < loops.is_kept.size(); ++d)
      if (loops.reduced[static_cast<std::size_t>(axis)].affine.coef[d] != 0)
        loops.is_kept[d] = false;
  return loops;
}

Indices row_indices(const ReduceGroup& group, const ReduceLoops& loops, const Shape& shape) {
  Indices at;
  const bool keeps = shape.rank() == group.full.rank();
  for (int axis = 0; axis < group.full.rank(); ++axis) {
    if (!is_reduced(group, axis))
      at.push_back(loops.reduced[static_cast<std::size_t>(axis)]);
    else if (keeps)
      at.push_back(Index::of(0));
  }
  return at;
}

Indices full_indices(const ReduceLoops& loops, const Shape& shape) {
  return indices_in(shape, loops.domain);
}

}  // namespace pantala::schedule
