// What computing in f32 may do to the results of a graph.
#pragma once

#include <vector>

#include "pantala/interpreter.h"

namespace pantala::tests {

// The interpreter's own error in float: the graph is evaluated in double with every leaf and every
// result of an op that rounds moved by up to 2^-23 of itself, at random, several times: the
// elements each on its own, and all elements of a tensor alike (equal numbers have equal errors,
// which do not average out). The result is, per result of the graph (results_of), the largest
// distance of an element from its place in `exact`, plus one rounding of the largest element and
// the smallest normal float. Infinite where a trial is not finite or an integer changes: such a
// result hangs on less than a rounding.
std::vector<double> errors_in_float(const Graph& graph, const ref::Bindings& bindings,
                                    const std::vector<Literal>& exact);

// Whether f32 computes the graph's results exactly, in whatever order sums are taken: every value
// is a multiple of 1/16, and every sum of products, with all terms made positive, stays below 2^16.
// Then all partial sums are multiples of 2^-8 below 2^16.
bool is_exact_in_float(const Graph& graph, const ref::Bindings& bindings);

}  // namespace pantala::tests
