#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> conv_ops() { return family<>(); }
}  // namespace pantala::ops
