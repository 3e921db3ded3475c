// Optimizer updates: one op per parameter and step. Hyper-parameters are f64 scalars of the graph; what depends on them alone (bias corrections)
// is computed in f64 outside. See optim.h for the optimizers that use them.
#pragma once

#include "pantala/tensor.h"

namespace pantala {}
