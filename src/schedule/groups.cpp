#include "schedule/groups.h"

#include "schedule/fusion.h"
#include "schedule/storage.h"

namespace pantala::schedule {

std::vector<Group> make_groups(Context& context) {
  const Pieces pieces = find_pieces(context);
  context.plan_to_store(&pieces.stored);
  const Members members = fuse(context, pieces);
  context.plan_to_store(nullptr);
  return assign_storage(context, pieces, members);
}

}  // namespace pantala::schedule
