// The arguments of the kernels of attention, on any device.
#pragma once

#include <cstdint>
#include <vector>

#include "kir/builder.h"
#include "schedule/common/attention/problem.h"

namespace pantala::schedule {

// The tensors of one kernel, in the order of its buffers.
enum class AttentionRole : std::uint8_t { q, k, v, out, dout, dq, dk, dv, lse, dots, mask, length };
std::vector<AttentionRole> attention_roles(AttentionPart part, const AttentionSpec& spec);
bool is_head_tensor(AttentionRole role);  // [batch, heads, positions, head_dim]

// A tensor as a kernel's argument.
struct HeadTensor {
  kir::BufferId buffer;
  kir::Var offset;                 // of its first element
  kir::Var batch, head, position;  // strides
};
// One head of it: element (position, d) stands at base + position * ld + d.
struct HeadView {
  kir::BufferId buffer;
  kir::Var base, ld, size;
};

struct AttentionArguments {
  HeadTensor q, k, v, out, dout, dq, dk, dv;
  kir::BufferId lse, dots, mask, length;
  kir::Var heads, group, queries, keys, head_dim, block;
  kir::Var window;               // if windowed
  kir::Var row_batch, row_head;  // strides of lse and dots
  kir::Var mask_batch, mask_head, mask_query, mask_key;
  kir::Var scale;
  kir::Var length_param;

  HeadTensor& tensor(AttentionRole role);
};
// Declares buffers and parameters. Buffers, in order (those in brackets only if the spec says so):
//  - forward: q, k, v, [mask], [length], out, [lse]
//  - row_dots: dout, out, dots
//  - query_grad: dout, q, k, v, lse, dots, [mask], dq
//  - key_grad: dout, q, k, v, lse, dots, [mask], dk, dv
//  - all_grads: dout, q, k, v, lse, dots, [mask], dq, dk, dv
//
// Parameters: the integers of attention_params(), then (but for row_dots) the scale, of the spec's
// dtype, then [length].
AttentionArguments declare_attention(kir::Builder& b, AttentionPart part,
                                     const AttentionSpec& spec);
// `window` counts only if the spec is windowed; `block` is a number of the kernel's own.
std::vector<std::int64_t> attention_params(AttentionPart part, const AttentionSpec& spec,
                                           const AttentionSizes& sizes,
                                           const AttentionStrides& strides, std::int64_t window,
                                           std::int64_t block);

}  // namespace pantala::schedule
