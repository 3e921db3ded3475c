// Layouts: the order of axes in which temporaries are stored. Around convolutions, pools and what
// stands between them element by element, channels come last; everything else is row-major, as are
// leaves, outputs and the operands of products.
#pragma once

#include <set>
#include <vector>

#include "schedule/pieces.h"

namespace pantala::schedule {

class Layouts {
 public:
  // `members` lists the pieces of each group.
  Layouts(const Context& context, const Pieces& pieces,
          const std::vector<std::vector<int>>& members);
  // Outermost axis first; empty: row-major.
  std::vector<int> order_of(ValueId value) const;

 private:
  void spread(const Context& context, const Pieces& pieces);
  void keep_row_major(const Context& context, const Pieces& pieces, const std::vector<int>& group);

  const Context& context_;
  std::set<ValueId> channels_last_;
};

}  // namespace pantala::schedule
