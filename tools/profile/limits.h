// What the machine can do, for tables that compare with it.
#pragma once

#include <string_view>

#include "pantala/session.h"

namespace pantala::tools {

// With so many threads, 0: one per CPU. Measures for a fraction of a second. Where that fails there
// is a warning and no limits: what they would be compared with has its worth without them.
// Of GPUs they are not known.
MachineLimits probed_limits(int threads, std::string_view device = "cpu");

}  // namespace pantala::tools
