// The workloads that speed is measured on: models with their data, always the same numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/graph.h"
#include "pantala/literal.h"
#include "pantala/optim.h"

namespace pantala::tools {

struct Workload {
  std::string name;
  Graph graph;
  Tensor loss;
  optim::Optimizer optimizer;
  std::map<std::string, Literal> inputs;
};

std::vector<std::string> workload_names();
// TypeError with the nearest name.
Workload make_workload(std::string_view name);

}  // namespace pantala::tools
