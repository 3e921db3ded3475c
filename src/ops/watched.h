// The face of the op that the guard puts around new values (compiler/guard.h). Kernels raise the
// status kir::kNotFinite where one of its operands is not finite.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct Watched : ir::Face<"watched"> {};

}  // namespace pantala::op
