// The kernels of attention behind build_attention(), which checks their arguments and chooses.
#pragma once

#include <string>

#include "schedule/cpu/attention/kernel.h"

namespace pantala::schedule::cpu {

kir::Kernel build_attention_forward(std::string name, const AttentionSpec& spec,
                                    const AttentionTiling& tiling);
kir::Kernel build_attention_row_dots(std::string name, const AttentionSpec& spec,
                                     const AttentionTiling& tiling);
kir::Kernel build_attention_grad(std::string name, AttentionPart part, const AttentionSpec& spec,
                                 const AttentionTiling& tiling);

}  // namespace pantala::schedule::cpu
