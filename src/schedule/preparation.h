// Preparation: what follows from the store alone need not be computed in every run of a plan that
// leaves the store as it is. Above all that is weights in the form in which kernels read them:
// panels of products, transformed windows of convolutions.
#pragma once

#include "schedule/program.h"

namespace pantala::schedule {

// Launches that read nothing but parameters, states, constants and what such launches have made
// become the first ones, in their order; what the others read of theirs is `prepared` from now on.
// A program that writes to the store stays as it is.
void separate_preparation(Program& program);

}  // namespace pantala::schedule
