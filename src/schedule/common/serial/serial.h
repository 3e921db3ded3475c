// Kernels that walk a part of a tensor in order: searches (argmax, argmin, top_indices), running
// sums (cumsum) and scatters. Axes that are not walked are independent: they give the items and,
// where there is one, the lanes. Operands are computed element by element, so that pointwise work
// joins them.
//
// The bits do not depend on how the work is cut: every element of a result is made by one item, in
// the order that the op defines.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule {

const Archetype& search_archetype();
const Archetype& top_archetype();
const Archetype& scan_archetype();
const Archetype& scatter_archetype();

}  // namespace pantala::schedule
