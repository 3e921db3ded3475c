// Which scalars of a graph the host computes, and how. They are computed in double once a step and
// reach kernels as parameters, so that a changed learning rate recompiles nothing and bias
// corrections are exact. This is the one place that decides it: the guard asks it of a step graph,
// the scheduler of the lowered one, and the host part evaluates by the same table of ops.
// Lowering changes no answer: where an op has a meaning on numbers, so have all ops of its
// definition.
#pragma once

#include <vector>

#include "ir/graph_data.h"

namespace pantala::ops {

// Whether a leaf lives on the host unless a kernel needs it: a hyper-parameter, or a counter (a
// single number of state, f64 or an integer).
bool may_live_on_host(LeafKind kind, const Type& type);

// Per node, whether the host computes it: single numbers that depend on leaves of the host and
// constants alone, and on one of the former at least (what is made of constants alone is the
// device's). A counter is the device's if its next value is neither of the host nor a constant.
std::vector<bool> host_scalars(const ir::GraphData& graph);

// The meaning of an op on single numbers, as in the interpreter: casts between float types are
// identities. Empty if the host has none.
ir::ScalarFn host_function(const ir::Node& node);

// A number as one of the dtype: integers wrap, floats saturate on their way to i64 (NaN is 0).
// Floats keep the precision of double.
ir::Number to_dtype(const ir::Number& value, DType dtype);

}  // namespace pantala::ops
