// The scalars that append() adds beside the optimizer's own. Who gives a compiled step other values
// of its options asks here, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pantala/optim.h"

namespace pantala::optim {

// Names and values of clipping, averages and groups, in the order in which they are added.
// TypeError for a value that one cannot have.
std::vector<std::pair<std::string, double>> added_scalars(const AppendOptions& options);

}  // namespace pantala::optim
