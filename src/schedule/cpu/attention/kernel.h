// The attention archetype on the CPU: softmax(scale q k^T + mask) v and its gradients for [batch,
// heads, positions, head_dim], tiled, so that nothing of the size queries x keys is ever stored.
// Sizes and strides are run-time parameters; only options and tile constants are baked.
//
// A kernel works on *panels*: neighbouring positions of one side, one per lane, against all *rows*,
// the positions of the other side, which are read in place and broadcast. With queries in the lanes
// a softmax is arithmetic between vectors, and nothing but the panel itself is ever transposed.
//  - forward: panels of queries, rows are keys; gives out and the logarithm of each row's sum.
//  - row_dots: no panels; gives dots = sum over head_dim of dout * out.
//  - query_grad: panels of queries, rows are keys; gives dq.
//  - key_grad: panels of keys, rows are queries; gives dk and dv.
//  - all_grads: panels of keys, rows are queries; gives dq, dk and dv. An item is a whole head of
//    keys, with 5 products instead of 7: for problems with enough heads (choose_grad_parts).
//
// The bits of a result depend on kKeyBlock (and, for row_dots, on the vector's lanes) alone, never
// on tiling, items or workers (an accumulator that is -0 may become +0):
//  - score: s = scale * (fma chain over head_dim ascending, from +0), + mask; -inf if not seen.
//  - forward: keys in blocks of kKeyBlock, ascending. Per block: m' = the largest of m and the
//    scores that is not NaN; f = exp(m - m'); sum = sum * f, then + exp(s - m') by ascending key;
//    out = out * f, then by ascending key fma(v, exp(s - m'), out). At the end out / sum,
//    lse = log(sum) + m.
//  - grads: p = exp(s - lse), ds = p * (dp - dots) * scale, where dp is the chain over dout * v.
//    dq: chain over keys of ds * k. dk, dv: chain over ds * q, p * dout by ascending head of the
//    group, then query.
//
// Where m' (or lse) is not finite, 0 stands in its place. A query that sees no key gets zeros, and
// an lse of -inf. Blocks that no lane of a panel sees are not visited.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/kernel.h"
#include "schedule/common/attention/arguments.h"
#include "schedule/target.h"

namespace pantala::schedule::cpu {

using schedule::AttentionLength;
using schedule::AttentionMask;
using schedule::AttentionPart;
using schedule::AttentionSizes;
using schedule::AttentionSpec;
using schedule::AttentionStrides;
using schedule::HeadStrides;
using schedule::MaskAxis;

constexpr std::int64_t kKeyBlock = 96;

// Everything that may be chosen freely without a change of the result's bits (row_dots: but for the
// lanes).
struct AttentionTiling {
  int lanes = 8;              // of a vector
  int vectors = 2;            // of a panel
  int rows = 6;               // of the register tile of scores
  int dims = 6;               // of the register tile that sums over rows, along head_dim
  bool whole_dims = false;    // the kernel may rely on head_dim being a multiple of `dims`
  std::int64_t head_dim = 0;  // the largest that scratch has room for
  // Forward only: a block of keys and values is copied first, so that its rows are neighbours for
  // all panels of the item. (Gradients always do.)
  bool copy_rows = false;
  // Positions in the lanes per item (all_grads: per walk over the rows); a multiple of a panel's.
  std::int64_t block = 0;
  int columns() const { return lanes * vectors; }
  friend bool operator==(const AttentionTiling&, const AttentionTiling&) = default;
};

// Whether a kernel can be built and run so; "" or what is wrong.
std::string broken_rule(AttentionPart part, const AttentionSpec& spec, const AttentionSizes& sizes,
                        const AttentionTiling& tiling);

// The kernels that make the gradients, in order: row_dots and either all_grads or the other two,
// whose results have the same bits.
std::vector<AttentionPart> choose_grad_parts(const AttentionSizes& sizes, int workers);
AttentionTiling choose_tiling(AttentionPart part, const AttentionSpec& spec,
                              const AttentionSizes& sizes, const Target& target, int workers);

// Buffers, in order (those in brackets only if the spec says so):
//  - forward: q, k, v, [mask], [length], out, [lse]
//  - row_dots: dout, out, dots
//  - query_grad: dout, q, k, v, lse, dots, [mask], dq
//  - key_grad: dout, q, k, v, lse, dots, [mask], dk, dv
//  - all_grads: dout, q, k, v, lse, dots, [mask], dq, dk, dv
//
// Parameters: the integers of attention_params(), then (but for row_dots) the scale, of the spec's
// dtype, then [length].
kir::Kernel build_attention(std::string name, AttentionPart part, const AttentionSpec& spec,
                            const AttentionTiling& tiling);
// `window` counts only if the spec is windowed. InternalError where the tiling does not fit the
// sizes (broken_rule).
std::vector<std::int64_t> attention_params(AttentionPart part, const AttentionSpec& spec,
                                           const AttentionSizes& sizes,
                                           const AttentionStrides& strides, std::int64_t window,
                                           const AttentionTiling& tiling);
std::int64_t attention_items(AttentionPart part, const AttentionSizes& sizes,
                             const AttentionTiling& tiling);

}  // namespace pantala::schedule::cpu
