// Pieces: the seeds of groups. A piece is a node whose results are stored, or one that is not
// computed element by element; everything else is recomputed by whoever reads it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "schedule/context.h"
#include "schedule/lowering.h"

namespace pantala::schedule {

struct Piece {
  std::uint32_t node = 0;
  Archetype kind = Archetype::elemental;
  Domain domain;              // of its code: the result's shape, for reductions that of the operand
  std::vector<Access> reads;  // of values that other pieces or leaves hold, as if stored row-major
};

struct Pieces {
  std::vector<Piece> list;   // in the order of the graph
  std::vector<int> of_node;  // -1: none
  std::set<ValueId> stored;  // values that pieces make and that someone else may read
  const Piece* maker(ValueId value) const {
    const int k = of_node[value.node];
    return k < 0 ? nullptr : &list[static_cast<std::size_t>(k)];
  }
};

Pieces find_pieces(const Context& context);

}  // namespace pantala::schedule
