// The steps by which a device is qualified: small, with sizes that divide nothing, every kind of
// kernel forward and backward. All numbers are parameters or constants, so that a step needs no
// inputs.
#pragma once

#include <span>

#include "pantala/graph.h"
#include "pantala/optim.h"

namespace pantala::runtime {

struct QualificationGraph {
  Graph graph;
  Tensor loss;
  optim::Optimizer optimizer = optim::sgd(0.25);
};
struct QualificationStep {
  const char* name;
  QualificationGraph (*make)();
};
std::span<const QualificationStep> qualification_steps();

}  // namespace pantala::runtime
