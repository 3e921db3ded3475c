// What the kernels of attention share: the sides of a workgroup, scores of a block, and sums over
// it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "schedule/gpu/attention/kernels.h"

namespace pantala::schedule::gpu {

class AttentionWriter {
 public:
  // `own_queries`: the workgroup's own positions are queries, else keys.
  AttentionWriter(kir::Builder& builder, AttentionPart part, const AttentionSpec& spec,
                  const AttentionShape& shape, bool own_queries);

  const AttentionArguments& args() const { return args_; }
  HeadView view(const HeadTensor& t, kir::Var batch, kir::Var head, kir::Var size) const {
    return {t.buffer, t.offset + batch * t.batch + head * t.head, t.position, size};
  }
  kir::BufferId scratch(std::string name, std::int64_t size) {
    return b.scratch(std::move(name), spec_.dtype, size);
  }
  kir::Var number(double value) { return b.constant({spec_.dtype, 1}, value); }
  kir::Var finite_or_zero(kir::Var x);

  // The positions that the item works on; `offset` is how far queries stand behind keys.
  struct Block {
    kir::Var batch, head;  // of the queries
    kir::Var own;          // the first of its own positions
    kir::Var offset;
    kir::Var own_size, other_size;
  };
  // The other side's positions that any of the own ones sees.
  struct Range {
    kir::Var begin, end;
  };
  Range visible(const Block& block);

  // Products of own x kBlock positions: of `own` from block.own on with `other` from `first` on.
  // A thread has rows() * columns() of them, at own positions pair_own() and other ones
  // pair_other(); positions past an end repeat the last one.
  std::vector<kir::Var> products(const HeadView& own, kir::Var own_first, const HeadView& other,
                                 kir::Var other_first);
  // The score of a thread's pair; where it is not seen, -inf.
  kir::Var score(const Block& block, kir::Var first, std::size_t pair, kir::Var product);
  // Its place in a tile [own][kBlock].
  kir::Var place(std::size_t pair);
  kir::Var own_of(std::size_t pair);    // 0 <= ... < own
  kir::Var other_of(std::size_t pair);  // 0 <= ... < kBlock
  std::size_t pairs() const { return static_cast<std::size_t>(shape_.rows() * shape_.columns()); }
  // Whether the thread's pair lies within both sides.
  kir::Var exists(const Block& block, kir::Var first, std::size_t pair);

  // sums[i][d] = sums[i][d] * factor(i) + the sum of weights[i][j] * other[first + j][d] over the
  // other positions j, ascending; factors in scratch, or none.
  void accumulate(kir::BufferId sums, kir::BufferId weights, const HeadView& other, kir::Var first,
                  kir::Var end, const kir::BufferId* factors);
  // Over d, one after another for each thread.
  void each_dim(const std::function<void(kir::Var d)>& body);
  void clear(kir::BufferId sums);
  // Writes sums[i][d] to a head, from `first` on, changed by `finish`.
  void write(kir::BufferId sums, const HeadView& to, kir::Var first,
             const std::function<kir::Var(kir::Var i, kir::Var sum)>& finish);

  kir::Builder& b;

 private:
  const AttentionSpec spec_;
  const AttentionShape shape_;
  const bool own_queries_;
  const AttentionArguments args_;
};

}  // namespace pantala::schedule::gpu
