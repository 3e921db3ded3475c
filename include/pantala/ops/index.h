// Reading and writing by index. Indices are i32 or i64 and carry no gradient; one that is negative
// or beyond the end is a ValueError at run time.
#pragma once

#include "pantala/tensor.h"

namespace pantala {

// Slices of x along `axis`: the shape of x with that axis replaced by the shape of the index (any
// rank).
Tensor take(Operand x, Operand index, std::int64_t axis = 0);
// Rows of the table `weight` [count, size].
Tensor embedding(Operand weight, Operand index);
// Element by element along `axis`, as torch.gather: the index has the rank of x and the shape of
// the result.
Tensor gather(Operand x, Operand index, std::int64_t axis);
// x with `source` added at the slices that the index names: the adjoint of take. Repeated indices
// add up, in order.
Tensor scatter_add(Operand x, Operand index, Operand source, std::int64_t axis = 0);
// The adjoint of gather, as torch.scatter_add; index and source have one shape.
Tensor scatter_add_elements(Operand x, Operand index, Operand source, std::int64_t axis);
// x with elements replaced, as torch.scatter; index and source have one shape. Of repeated indices
// the last one stays, and it alone gets a gradient.
Tensor scatter(Operand x, Operand index, Operand source, std::int64_t axis);
// A new last axis of size `classes` with a 1 at the index.
Tensor one_hot(Operand index, std::int64_t classes, DType dtype = i64);
// `size` elements of `axis` from a position known at run time (a scalar integer); all of them must
// exist.
Tensor dynamic_slice(Operand x, Operand position, std::int64_t axis, std::int64_t size);
// x with `update` written over it from that position on: in place on state.
Tensor update_slice(Operand x, Operand update, Operand position, std::int64_t axis);

}  // namespace pantala
