// What the machine can do, for tables that compare with it.
#pragma once

#include "pantala/session.h"

namespace pantala::tools {

// With so many threads, 0: one per CPU. Measures for a fraction of a second. Where that fails there
// is a warning and no limits: what they would be compared with has its worth without them.
MachineLimits probed_limits(int threads);

}  // namespace pantala::tools
