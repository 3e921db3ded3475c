// Reports of one code in the same block become one, behind the last of them: a branch for each
// vector of a tile would keep it from staying in registers.
#pragma once

#include "kir/kernel.h"

namespace pantala::kir {

Kernel merge_reports(Kernel kernel);

}  // namespace pantala::kir
