#include "schedule/layout.h"

#include <algorithm>

namespace pantala::schedule {

namespace {

bool is_pool(const ir::OpDef& op) {
  return op.name == "max_pool2d" || op.name == "max_pool2d_grad" || op.name == "avg_pool2d" ||
         op.name == "avg_pool2d_grad";
}

// Tensors with channels at axis 1 and something behind it.
bool has_channels(const Shape& shape) { return shape.rank() >= 3 && shape.rank() <= 5; }

}  // namespace

Layouts::Layouts(const Context& context, const Pieces& pieces,
                 const std::vector<std::vector<int>>& members)
    : context_(context) {
  for (const Piece& piece : pieces.list) {
    const ir::Node& node = context.node(piece.node);
    if (piece.kind != Archetype::convolution) continue;
    const bool weight_grad = node.op->name == "convolution_weight_grad";
    if (!weight_grad) channels_last_.insert({piece.node, 0});
    channels_last_.insert(node.inputs[0]);
    if (weight_grad) channels_last_.insert(node.inputs[1]);
  }
  if (channels_last_.empty()) return;
  spread(context, pieces);
  for (const std::vector<int>& group : members) keep_row_major(context, pieces, group);
}

// Products walk their operands, their results and what their epilogues read with one stride along
// each of their axes; attention reads and writes heads whose elements are neighbours.
void Layouts::keep_row_major(const Context& context, const Pieces& pieces,
                             const std::vector<int>& group) {
  const auto piece = [&](int k) -> const Piece& {
    return pieces.list[static_cast<std::size_t>(k)];
  };
  const bool walks = std::any_of(group.begin(), group.end(), [&](int k) {
    return piece(k).kind == Archetype::contract || piece(k).kind == Archetype::attention;
  });
  if (!walks) return;
  for (const int k : group) {
    for (const Access& read : piece(k).reads) channels_last_.erase(read.value);
    for (std::uint32_t r = 0; r < context.node(piece(k).node).results.size(); ++r)
      channels_last_.erase({piece(k).node, r});
  }
}

// Through pools, and through what is computed element by element from a tensor of the same shape.
void Layouts::spread(const Context& context, const Pieces& pieces) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Piece& piece : pieces.list) {
      const ir::Node& node = context.node(piece.node);
      if (piece.kind != Archetype::elemental || !has_channels(node.results[0].shape)) continue;
      for (const Access& read : piece.reads) {
        const Shape& shape = context.type(read.value).shape;
        if (!has_channels(shape) || (!is_pool(*node.op) && !(shape == node.results[0].shape)))
          continue;
        const bool here = channels_last_.contains({piece.node, 0}),
                   there = channels_last_.contains(read.value);
        if (here == there) continue;
        channels_last_.insert(read.value);
        for (std::uint32_t r = 0; r < node.results.size(); ++r)
          channels_last_.insert({piece.node, r});
        changed = true;
      }
    }
  }
}

std::vector<int> Layouts::order_of(ValueId value) const {
  if (!channels_last_.contains(value)) return {};
  std::vector<int> order{0};
  for (int axis = 2; axis < context_.type(value).shape.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

}  // namespace pantala::schedule
