#include "schedule/layout.h"

#include <algorithm>

namespace pantala::schedule {

namespace {

// Tensors with channels at axis 1 and something behind it.
bool has_channels(const Shape& shape) { return shape.rank() >= 3 && shape.rank() <= 5; }

}  // namespace

Layouts::Layouts(const Context& context, const Pieces& pieces, const Members& members)
    : context_(context) {
  for (const Piece& piece : pieces.list)
    if (piece.archetype->channels_last != nullptr)
      for (const ValueId value : piece.archetype->channels_last(context, piece.node))
        channels_last_.insert(value);
  if (channels_last_.empty()) return;
  spread(context, pieces);
  for (const std::vector<PieceId>& group : members) keep_row_major(context, pieces, group);
}

void Layouts::keep_row_major(const Context& context, const Pieces& pieces,
                             const std::vector<PieceId>& group) {
  if (std::none_of(group.begin(), group.end(),
                   [&](PieceId id) { return pieces[id].archetype->row_major; }))
    return;
  for (const PieceId id : group) {
    const Piece& piece = pieces[id];
    for (const Access& read : piece.reads) channels_last_.erase(read.value);
    for (std::uint32_t r = 0; r < context.node(piece.node).results.size(); ++r)
      channels_last_.erase({piece.node, r});
  }
}

// Through pools, and through what is computed element by element from a tensor of the same shape.
void Layouts::spread(const Context& context, const Pieces& pieces) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Piece& piece : pieces.list) {
      const ir::Node& node = context.node(piece.node);
      if (piece.is_anchor || !has_channels(node.results[0].shape)) continue;
      for (const Access& read : piece.reads) {
        const Shape& shape = context.type(read.value).shape;
        if (!has_channels(shape) || (!is_window(*node.op) && !(shape == node.results[0].shape)))
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
  if (const std::vector<int>& chosen = context_.order_of(value); !chosen.empty()) return chosen;
  if (!channels_last_.contains(value)) return {};
  std::vector<int> order{0};
  for (int axis = 2; axis < context_.type(value).shape.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

}  // namespace pantala::schedule
