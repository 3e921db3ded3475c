// Which values are the same in all threads of an item, read off the code alone and on the safe
// side: constants, parameters, the item, what group_* give, and whatever is computed from such
// values. A load at such an index counts as well: between two barriers nobody may write what
// several threads read.
#pragma once

#include "kir/kernel.h"

namespace pantala::kir {

// The first barrier or group_* that not all threads may reach together, because a loop or branch
// around it depends on a value that may differ; none is a null pointer. The kernel's values are
// defined before they are used.
const Inst* divergent_meeting(const Kernel& kernel);

}  // namespace pantala::kir
