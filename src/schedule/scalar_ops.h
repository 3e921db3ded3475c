// Pointwise primitives as kernel code: the one table that maps an op with a `scalar` function and
// no expansion (and cast, add_n, stop_gradient, which mean the same kind of thing) to kernel IR.
// Whoever emits an element of a fused expression comes here; composites are expanded before.
//
// The meaning is that of the op on ir::Number, computed in the dtype:
//  - floats: the correctly rounded instruction, or kir/math.h. An attribute is rounded to the dtype
//    first. NaN, infinities and signed zeros come out as the interpreter's.
//  - f16, bf16: computed in f32 and rounded to the dtype, so that a value has the same bits whether
//    it stays in a register or goes through memory. Operands must be such numbers.
//  - integers: wrap to the dtype. u8 is held as an i32 from 0 to 255, on the way in and out.
//  - mod of integers by zero, an error in the interpreter, is 0.
//  - cast of floats to integers truncates to i64 (saturating; NaN is 0) and then wraps, as the
//    interpreter's does: kir's own cast to i32 would saturate there.
//
// An element's bits depend on its operands alone, not on lanes or neighbours.
#pragma once

#include <cstdint>
#include <span>

#include "ir/op.h"
#include "kir/builder.h"

namespace pantala::schedule {

// Whether the op is a pointwise primitive that kernels compute element by element.
bool is_scalar_op(const ir::OpDef& op);

// One element, or a vector of them, of a pointwise primitive. The operands have the register dtypes
// of `operand_dtypes`; scalars beside vectors are splat, scalars alone give a scalar. `result` is
// the op's result dtype; the value has its register dtype. InternalError if the op is none of these
// or the operands are not as said.
kir::Var emit_scalar_op(kir::Builder& b, const ir::OpDef& op, const ir::AttrValues& attrs,
                        std::span<const kir::Var> operands, std::span<const DType> operand_dtypes,
                        DType result);

// The number of the dtype that stands for a computed one: rounded to f16 and bf16, wrapped to u8.
// Whoever computes a value by other means than these ops calls it before the value is used.
kir::Var emit_fit(kir::Builder& b, kir::Var value, DType dtype);

// Rough cost of one element in additions, of these ops and of random_bits: what it takes to compute
// a value again instead of storing it.
double scalar_op_cost(const ir::OpDef& op);

// Elements of the op random_bits, as i32: the bits that base/philox.h defines. `seed` and `draw`
// and `stream` are i64 scalars, `element` the row-major numbers of the elements (i64, not negative,
// any lanes).
kir::Var emit_random_bits(kir::Builder& b, kir::Var seed, kir::Var draw, kir::Var stream,
                          kir::Var element);

}  // namespace pantala::schedule
