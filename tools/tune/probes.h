// The small graphs that a machine is measured with: products, maps that stream from each level of
// memory, reductions by rows and by columns, convolutions, attention, gathers, and chains of tiny
// launches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "pantala/literal.h"
#include "schedule/target.h"

namespace pantala::tools {

struct Probe {
  std::string name;
  Graph graph;
  std::map<std::string, Literal> inputs = {};
  bool is_alone = false;  // one thread: what a core gets that shares memory with none
};

// In rounds: the first says something about every constant, each further one the same of other
// sizes. Sizes follow from the caches of the target and the number of threads.
std::vector<std::vector<Probe>> probe_rounds(const schedule::Target& target, int threads);

// A chain of so many launches that do next to nothing: `serial` ones by one thread, the others by
// all.
Probe launch_chain(bool serial, int launches);

}  // namespace pantala::tools
