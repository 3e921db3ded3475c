#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> norm_ops() { return family<>(); }
}  // namespace pantala::ops
