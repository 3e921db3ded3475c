// The kernels of attention on a GPU, one per part.
//
// The order of sums: a score is one chain of fma over head_dim; forward goes through the keys in
// blocks of kBlock, with out = out * f + the block's weighted values, an fma per key in order, and
// the sum of a block's weights in order before it is added. Gradients are chains over the other
// side's positions, ascending.
#pragma once

#include "schedule/common/attention/group.h"

namespace pantala::schedule::gpu {

constexpr int kBlock = 32, kMostOwn = 16, kLeastOwn = 2;
constexpr int kAttentionThreads = 64;

// How a workgroup is laid out: its own positions (a power of two), and the elements of head_dim
// that shared memory has room for.
struct AttentionShape {
  int own = kMostOwn;
  std::int64_t room = 0;
  // A thread has pairs of `rows()` own positions with `columns()` other ones.
  int rows() const { return own > 8 ? own / 8 : 1; }
  int columns() const { return own * kBlock / kAttentionThreads / rows(); }
  int across() const { return kBlock / columns(); }
  std::int64_t bytes(AttentionPart part, DType dtype) const;
};

kir::Kernel build_attention_forward(const AttentionSpec& spec, const AttentionShape& shape);
kir::Kernel build_attention_grad(AttentionPart part, const AttentionSpec& spec,
                                 const AttentionShape& shape);
kir::Kernel build_attention_dots(const AttentionSpec& spec);

}  // namespace pantala::schedule::gpu
