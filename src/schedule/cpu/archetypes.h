// The archetypes of the CPU: how its kernels are made, one row each.
#pragma once

#include "schedule/archetype.h"

namespace pantala::schedule::cpu {

const ArchetypeTable& archetypes();

}  // namespace pantala::schedule::cpu
