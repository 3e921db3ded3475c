#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> update_ops() { return family<>(); }
}  // namespace pantala::ops
