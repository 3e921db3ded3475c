#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> random_ops() { return family<>(); }
}  // namespace pantala::ops
