// Random numbers from a counter-based generator: functions of (seed, draw, stream, element). The
// graph's counters rng.seed and rng.draw are used; each call takes the next free stream number, so
// two dropouts differ, and copies, rewrites and text round trips keep their bits.
#pragma once

#include "pantala/graph.h"
#include "pantala/tensor.h"

namespace pantala {

// 32 random bits per element, as i32.
Tensor random_bits(Graph& graph, const Shape& shape, Where where = Where::current());
Tensor random_uniform(Graph& graph, const Shape& shape, double low = 0, double high = 1,
                      DType dtype = f32, Where where = Where::current());
Tensor random_normal(Graph& graph, const Shape& shape, double mean = 0, double std = 1,
                     DType dtype = f32, Where where = Where::current());
// Zeroes each element with probability p, in [0, 1), and scales the others by 1 / (1 - p).
Tensor dropout(Operand x, double p = 0.5);

}  // namespace pantala
