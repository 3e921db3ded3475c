#include "ops/define.h"

namespace pantala::ops {
std::vector<const OpDef*> attention_ops() { return family<>(); }
}  // namespace pantala::ops
