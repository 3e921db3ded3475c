// What kind of kernel computes an op.
#pragma once

#include <cstdint>

#include "ir/op.h"

namespace pantala::schedule {

enum class Archetype : std::uint8_t {
  leaf,       // nothing to compute
  elemental,  // element by element, by the emitter
  reduce,     // sum, amax, amin
  search,     // argmax, argmin
  scan,       // cumsum
  contract,
  convolution,  // and its two gradients
  scatter,
  attention,
  none,  // no kernel: its definition is taken
};
Archetype archetype(const ir::OpDef& op);
// Inputs, parameters, states, scalars and constants.
bool is_leaf(const ir::OpDef& op);
inline bool has_kernel(const ir::OpDef& op) { return archetype(op) != Archetype::none; }

}  // namespace pantala::schedule
