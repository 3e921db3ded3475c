#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> index_ops() { return family<>(); }
}  // namespace pantala::ops
