// The archetypes of a GPU: how its kernels are made, one row each.
#pragma once

#include "schedule/archetype.h"
#include "schedule/target.h"

namespace pantala::schedule::gpu {

const ArchetypeTable& archetypes();

// The limits that every GPU keeps to.
Target least_target();

}  // namespace pantala::schedule::gpu
