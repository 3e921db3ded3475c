// Pieces: the seeds of groups. A piece is a node whose results are stored, or one that is not
// computed element by element; everything else is recomputed by whoever reads it.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/id.h"
#include "schedule/context.h"
#include "schedule/decision_memo.h"

namespace pantala::schedule {

struct Piece {
  std::uint32_t node = 0;
  const Archetype* archetype = nullptr;
  bool is_anchor = false;     // or computed element by element
  Domain domain;              // of its code: the result's shape, for reductions that of the operand
  std::vector<Access> reads;  // of values that other pieces or leaves hold, as if stored row-major
  std::size_t size = 0;       // of its code: values that are computed or loaded
  std::uint32_t form = 0;     // the number of its code's form
  std::vector<ValueId> loads;        // what its code loads, in the order of the form
  std::vector<ValueId> conditional;  // reads under a condition, as in a Footprint
  std::vector<ValueId> apart;        // reads of what another kernel must have made (op::Apart)
};
using PieceId = Id<Piece>;

struct Pieces {
  IdVector<PieceId, Piece> list;  // in the order of the graph
  std::vector<PieceId> of_node;   // none: it is no piece
  std::set<ValueId> stored;       // values that pieces make and that someone else may read
  PieceId maker(ValueId value) const { return of_node[value.node]; }
  const Piece& operator[](PieceId id) const { return list[id]; }
};

Pieces find_pieces(const Context& context, DecisionMemo& memo);

}  // namespace pantala::schedule
