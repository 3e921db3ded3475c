#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> pool_ops() { return family<>(); }
}  // namespace pantala::ops
