// Layouts: the order of axes in which temporaries are stored. Around convolutions, pools and what
// stands between them element by element, channels come last. What an archetype leaves in an order
// that its readers want (Archetype::order_for) has that; everything else is row-major, as are
// leaves, outputs and the operands of products.
#pragma once

#include <set>
#include <vector>

#include "schedule/fusion.h"

namespace pantala::schedule {

class Layouts {
 public:
  Layouts(const Context& context, const Pieces& pieces, const Members& members);
  // Outermost axis first; empty: row-major.
  std::vector<int> order_of(ValueId value) const;

 private:
  void spread(const Context& context, const Pieces& pieces);
  void keep_row_major(const Context& context, const Pieces& pieces,
                      const std::vector<PieceId>& group);

  const Context& context_;
  std::set<ValueId> channels_last_;
};

}  // namespace pantala::schedule
