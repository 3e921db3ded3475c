// Running graphs through the whole compiler, as the interpreter runs them: bindings in, literals
// out.
#pragma once

#include <string>
#include <vector>

#include "pantala/interpreter.h"
#include "plan/compiled_step.h"
#include "search/search.h"

namespace pantala::tests {

struct CompiledRun {
  std::string device = "cpu";  // or "kir"
  bool fuse = true;
  int threads = 1;
  search::Level level = search::Level::none;  // with rules that are equal over the real numbers
  std::vector<std::string> rules_off = {};
  std::string target = {};  // a class of processors; none: this one
};

// Those that have convolutions computed by Winograd's algorithms, which round more than others.
std::vector<std::string> winograd_rules();

plan::CompiledStep compile_graph(const Graph& graph, const CompiledRun& how = {});

// The outputs of a graph, in order, then the new values of its updates.
std::vector<Tensor> results_of(const Graph& graph);

// The results of the graph (updates: what the leaf holds afterwards; it must live on the device).
// Leaves that are not bound take their first value. Machine code of the last runs stays in the
// process: graphs that are made of the same kernels share it.
std::vector<Literal> run_compiled(const Graph& graph, const plan::CompiledStep& compiled,
                                  const ref::Bindings& bindings, const CompiledRun& how = {});
std::vector<Literal> run_compiled(const Graph& graph, const ref::Bindings& bindings,
                                  const CompiledRun& how = {});

// A copy of the graph whose outputs are the given values alone.
Graph with_outputs(const Graph& graph, const std::vector<Tensor>& values);

// The first difference in bits (any NaN equals any NaN), or "".
std::string differing_bits(const std::vector<Literal>& a, const std::vector<Literal>& b);
// The first element that is further from `expected` than tolerance * the largest magnitude of its
// tensor (at least 1), or "". Integers and non-finite numbers must be equal.
std::string differing(const std::vector<Literal>& expected, const std::vector<Literal>& got,
                      double tolerance);

}  // namespace pantala::tests
