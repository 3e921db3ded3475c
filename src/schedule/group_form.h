// The form of a group: all that its cost depends on, and nothing that differs between layers that
// are alike. Groups of one form cost the same, whichever buffers they read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

struct GroupForm {
  std::vector<std::uint64_t> words;    // equal for groups of one form
  std::vector<std::uint32_t> buffers;  // of this group, in the order in which they are met
};
GroupForm form_of(const Context& context, const Group& group);

}  // namespace pantala::schedule
