// What the machine can do, for tables that compare with it.
#pragma once

#include "pantala/session.h"

namespace pantala::tools {

// With so many threads, 0: one per CPU. Measures for a fraction of a second.
MachineLimits probed_limits(int threads);

}  // namespace pantala::tools
